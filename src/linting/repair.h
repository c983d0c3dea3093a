#pragma once

#include <map>
#include <string>
#include <vector>

#include "format/source.h"
#include "ir/permutation.h"

/// Changes of models that keep their predictions.
namespace moka::linting {

/// Values that others replace, by function.
using Replacements = std::map<std::string, std::vector<std::pair<std::string, std::string>>>;
/// Lets what reads a value read its replacement, and drops the operations of these values with their constants. Other
/// kinds of models stay.
Status replace_values(format::ModelSource& source, const Replacements& replacements);

/// Orders of axes by function and value.
using AxisOrders = std::map<std::string, std::map<std::string, ir::Permutation>>;
/// Writes the types that values have when an operand is no longer transposed so.
Status undo_transposes(format::ModelSource& source, const AxisOrders& values);

/// Drops operations and constants that nothing reads, and weights in files. Returns the number of operations that were
/// dropped, without constants. Other kinds of models stay.
Result<size_t> drop_unused(format::ModelSource& source);

/// For neural networks, also those of pipelines, that are not updatable; other kinds of models stay. Layers whose
/// values loops or branches name, and custom and random layers, stay as they are.

/// Drops layers that no output needs. Returns their number.
Result<size_t> drop_unused_layers(format::ModelSource& source);
/// Drops layers that compute again what an earlier one computes. Returns their number.
Result<size_t> merge_layers(format::ModelSource& source);

/// Bytes of all weight files.
size_t weight_bytes(const format::ModelSource& source);

}  // namespace moka::linting
