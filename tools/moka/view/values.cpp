// SPDX-License-Identifier: Apache-2.0
#include "view/values.h"

#include <fmt/format.h>

#include "check/diff.h"
#include "moka/difference.h"
#include "usage_error.h"
#include "view/answer.h"

namespace moka::cli {

Json values_of(const Model& model, const Features& inputs) {
  Json values = Json::array();
  bool complete = true;
  observe_values(model, inputs,
                 [&](size_t index, std::string_view operation, std::string_view value, const MultiArray& array) {
                   complete = index < kMostValues;
                   if (!complete) return;
                   Json json = to_json(facts_of(array));
                   json["operation"] = operation;
                   json["value"] = value;
                   values.push_back(std::move(json));
                 });
  return {{"values", std::move(values)}, {"complete", complete}};
}

Json value_of(const Model& model, const Features& inputs, size_t index) {
  Json out;
  observe_values(model, inputs,
                 [&](size_t i, std::string_view operation, std::string_view value, const MultiArray& array) {
                   if (i != index) return;
                   out = shown_value(array);
                   out["operation"] = operation;
                   out["value"] = value;
                 });
  if (out.is_null()) throw UsageError(fmt::format("the prediction has no value {}", index));
  return out;
}

Json compared_values(const Model& model, const Model& other, const Features& inputs) {
  const ValueComparison found = compare_values(model, inputs, other, inputs);
  Json out{{"complete", found.complete}};
  if (found.first) out["first"] = *found.first;
  Json values = Json::array();
  for (const ComparedValue& one : found.values) {
    Json json = to_json(one.facts);
    json["operation"] = one.operation;
    json["value"] = one.value;
    if (!one.other.empty()) {
      if (one.has_form) {
        json["difference"] = one.difference;
        json["relative"] = one.relative;
      }
      json["differs"] = one.differs;
      json["other"] = to_json(one.other_facts);
    }
    values.push_back(std::move(json));
  }
  out["values"] = std::move(values);
  return out;
}

}  // namespace moka::cli
