// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "format/source.h"
#include "ir/permutation.h"

/// Repairs of models that do not change their predictions. Models of other kinds than a function names stay unchanged.
namespace moka::linting {

/// Pairs of a value and the value that replaces it, by function.
using Replacements = std::map<std::string, std::vector<std::pair<std::string, std::string>>>;
/// Replaces values of ML programs wherever they are read, and drops the operations that computed them, with their
/// constants.
Status replace_values(format::ModelSource& source, const Replacements& replacements);

/// How transposes order the axes of values, by function and value.
using AxisOrders = std::map<std::string, std::map<std::string, ir::Permutation>>;
/// Corrects the types of values of ML programs whose operand is no longer transposed.
Status undo_transposes(format::ModelSource& source, const AxisOrders& values);

/// Drops operations, constants and weights of ML programs that nothing reads. Returns the number of dropped operations
/// other than constants.
Result<size_t> drop_unused(format::ModelSource& source);

// The next two functions change neural networks that are not updatable, also in pipelines. They keep custom and random
// layers, and layers whose values a loop or a branch reads.

/// Drops layers that no output needs. Returns their number.
Result<size_t> drop_unused_layers(format::ModelSource& source);
/// Drops layers that compute the same as an earlier layer. Returns their number.
Result<size_t> merge_layers(format::ModelSource& source);

/// Bytes of all weight files.
size_t weight_bytes(const format::ModelSource& source);

}  // namespace moka::linting
