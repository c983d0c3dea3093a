// SPDX-License-Identifier: Apache-2.0
#include "editing/pipeline.h"

#include <algorithm>

#include "format/source.h"

namespace moka::editing {

Result<std::vector<Stage>> stages_of(const Message& model) {
  const Message pipeline = MOKA_TRY(format::edit_pipeline(model));
  const std::vector<std::string> names = MOKA_TRY(texts_of(pipeline, "names"));
  std::vector<Stage> out;
  for (const Message& stage : MOKA_TRY(pipeline.children("models")))
    out.push_back({out.size() < names.size() ? names[out.size()] : cat(out.size()), stage});
  return out;
}

namespace {

Result<bool> has(const Message& model, std::string_view name, Side side) {
  for (const Interface& interface : MOKA_TRY(interfaces(model)))
    for (const Feature& feature : MOKA_TRY(features(interface)))
      if (feature.name == name && is_on(feature, side)) return true;
  return false;
}

}  // namespace

Result<std::vector<StagePlace>> places_of(const Message& model, std::string_view name, Side side) {
  struct Use {
    StagePlace place;
    int version;  ///< number of earlier stages that computed the feature
  };
  std::vector<Use> uses;
  int version = 0;
  const std::vector<Stage> stages = MOKA_TRY(stages_of(model));
  for (size_t i = 0; i < stages.size(); ++i) {
    if (MOKA_TRY(has(stages[i].model, name, Side::inputs))) uses.push_back({{i, true}, version});
    if (MOKA_TRY(has(stages[i].model, name, Side::outputs))) uses.push_back({{i, false}, ++version});
  }
  const bool input = side != Side::outputs && MOKA_TRY(has(model, name, Side::inputs));
  const bool output = side != Side::inputs && MOKA_TRY(has(model, name, Side::outputs));
  std::vector<StagePlace> out;
  for (const Use& use : uses)
    if ((input && use.version == 0) || (output && use.version == version)) out.push_back(use.place);
  return out;
}

}  // namespace moka::editing
