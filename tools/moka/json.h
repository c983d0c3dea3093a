// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "moka/compute_plan.h"
#include "moka/conversion.h"
#include "moka/description.h"
#include "moka/feature.h"

namespace moka::cli {

using Json = nlohmann::ordered_json;

/// {"name", "type", "kind", "optional", "default", "description", and the shapes or sizes of this kind}.
Json to_json(const FeatureDescription& feature);
Json to_json(const FunctionDescription& function);
Json to_json(const PlannedOperation& operation);

/// {"type", "value"}. Arrays: {"type", "shape", "values"} with lists nested as in the shape, and null for nan and
/// infinity. Images: {"type", "width", "height"}.
Json to_json(const FeatureValue& value);
Json to_json(const Features& features);

/// The number, or null for nan and infinity.
Json finite_or_null(double value);

/// Indents by two spaces and puts lists of numbers on one line. Invalid UTF-8 becomes U+FFFD. Ends with a newline.
std::string rendered(const Json& json);

}  // namespace moka::cli
