// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "format/source.h"
#include "ir/type.h"

namespace moka::editing {

/// Whether Moka can import the model, and its outputs are what is described. Errors: those of opening and importing,
/// malformed.
Status check_import(const format::ModelSource& source);

/// The shapes of all values that the layers of a neural network compute, by name, for inputs of the default sizes. In
/// the legacy array mapping, each shape has five dimensions.
Result<std::map<std::string, std::vector<int64_t>>> network_sizes(const format::ModelSource& source);
/// Such a shape as a feature's description gives it: without the first two of five dimensions, and [C] for [C, 1, 1].
/// is_exact: the network uses exact array mapping, and the shape is returned as it is.
std::vector<int64_t> described_size(std::vector<int64_t> size, bool is_exact);

/// The inferred types of the values of each function of an ML program, from the types of its inputs and constants
/// alone. Errors: those of importing; the message names an operation that does not accept its types.
Result<std::map<std::string, std::map<std::string, ir::Type>>> infer_types(const format::ModelSource& source);

/// Writes the inferred types of tensors into the operations.
Status infer_again(format::ModelSource& source);

}  // namespace moka::editing
