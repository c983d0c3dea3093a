// SPDX-License-Identifier: Apache-2.0
#include "import/pipeline/thresholds.h"

#include <cmath>
#include <set>

#include "format/proto/model.pb.h"

namespace moka::import {
namespace {

constexpr int kMaxThresholdDepth = 16;

using Thresholds = std::map<std::string, double>;

void add(Thresholds& to, const std::string& name, double value) {
  if (name.empty()) return;
  const auto [it, added] = to.emplace(name, value);
  if (!added && it->second != value) it->second = std::nan("");
}

Thresholds of_suppression(const proto::NonMaximumSuppression& m) {
  Thresholds out;
  add(out, m.iouthresholdinputfeaturename(), m.iouthreshold());
  add(out, m.confidencethresholdinputfeaturename(), m.confidencethreshold());
  out.erase(m.coordinatesinputfeaturename());
  out.erase(m.confidenceinputfeaturename());
  return out;
}

Thresholds find(const proto::Model& model, const format::ModelFile& file, int depth) {
  if (model.has_nonmaximumsuppression()) return of_suppression(model.nonmaximumsuppression());
  Thresholds out;
  if (depth > kMaxThresholdDepth) return out;
  std::set<std::string> computed, used;
  for (const format::ModelFile::Stage& stage : file.stages(model)) {
    const Thresholds own = find(*stage.model, stage.file, depth + 1);
    for (const auto& [name, value] : own)
      if (!computed.contains(name)) add(out, name, value);
    for (const auto& input : stage.model->description().input())
      if (!own.contains(input.name()) && !computed.contains(input.name())) used.insert(input.name());
    for (const auto& output : stage.model->description().output()) computed.insert(output.name());
  }
  for (const std::string& name : used) out.erase(name);
  return out;
}

/// Whether NaN can represent a missing value.
bool may_be_missing(const FeatureDescription& f) {
  return f.kind == FeatureKind::float64 || (f.kind == FeatureKind::multi_array && ir::is_float(f.array.dtype));
}

}  // namespace

std::map<std::string, double> thresholds(const proto::Model& model, const format::ModelFile& file) {
  return find(model, file, 0);
}

void mark_thresholds(const proto::Model& model, const format::ModelFile& file, FunctionDescription& function) {
  const Thresholds all = thresholds(model, file);
  for (FeatureDescription& f : function.inputs) {
    const auto it = all.find(f.name);
    if (it == all.end() || !may_be_missing(f)) continue;
    f.optional = true;
    f.threshold = it->second;
  }
}

}  // namespace moka::import
