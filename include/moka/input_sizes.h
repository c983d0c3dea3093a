#pragma once

#include <string>
#include <vector>

#include "moka/description.h"

namespace moka {

/// One choice of the sizes that a function's inputs allow.
struct ShapeChoice {
  std::string name;              ///< "x 1 x 3 x 64, mask 1 x 64"
  FunctionDescription function;  ///< whose default shapes are these
};

/// The default shapes; with `all` every enumerated shape and the corners of ranges (an end without limit counts as
/// twice the default size): of one input after the other, and of all inputs together.
MOKA_EXPORT std::vector<ShapeChoice> shape_choices(const FunctionDescription& function, bool all);

}  // namespace moka
