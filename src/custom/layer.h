// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "ir/registered.h"
#include "moka/custom.h"

namespace moka::custom {

/// Runs code of the caller. What it throws becomes an error of `what`: a moka::Exception keeps its kind, the rest is of
/// kind data.
Status guarded(const std::string& what, std::string_view doing, const std::function<void()>& f);

/// A constant as a parameter. Error unsupported: a dictionary, or an element type that no multi-array has.
Result<ParameterValue> to_parameter(const ir::Constant& constant);
/// A constant tensor that shares its memory.
Result<MultiArray> to_shared_array(const ir::Tensor& tensor);

/// Throws invalid_argument without a name or a factory.
void check_registration(const std::string& name, bool has_factory);

/// Whether evaluations are checked (set_check_layers).
bool checks_layers();
/// Evaluates with copies of inputs and outputs in guarded memory. Error data: the layer wrote outside of its outputs.
Status evaluate_guarded(const std::string& what, const LayerCall& call,
                        const std::function<Status(const LayerCall&)>& evaluate);

}  // namespace moka::custom
