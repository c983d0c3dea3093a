#pragma once

#include <string>
#include <vector>

#include "import/importer.h"

namespace moka::update {

/// The two parts of a function with parameters, with one output: `front` computes what does not depend on a parameter,
/// `head` the rest. Both read values by name.
struct Parts {
  std::vector<ir::Value*> between;  ///< what the head reads of the front, or of the function's inputs
};

/// Where the function can be divided. What follows from the sizes of values alone, or from nothing, is in the head.
Parts parts_of(const ir::Function& function);

/// Makes the outputs of the model's only function those values that its head reads, "between_0" and so on.
Status keep_front(import::ImportedModel& model);
/// Makes the inputs of the model's only function those values, under the same names. Its output stays.
Status keep_head(import::ImportedModel& model);

}  // namespace moka::update
