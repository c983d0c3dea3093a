// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace moka::runtime {

/// Weights of a function that may be replaced between two predictions.
struct Parameter {
  std::string name;  ///< of the weights in the model; of a constant without a name: "operation_parameter"
  ir::Type type;
  const ir::Value* value = nullptr;  ///< the result of `moka_parameter`
};

/// The name of the weights that an operation reads as `param`.
std::string parameter_name(const ir::Op& op, std::string_view param);

/// Makes parameters of the weights whose names match a pattern, in which "*" stands for any text. Weights are constants
/// of float16 or float32 with at least one dimension, also compressed ones, that no operation needs to know before it
/// runs. Error not_found: a pattern matches none.
Status mark_parameters(ir::Function& function, std::span<const std::string> patterns, const ir::OpTable& table);

/// Moves what is fixed while a prediction runs to the front of its block, as mark_parameters does, so that passes can
/// use it in every operation. Needed again when operations on parameters were added.
void move_fixed_first(ir::Function& function);

/// The parameters that the function still reads, in its order.
std::vector<Parameter> parameters_of(const ir::Function& function);

}  // namespace moka::runtime
