#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "moka/compute_plan.h"
#include "moka/description.h"
#include "moka/feature.h"

namespace moka::cli {

using Json = nlohmann::ordered_json;

/// {"name", "type", "kind", "optional", "description", and shapes or sizes of the kind}.
Json to_json(const FeatureDescription& feature);
Json to_json(const FunctionDescription& function);
Json to_json(const PlannedOperation& operation);

/// {"type", "value"}; arrays: {"type", "shape", "values"} with lists nested as the shape says, nan and infinity as
/// null; images: {"type", "width", "height"}.
Json to_json(const FeatureValue& value);
Json to_json(const Features& features);

/// Two spaces deep, lists of numbers on one line; bytes that aren't UTF-8 become U+FFFD. Ends with a newline.
std::string rendered(const Json& json);

}  // namespace moka::cli
