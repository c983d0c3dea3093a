// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plan/assignment.h"

namespace moka::plan {

namespace {

/// Number of values for which both directions are computed, since each computation visits the whole graph.
constexpr size_t kMostCompared = 64;

/// E.g. "7.1 µs", "294 µs", "7.05 ms".
std::string duration(double seconds) {
  const auto [unit, name] = seconds < 1e-3 ? std::pair(1e-6, " µs")
                            : seconds < 1  ? std::pair(1e-3, " ms")
                                           : std::pair(1.0, " s");
  const double value = seconds / unit, digit = value < 10 ? 100 : value < 100 ? 10 : 1;
  return cat(std::round(value * digit) / digit, name);
}

class Reasons {
 public:
  Reasons(const Resolved& resolved, const Claims& claims, const CostGraph& graph, const GraphAssignment& assignment)
      : resolved_(resolved), claims_(claims), graph_(graph), assignment_(assignment) {}

  /// Why one unit produces the value and another reads it.
  std::string of(const AssignedTransfer& t) {
    const CostValue& v = graph_.values[static_cast<size_t>(t.value)];
    const auto unit = [&](int node) { return assignment_.unit[static_cast<size_t>(node)]; };
    if (t.from == 0 && v.producer < 0) return "an input";
    if (t.from == 0) return why(v.producer, t.to);
    const auto reader = std::find_if(v.consumers.begin(), v.consumers.end(), [&](int n) { return unit(n) == t.to; });
    if (reader == v.consumers.end()) return "an output";
    return why(*reader, t.from);
  }

 private:
  /// Why the node does not run on that unit.
  std::string why(int node, int unit) {
    const ir::Op& of = *resolved_.ops[static_cast<size_t>(node)].op;
    const auto& bids = claims_.ops[static_cast<size_t>(node)].bids;
    const std::string& name = graph_.units[static_cast<size_t>(unit)].name;
    const std::string op = cat("'", of.name, "' (", of.type_name(), ")");
    if (graph_.at(node, unit) == kRefused) {
      if (bids)
        for (const Bid& b : *bids)
          if (b.device->name() == name && !b.refusal.empty()) return cat(name, " refuses ", op, ": ", b.refusal);
      return cat(op, " belongs to the host");
    }
    if (is_pinned(node, unit)) return cat(op, " is pinned");
    if (compared_++ >= kMostCompared) return cat(op, " costs less where it is");
    const double more = change_if(graph_, assignment_, node, unit).total();
    return more == kRefused ? std::string()
                            : cat(op, " on ", name, " would cost ", duration(std::max(0.0, more)), " more");
  }

  bool is_pinned(int node, int unit) const { return graph_.at(node, unit) >= kUnpinned; }

  const Resolved& resolved_;
  const Claims& claims_;
  const CostGraph& graph_;
  const GraphAssignment& assignment_;
  size_t compared_ = 0;
};

}  // namespace

std::vector<std::string> reasons_of(const Resolved& resolved, const Claims& claims, const CostGraph& graph,
                                    const GraphAssignment& cut) {
  Reasons reasons(resolved, claims, graph, cut);
  std::vector<std::string> out;
  for (const AssignedTransfer& t : cut.transfers) out.push_back(reasons.of(t));
  return out;
}

}  // namespace moka::plan
