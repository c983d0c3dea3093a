// SPDX-License-Identifier: Apache-2.0
#include "editing/join.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "editing/pipeline.h"
#include "editing/weights.h"

namespace moka::editing {
namespace {

/// The kind of pipeline whose last model is of `kind`.
std::string pipeline_kind(std::string_view kind, bool classifies) {
  if (classifies || kind.ends_with("Classifier")) return "pipelineClassifier";
  return kind.ends_with("Regressor") ? "pipelineRegressor" : "pipeline";
}

Result<std::string> type_of(const Feature& feature) {
  const Message type = MOKA_TRY(child_or_empty(feature.message, "type"));
  return type.which("Type");
}

/// Only the last model of a pipeline can be updated. The pipeline then trains with its own inputs, and with what the
/// last model's training needs and no earlier model computes.
Status describe_training(Message pipeline, const Message& next, const std::map<std::string, Feature>& computed) {
  const std::vector<Stage> stages = MOKA_TRY(stages_of(pipeline));
  for (size_t i = 0; i + 1 < stages.size(); ++i) MOKA_TRY(Message(stages[i].model).clear("isUpdatable"));
  Message description = MOKA_TRY(pipeline.edit("description"));
  const bool learns = MOKA_TRY(integer_of(next, "isUpdatable")) != 0;
  std::vector<Message> inputs;
  std::set<std::string> names;
  if (learns) {
    for (const Message& input : MOKA_TRY(description.children("input"))) {
      inputs.push_back(input.copy());
      names.insert(MOKA_TRY(text_of(input, "name")));
    }
    const Message described = MOKA_TRY(child_or_empty(next, "description"));
    for (const Message& input : MOKA_TRY(described.children("trainingInput")))
      if (const std::string name = MOKA_TRY(text_of(input, "name"));
          !computed.contains(name) && names.insert(name).second)
        inputs.push_back(input.copy());
  }
  MOKA_TRY(description.set_all("trainingInput", inputs));
  return learns ? pipeline.set("isUpdatable", format::Scalar(true)) : pipeline.clear("isUpdatable");
}

}  // namespace

Status add_stage(format::ModelSource& pipeline, const format::ModelSource& model, const std::string& name) {
  Message content = MOKA_TRY(format::edit_pipeline(pipeline.specification));
  Message stage = model.specification.copy();
  MOKA_TRY(bring_weights(pipeline, model.weights, stage));
  MOKA_TRY(content.set("models", stage));
  std::vector<std::string> names = MOKA_TRY(texts_of(content, "names"));
  names.push_back(name);
  return set_texts(content, "names", names);
}

Status wrap_in_pipeline(format::ModelSource& source, const std::string& name) {
  const std::string kind = MOKA_TRY(kind_of(source.specification));
  const std::vector<Interface> all = MOKA_TRY(interfaces(source.specification));
  if (all.size() != 1 || all[0].function != "main")
    return fail(ErrorCode::invalid_argument, "a pipeline takes models without functions; extract one first");
  const format::ModelSource stage = source;
  const bool classifies = !MOKA_TRY(text_of(all[0].message, "predictedProbabilitiesName")).empty();
  Message model = MOKA_TRY(Message::make("Model"));
  MOKA_TRY(
      set_integer(model, "specificationVersion", MOKA_TRY(integer_of(stage.specification, "specificationVersion"))));
  MOKA_TRY(model.set("description", MOKA_TRY(stage.specification.child("description"))));
  if (MOKA_TRY(integer_of(stage.specification, "isUpdatable")) != 0)
    MOKA_TRY(model.set("isUpdatable", format::Scalar(true)));
  MOKA_TRY(model.edit(pipeline_kind(kind, classifies)));
  source.specification = model;
  source.weights.clear();
  return add_stage(source, stage, name);
}

Status append(format::ModelSource& source, const std::string& name, const format::ModelSource& next,
              const std::string& next_name) {
  if (!is_pipeline(MOKA_TRY(kind_of(source.specification)))) MOKA_TRY(wrap_in_pipeline(source, name));
  const std::vector<Interface> described = MOKA_TRY(interfaces(next.specification));
  if (described.size() != 1 || described[0].function != "main")
    return fail(ErrorCode::invalid_argument, "a pipeline takes models without functions; extract one first");
  Message interface = MOKA_TRY(interfaces(source.specification)).at(0).message;
  std::map<std::string, Feature> inputs, outputs, states;
  std::vector<Message> new_inputs, new_outputs, new_states;
  for (const Feature& f : MOKA_TRY(features({"main", interface}))) {
    (f.is_state ? states : f.is_input ? inputs : outputs).emplace(f.name, f);
    if (f.is_input) (f.is_state ? new_states : new_inputs).push_back(f.message);
  }
  std::map<std::string, bool> read;
  std::vector<Feature> results;
  for (const Feature& f : MOKA_TRY(features(described[0]))) {
    if (f.is_state) {
      if (states.contains(f.name)) return fail(ErrorCode::invalid_argument, "two models have a state '", f.name, "'");
      new_states.push_back(f.message);
      continue;
    }
    if (!f.is_input) {
      results.push_back(f);
      continue;
    }
    const auto computed = outputs.find(f.name), given = inputs.find(f.name);
    const Feature* from = computed != outputs.end() ? &computed->second
                          : given != inputs.end()   ? &given->second
                                                    : nullptr;
    if (from == nullptr) {
      new_inputs.push_back(f.message);
      continue;
    }
    const std::string before = MOKA_TRY(type_of(*from)), after = MOKA_TRY(type_of(f));
    if (before != after)
      return fail(ErrorCode::invalid_argument, "'", f.name, "': ", next_name, " reads it as ", after,
                  ", but it is given as ", before);
    if (computed != outputs.end()) read[f.name] = true;
  }
  for (const Feature& f : MOKA_TRY(features({"main", interface}))) {
    if (f.is_input || read.contains(f.name)) continue;
    if (std::any_of(results.begin(), results.end(), [&](const Feature& r) { return r.name == f.name; }))
      return fail(ErrorCode::invalid_argument, "two models compute '", f.name, "'; rename one of them");
    new_outputs.push_back(f.message);
  }
  for (const Feature& f : results) new_outputs.push_back(f.message);
  MOKA_TRY(add_stage(source, next, next_name));
  MOKA_TRY(interface.set_all("input", new_inputs));
  MOKA_TRY(interface.set_all("output", new_outputs));
  MOKA_TRY(interface.set_all("state", new_states));
  const std::string label = MOKA_TRY(text_of(described[0].message, "predictedFeatureName"));
  const std::string probabilities = MOKA_TRY(text_of(described[0].message, "predictedProbabilitiesName"));
  MOKA_TRY(set_text(interface, "predictedFeatureName", label));
  MOKA_TRY(set_text(interface, "predictedProbabilitiesName", probabilities));
  MOKA_TRY(describe_training(source.specification, next.specification, outputs));
  MOKA_TRY(need_version(source.specification, MOKA_TRY(integer_of(next.specification, "specificationVersion"))));
  const std::string old = MOKA_TRY(kind_of(source.specification));
  const std::string kind = pipeline_kind(MOKA_TRY(kind_of(next.specification)), !probabilities.empty());
  if (kind == old) return {};
  const Message content = MOKA_TRY(format::edit_pipeline(source.specification)).copy();
  if (kind == "pipeline") return source.specification.set(kind, content);
  Message outer = MOKA_TRY(source.specification.edit(kind));
  return outer.set("pipeline", content);
}

Status extract_stage(format::ModelSource& source, const std::string& name) {
  const std::vector<Stage> stages = MOKA_TRY(stages_of(source.specification));
  size_t index = stages.size();
  std::string known;
  for (size_t i = stages.size(); i-- > 0;) {
    known = cat(stages[i].name, known.empty() ? "" : ", ", known);
    if (stages[i].name == name) index = i;
  }
  size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (index == stages.size() && error == std::errc() && end == name.data() + name.size()) index = number;
  if (index >= stages.size())
    return fail(ErrorCode::not_found, "the pipeline has no stage '", name, "'; it has: ", known);
  source.specification = stages[index].model.copy();
  return drop_unused_weights(source);
}

}  // namespace moka::editing
