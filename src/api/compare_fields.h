#pragma once

#include <string>
#include <vector>

#include "moka/comparison.h"

namespace moka::api {

/// What differs in the specifications of two models, field by field, without their descriptions, and in their weight
/// files. Throws what ModelSource::open throws.
std::vector<ModelComparison::Feature> compare_fields(const std::string& a, const std::string& b);

}  // namespace moka::api
