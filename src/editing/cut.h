// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "format/source.h"

namespace moka::editing {

/// Makes a model that begins at `inputs` and ends at `outputs`, which name features, values or operations (layers of a
/// network); none: where it began or ended. Drops inputs, states, operations and weights that are not needed. Element
/// types that no feature has become int32, and float16 becomes float32 where the specification version has no float16
/// features. An ML program must have one function.
/// Errors: not_found, invalid_argument (a value inside a block, a constant), unsupported (the
/// kind of model, a value other than a tensor).
/// Updates of states between the inputs and the outputs stay, also those after outputs that the model already had.
Status cut(format::ModelSource& source, const std::vector<std::string>& inputs,
           const std::vector<std::string>& outputs);

/// The operations from index `begin` to before `end` of the function's block.
struct OperationRange {
  size_t begin, end;
};
/// As cut, for one of two parts of an ML program: updates of states stay in the part that has them, and the part may
/// also read inputs that are not listed.
Status cut_part(format::ModelSource& source, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs, OperationRange part);

}  // namespace moka::editing
