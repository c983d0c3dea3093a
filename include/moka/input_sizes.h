#pragma once

#include <string>
#include <vector>

#include "moka/description.h"

namespace moka {

/// One choice of the sizes that a function's inputs allow.
struct ShapeChoice {
  std::string name;              ///< "x 1 x 3 x 64, mask 1 x 64"
  FunctionDescription function;  ///< the function with this choice as its default shapes
};

/// The default shapes. `all` adds every enumerated shape and the corners of ranges, first for one input at a time, then
/// for all inputs together. A range without an upper limit ends at twice the default size.
MOKA_EXPORT std::vector<ShapeChoice> shape_choices(const FunctionDescription& function, bool all);

}  // namespace moka
