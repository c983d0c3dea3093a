// SPDX-License-Identifier: Apache-2.0
#include "plan/assign.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "plan/assign_costs.h"

namespace moka::plan {

namespace {

constexpr int kMostSearched = 32;

Error refused(const CostGraph& graph, int node) {
  std::string units;
  for (const CostUnit& u : graph.units)
    if (u.allowed) units += cat(units.empty() ? "" : ", ", u.name);
  const int pin = graph.pins.empty() ? -1 : graph.pins[static_cast<size_t>(node)];
  if (pin >= static_cast<int>(graph.units.size()))
    return fail(ErrorCode::internal, "assignment: node ", node, " is pinned to unit ", pin);
  if (pin >= 0)
    return fail(ErrorCode::unsupported, "node ", node, " is pinned to ", graph.units[static_cast<size_t>(pin)].name,
                ", which ", graph.units[static_cast<size_t>(pin)].allowed ? "refuses it" : "is not allowed");
  return fail(ErrorCode::unsupported, "node ", node, " runs on none of ", units);
}

/// Puts each node on `unit` if that can run it, otherwise on the cheapest unit that can.
Labels mostly_on(const Costs& costs, int unit) {
  Labels labels(static_cast<size_t>(costs.nodes()), -1);
  for (int i = 0; i < costs.nodes(); i++) {
    int best = unit;
    for (int u = 0; u < costs.units() && !costs.can(i, unit); u++)
      if (costs.compute(i, u) < costs.compute(i, best)) best = u;
    labels[static_cast<size_t>(i)] = costs.can(i, best) ? best : -1;
  }
  return labels;
}

Labels cheapest(const Costs& costs, const AssignOptions& options, bool& is_optimal) {
  Labels best = mostly_on(costs, 0);
  double least = costs.cost(best).total();
  auto offer = [&](Labels labels) {
    if (labels == best) return;
    improve_by_moves(costs, labels);
    if (const double total = costs.cost(labels).total(); is_less(total, least)) {
      least = total;
      best = std::move(labels);
    }
  };
  for (double share : {0.0, 1.0}) {
    Labels cut = mostly_on(costs, 0);
    improve_by_cuts(costs, share, cut);
    offer(std::move(cut));
  }
  for (int unit = 1; unit < costs.units(); unit++)
    if (costs.graph().units[static_cast<size_t>(unit)].allowed) offer(mostly_on(costs, unit));
  is_optimal =
      options.exact_steps > 0 && costs.nodes() <= kMostSearched && improve_by_search(costs, options.exact_steps, best);
  return best;
}

}  // namespace

void CostGraph::connect(int a, int b, TransferCost cost) {
  const size_t n = units.size();
  if (transfers.size() != n * n) transfers.resize(n * n);
  transfers[static_cast<size_t>(a) * n + static_cast<size_t>(b)] = cost;
  transfers[static_cast<size_t>(b) * n + static_cast<size_t>(a)] = cost;
}

Result<GraphAssignment> assign(const CostGraph& graph, const AssignOptions& options) {
  const Costs costs = MOKA_TRY(Costs::of(graph));
  for (int i = 0; i < costs.nodes(); i++) {
    bool can = false;
    for (int u = 0; u < costs.units(); u++) can |= costs.can(i, u);
    if (!can) return refused(graph, i);
  }
  GraphAssignment out;
  out.unit = cheapest(costs, options, out.is_optimal);
  Regions regions = find_regions(costs, out.unit);
  out.cost = costs.cost(out.unit, regions);
  out.region = std::move(regions.of);
  for (int unit : regions.unit) out.regions.push_back({unit, {}, 0});
  for (int i = 0; i < costs.nodes(); i++)
    if (const int r = out.region[static_cast<size_t>(i)]; r >= 0)
      out.regions[static_cast<size_t>(r)].nodes.push_back(i);
  for (AssignedRegion& r : out.regions) r.saves = costs.change(out.unit, r.nodes, 0).total() - costs.launch(r.unit);
  for (size_t v = 0; v < graph.values.size(); v++) {
    const int from = costs.maker(static_cast<int>(v), out.unit);
    for (uint64_t to = costs.readers(static_cast<int>(v), out.unit); to != 0; to &= to - 1) {
      const int unit = std::countr_zero(to);
      const bool moves = costs.has_regions(from) || costs.has_regions(unit);
      if (moves)
        out.transfers.push_back({static_cast<int>(v), from, unit, costs.move(from, unit, graph.values[v].bytes)});
    }
  }
  std::vector<int> all(graph.nodes());
  std::iota(all.begin(), all.end(), 0);
  const Labels host(graph.nodes(), 0);
  out.on_host =
      std::all_of(all.begin(), all.end(), [&](int i) { return costs.can(i, 0); }) ? costs.cost(host).total() : kRefused;
  schedule(costs, out);
  return out;
}

AssignedCost change_if(const CostGraph& graph, const GraphAssignment& assignment, int node, int unit) {
  auto costs = Costs::of(graph);
  if (!costs.ok() || !costs->can(node, unit)) return {kRefused};
  Labels labels = assignment.unit;
  AssignedCost change = costs->change(labels, std::span(&node, 1), unit);
  labels[static_cast<size_t>(node)] = unit;
  change.launches = find_regions(*costs, labels).launches - assignment.cost.launches;
  return change;
}

}  // namespace moka::plan
