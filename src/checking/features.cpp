// SPDX-License-Identifier: Apache-2.0
#include "checking/features.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "checking/measure.h"
#include "checking/pairing.h"

namespace moka::checking {
namespace {

/// Probabilities in the order of the class labels, as other frameworks return them.
FeatureValue in_label_order(const FeatureValue& value, const FeatureValue& reference, const Model& model) {
  const auto* dictionary = std::get_if<Dictionary>(&value);
  const auto& labels = model.description().class_labels;
  if (dictionary == nullptr || std::holds_alternative<Dictionary>(reference) || labels.empty()) return value;
  MultiArray out(DataType::float64, {static_cast<int64_t>(labels.size())});
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto numbers = out.as<double>();
    if (dictionary->string_keys) {
      const auto at = dictionary->strings.find(labels[i]);
      numbers[i] = at == dictionary->strings.end() ? 0 : at->second;
    } else {
      const auto at = dictionary->ints.find(std::strtoll(labels[i].c_str(), nullptr, 10));
      numbers[i] = at == dictionary->ints.end() ? 0 : at->second;
    }
  }
  return out;
}

std::vector<std::string> without_partner(const std::vector<FeatureDescription>& features, const NamePairs& pairs) {
  std::vector<std::string> out;
  for (const FeatureDescription& f : features)
    if (std::none_of(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.first == f.name; }))
      out.push_back(f.name);
  return out;
}

}  // namespace

PairedFeatures::PairedFeatures(const Model& model, const std::vector<FeatureDescription>& inputs,
                               const std::vector<FeatureDescription>& outputs, const NamePairs& map,
                               const PixelScale& pixels, bool is_core_ml, bool all_classes)
    : model_(model), other_inputs_(inputs), pixels_(pixels), is_core_ml_(is_core_ml), all_classes_(all_classes) {
  const FunctionDescription& f = model.function();
  check_map(map, f, inputs, outputs);
  inputs_ = paired_features(f.inputs, inputs, map);
  outputs_ = paired_features(f.outputs, outputs, map);
  if (outputs_.empty())
    throw Exception(ErrorKind::invalid_argument,
                    "no output of the model has a partner in the reference; map names one");
  for (const auto& input : inputs)
    if (!input.optional &&
        std::none_of(inputs_.begin(), inputs_.end(), [&](const auto& p) { return p.second == input.name; }))
      throw Exception(ErrorKind::invalid_argument,
                      cat("the reference's input '", input.name, "' has no partner in the model; map names one"));
}

std::vector<std::string> PairedFeatures::uncompared() const {
  return without_partner(model_.function().outputs, outputs_);
}
std::vector<std::string> PairedFeatures::ungiven() const { return without_partner(model_.function().inputs, inputs_); }

std::vector<std::string> PairedFeatures::images_as_arrays() const {
  std::vector<std::string> out;
  for (const auto& [mine, other] : inputs_) {
    const FeatureDescription *input = feature_named(model_.function().inputs, mine),
                             *partner = feature_named(other_inputs_, other);
    if (input != nullptr && partner != nullptr && input->type == FeatureType::image &&
        partner->type == FeatureType::multi_array)
      out.push_back(mine);
  }
  return out;
}

Features PairedFeatures::for_other(const Features& item) const {
  Features out;
  for (const auto& [mine, other] : inputs_) {
    const FeatureValue* value = item.find(mine);
    if (value == nullptr) continue;
    const FeatureDescription *input = feature_named(model_.function().inputs, mine),
                             *partner = feature_named(other_inputs_, other);
    const bool is_alike = is_core_ml_ && input->formatted_type() == partner->formatted_type();
    out[other] = is_alike ? *value : adapted(*value, *partner, pixels_);
  }
  return out;
}

/// The probabilities of a classifier; with `all_classes` every list of numbers.
bool PairedFeatures::is_classes(const std::string& name, const FeatureValue& value) const {
  if (name == model_.function().predicted_probabilities_name) return true;
  if (!all_classes_) return false;
  const auto* array = std::get_if<MultiArray>(&value);
  return array != nullptr && array->count() > 1 &&
         std::count_if(array->shape().begin(), array->shape().end(), [](int64_t d) { return d != 1; }) == 1;
}

std::vector<OutputError> PairedFeatures::errors(const std::vector<Features>& model,
                                                const std::vector<Features>& other) const {
  std::vector<OutputError> out;
  for (const auto& [mine, theirs] : outputs_) {
    OutputError error;
    error.name = mine;
    error.other = theirs;
    for (size_t i = 0; i < model.size(); ++i) {
      const FeatureValue *value = model[i].find(mine), *reference = other[i].find(theirs);
      if (value == nullptr || reference == nullptr) {
        error.faults.emplace_back("the output is missing in a prediction");
        continue;
      }
      const FeatureValue ordered = in_label_order(*value, *reference, model_);
      add_error(error, ordered, *reference, is_classes(mine, ordered));
    }
    out.push_back(std::move(error));
  }
  return out;
}

}  // namespace moka::checking
