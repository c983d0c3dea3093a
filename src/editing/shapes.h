// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "format/source.h"

namespace moka::editing {

/// The allowed sizes of an input: of an array, by dimension; of an image, height and width.
struct Sizes {
  std::vector<std::pair<int64_t, int64_t>>
      ranges;                                    ///< lower and upper bounds; upper -1: unbounded; equal bounds: fixed
  std::vector<std::vector<int64_t>> enumerated;  ///< the allowed shapes, the first of which is the default
  std::vector<int64_t> standard;  ///< the default for ranges; empty: the old default if it fits, else the lower bounds
};

/// Sets the sizes of several inputs, by name. Infers the types of an ML program's values again and updates the
/// description of its outputs. To find sizes that the model cannot have, it imports the model for the default, for each
/// enumerated shape and for both ends of the ranges. Errors: not_found, invalid_argument (sizes that do not fit the
/// input or the model), unsupported (classic models, pipelines).
Status set_sizes(format::ModelSource& source, const std::map<std::string, Sizes>& inputs);

}  // namespace moka::editing
