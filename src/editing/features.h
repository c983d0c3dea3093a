// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "editing/fields.h"

/// The features that the description of a model names.
namespace moka::editing {

/// Names of features or values to other names.
using Names = std::map<std::string, std::string, std::less<>>;

/// Which features an edit concerns; states count as inputs.
enum class Side { any, inputs, outputs };

/// A message with the features of one function: a FunctionDescription, or the ModelDescription of a model that
/// describes no functions.
struct Interface {
  std::string function;  ///< "main" for a ModelDescription
  Message message;
};
Result<std::vector<Interface>> interfaces(const Message& model);

/// A described feature.
struct Feature {
  std::string name;
  bool is_input = false, is_state = false;
  Message message;  ///< a FeatureDescription
};
/// In the order inputs, states, outputs.
Result<std::vector<Feature>> features(const Interface& interface);
inline bool is_on(const Feature& feature, Side side) {
  return side == Side::any || feature.is_input == (side == Side::inputs);
}

/// The features called `name`. Error not_found, which lists the names that there are.
Result<std::vector<Feature>> find_features(const Message& model, std::string_view name, Side side);

/// The member of Model.Type.
Result<std::string> kind_of(const Message& model);
bool is_pipeline(std::string_view kind);
bool is_network(std::string_view kind);
/// "mlProgram" as "an ML program", for messages.
std::string name_of_kind(std::string_view kind);
/// A member of FeatureType.Type in words, for messages: "imageType" as "an image".
std::string name_of_type(std::string_view type);

/// A FeatureDescription of an array. `element` is a member of ArrayFeatureType.ArrayDataType.
Result<Message> array_feature(const std::string& name, const std::string& element, const std::vector<int64_t>& shape);

/// Sets the specification version to at least this one.
Status need_version(Message model, int64_t version);

}  // namespace moka::editing
