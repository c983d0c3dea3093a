#pragma once

#include <string>

#include "compress/program.h"
#include "moka/compress.h"

namespace moka::api {

compress::Recipe recipe_of(const WeightCompression& compression);
/// Throws invalid_argument for options that contradict each other.
void check(const WeightCompression& compression);
/// Whether an exception's pattern names the weight.
bool applies(const std::string& pattern, const compress::Site& site);
/// `compression`: what the weight was to become; null: nothing.
CompressedWeight public_outcome(const compress::Outcome& outcome, const WeightCompression* compression);

}  // namespace moka::api
