// SPDX-License-Identifier: Apache-2.0
#include "editing/training_inputs.h"

#include <algorithm>

#include "editing/pipeline.h"

namespace moka::editing {
namespace {

Result<std::string> type_bytes(const Message& feature) {
  const Message type = MOKA_TRY(child_or_empty(feature, "type"));
  return std::string(MOKA_TRY(type.serialize()).joined().text());
}

/// The input of that name, or the label that a classifier predicts.
Result<std::vector<Message>> feature_of(const Message& description, const std::string& name) {
  std::vector<Message> out;
  for (const Message& input : MOKA_TRY(description.children("input")))
    if (MOKA_TRY(has_text(input, "name", name))) out.push_back(input);
  if (out.empty() && MOKA_TRY(has_text(description, "predictedFeatureName", name)))
    for (const Message& output : MOKA_TRY(description.children("output")))
      if (MOKA_TRY(has_text(output, "name", name))) out.push_back(output);
  return out;
}

Result<std::vector<Stage>> stages_in(const Message& model) {
  if (!is_pipeline(MOKA_TRY(kind_of(model)))) return std::vector<Stage>();
  return stages_of(model);
}

}  // namespace

Result<TrainingInputs> TrainingInputs::of(const Message& model) {
  TrainingInputs out;
  const Message description = MOKA_TRY(child_or_empty(model, "description"));
  for (const Message& input : MOKA_TRY(description.children("trainingInput"))) {
    const std::string name = MOKA_TRY(text_of(input, "name"));
    for (const Message& feature : MOKA_TRY(feature_of(description, name)))
      if (MOKA_TRY(type_bytes(feature)) == MOKA_TRY(type_bytes(input))) out.same_.push_back(name);
  }
  for (const Stage& stage : MOKA_TRY(stages_in(model))) out.stages_.push_back(MOKA_TRY(of(stage.model)));
  return out;
}

Status TrainingInputs::follow(const Message& model) const {
  const Message description = MOKA_TRY(child_or_empty(model, "description"));
  for (Message input : MOKA_TRY(description.children("trainingInput"))) {
    const std::string name = MOKA_TRY(text_of(input, "name"));
    if (std::find(same_.begin(), same_.end(), name) == same_.end()) continue;
    for (const Message& feature : MOKA_TRY(feature_of(description, name)))
      MOKA_TRY(input.set("type", MOKA_TRY(feature.child("type"))));
  }
  const std::vector<Stage> stages = MOKA_TRY(stages_in(model));
  for (size_t i = 0; i < std::min(stages.size(), stages_.size()); ++i) MOKA_TRY(stages_[i].follow(stages[i].model));
  return {};
}

}  // namespace moka::editing
