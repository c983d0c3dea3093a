#pragma once

#include <map>
#include <string>
#include <vector>

#include "format/source.h"
#include "ir/type.h"

namespace moka::editing {

/// What Moka's importer makes of the model. Errors: those of opening and importing.
Status check_import(const format::ModelSource& source);

/// The sizes of what the layers of a neural network compute, for inputs of the default sizes: five in the legacy
/// mapping.
Result<std::map<std::string, std::vector<int64_t>>> network_sizes(const format::ModelSource& source);
/// One of these sizes as a feature describes it: without the first two of five dimensions, and [C] for [C, 1, 1].
/// is_exact: the network maps arrays exactly.
std::vector<int64_t> described_size(std::vector<int64_t> size, bool is_exact);

/// The inferred types of the values of each function of an ML program, from the types of its inputs and constants
/// alone. Errors: those of importing; an operation that does not take the types names itself.
Result<std::map<std::string, std::map<std::string, ir::Type>>> infer_types(const format::ModelSource& source);

/// Writes the inferred types of tensors into the operations.
Status infer_again(format::ModelSource& source);

}  // namespace moka::editing
