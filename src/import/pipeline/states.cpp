// SPDX-License-Identifier: Apache-2.0
#include "import/pipeline/states.h"

#include <algorithm>

#include "format/model_file.h"
#include "format/proto/model.pb.h"

namespace moka::import {
namespace {

constexpr int kMaxStateDepth = 16;

using States = std::vector<const proto::FeatureDescription*>;

template <class Description>
void add(States& to, const Description& d) {
  for (const proto::FeatureDescription& state : d.state())
    if (std::none_of(to.begin(), to.end(), [&](const auto* s) { return s->name() == state.name(); }))
      to.push_back(&state);
}

void collect(const proto::Model& model, const format::ModelFile& file, int depth, States& to) {
  if (depth > kMaxStateDepth) return;
  for (const format::ModelFile::Stage& stage : file.stages(model)) {
    const proto::ModelDescription& d = stage.model->description();
    add(to, d);
    for (const auto& f : d.functions())
      if (f.name() == (d.defaultfunctionname().empty() ? "main" : d.defaultfunctionname())) add(to, f);
    if (format::pipeline_of(*stage.model) != nullptr) collect(*stage.model, stage.file, depth + 1, to);
  }
}

}  // namespace

std::vector<const proto::FeatureDescription*> stage_states(const proto::Model& model, const format::ModelFile& file) {
  States out;
  if (format::pipeline_of(model) != nullptr) collect(model, file, 0, out);
  return out;
}

}  // namespace moka::import
