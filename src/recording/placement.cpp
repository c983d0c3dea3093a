// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "recording/values.h"

namespace moka {

namespace {

using Preview = PlacedOperation::Preview;
using Verdict = PlacedOperation::Verdict;

/// The steps of a plan by the names of the operations that they compute.
class Planned {
 public:
  Planned(const ComputePlan& plan, const ModelStructure& structure) {
    for (const PlannedOperation& o : plan.operations) {
      if (o.kernel.empty()) continue;
      steps_.emplace(o.name, &o);
      for (const std::string& name : o.fused) steps_.emplace(name, &o);
    }
    add(structure);
  }

  /// Null: the plan has no such operation. `name`: becomes that of the operation.
  const PlannedOperation* find(const RecordedOperation& o, std::string& name) const {
    std::vector<std::string> candidates;
    if (!o.name.empty()) candidates.push_back(o.name);
    for (const std::string& output : o.outputs) {
      if (const auto at = by_value_.find(output); at != by_value_.end()) candidates.push_back(at->second);
      candidates.push_back(output);
    }
    name = candidates.empty() ? "" : candidates[0];
    for (const std::string& candidate : candidates)
      if (const auto at = steps_.find(candidate); at != steps_.end()) {
        name = candidate;
        return at->second;
      }
    return nullptr;
  }

 private:
  void add(const ModelStructure::Block& block) {
    for (const ModelStructure::Operation& o : block.operations) {
      for (const auto& [value, type] : o.outputs) by_value_.emplace(value, o.name);
      for (const ModelStructure::Block& inner : o.blocks) add(inner);
    }
  }
  void add(const ModelStructure& structure) {
    for (const ModelStructure::Function& f : structure.functions) add(f.body);
    for (const ModelStructure::Layer& layer : structure.layers)
      for (const std::string& output : layer.outputs) by_value_.emplace(output, layer.name);
    for (const ModelStructure::Part& part : structure.models) add(part.structure);
  }

  std::map<std::string, const PlannedOperation*> steps_;
  std::map<std::string, std::string> by_value_;  ///< the operation that computes a value
};

bool has(const std::vector<std::string>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

std::string unit_of(const PlannedOperation& step) {
  for (const UnitBid& b : step.bids)
    if (b.device == step.device) return b.unit;
  return step.device;
}

Preview judged(const UnitBid& bid, const RecordedOperation& recorded, std::string_view unit) {
  const bool is_supported = has(recorded.supported, unit), is_preferred = recorded.preferred == unit;
  if (!bid.refusal.empty()) return is_supported ? Preview::wrongly_refused : Preview::right;
  if (!is_supported) return Preview::wrongly_taken;
  if (!bid.doubt.empty()) return is_preferred ? Preview::wrongly_doubted : Preview::right;
  return is_preferred ? Preview::right : Preview::wrongly_trusted;
}

void compare(const PlannedOperation& step, std::string_view unit, PlacedOperation& to) {
  to.unit = unit_of(step);
  to.device = step.device;
  to.verdict = to.unit == to.recorded.preferred ? Verdict::same : Verdict::elsewhere;
  const auto bid = std::find_if(step.bids.begin(), step.bids.end(), [&](const UnitBid& b) { return b.unit == unit; });
  if (bid == step.bids.end()) return;
  to.preview = judged(*bid, to.recorded, unit);
  to.rule = bid->rule;
  to.reason = bid->refusal.empty() ? bid->doubt : bid->refusal;
  to.source = bid->source;
}

}  // namespace

Placement compare_placement(const ComputePlan& plan, const ModelStructure& structure, const RecordedSetting& setting,
                            std::string_view unit) {
  const Planned planned(plan, structure);
  Placement out;
  for (const RecordedOperation& recorded : setting.operations) {
    if (recorded.preferred.empty()) continue;
    PlacedOperation& one = out.operations.emplace_back();
    one.recorded = recorded;
    if (const PlannedOperation* step = planned.find(recorded, one.name)) compare(*step, unit, one);
    out.same += one.verdict == Verdict::same;
    out.elsewhere += one.verdict == Verdict::elsewhere;
    out.unplanned += one.verdict == Verdict::unplanned;
    out.right += one.preview == Preview::right;
    out.wrong_support += one.preview == Preview::wrongly_taken || one.preview == Preview::wrongly_refused;
    out.wrong_preference += one.preview == Preview::wrongly_doubted || one.preview == Preview::wrongly_trusted;
  }
  return out;
}

}  // namespace moka
