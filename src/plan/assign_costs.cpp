// SPDX-License-Identifier: Apache-2.0
#include "plan/assign_costs.h"

#include <algorithm>
#include <bit>

namespace moka::plan {

void Lists::build(size_t keys, std::vector<std::pair<int, int>> pairs) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  first_.assign(keys + 1, 0);
  items_.clear();
  for (const auto& [key, item] : pairs) {
    first_[static_cast<size_t>(key) + 1]++;
    items_.push_back(item);
  }
  for (size_t k = 0; k < keys; k++) first_[k + 1] += first_[k];
}

Result<Costs> Costs::of(const CostGraph& graph) {
  const size_t units = graph.units.size(), nodes = graph.nodes();
  if (units == 0 || units > 64) return fail(ErrorCode::internal, "assignment to ", units, " units");
  if (graph.units[0].regions) return fail(ErrorCode::internal, "assignment: the host runs no regions");
  if (graph.seconds.size() != nodes * units || (!graph.pins.empty() && graph.pins.size() != nodes) ||
      (!graph.transfers.empty() && graph.transfers.size() != units * units))
    return fail(ErrorCode::internal, "assignment: tables of different sizes");
  Costs c;
  c.graph_ = &graph;
  c.nodes_ = static_cast<int>(nodes);
  c.units_ = static_cast<int>(units);
  c.compute_ = graph.seconds;
  for (size_t i = 0; i < nodes; i++)
    for (size_t u = 0; u < units; u++) {
      double& s = c.compute_[i * units + u];
      if (std::isnan(s) || s < 0) return fail(ErrorCode::internal, "assignment: node ", i, " takes ", s, " s");
      const int pin = graph.pins.empty() ? -1 : graph.pins[i];
      if (!graph.units[u].allowed || (pin >= 0 && pin != static_cast<int>(u))) s = kRefused;
    }
  std::vector<std::pair<int, int>> before, after, values;
  auto edge = [&](int from, int to) {
    if (from < 0 || from >= to || to >= c.nodes_) return false;
    before.emplace_back(to, from);
    after.emplace_back(from, to);
    return true;
  };
  for (size_t v = 0; v < graph.values.size(); v++) {
    const CostValue& value = graph.values[v];
    if (value.producer >= c.nodes_ || !(value.bytes >= 0))
      return fail(ErrorCode::internal, "assignment: value ", v, " is made by node ", value.producer, ", has ",
                  value.bytes, " bytes");
    if (value.producer >= 0) values.emplace_back(value.producer, static_cast<int>(v));
    for (int user : value.consumers) {
      if (user < 0 || user >= c.nodes_ || (value.producer >= 0 && !edge(value.producer, user)))
        return fail(ErrorCode::internal, "assignment: node ", user, " reads value ", v, " of node ", value.producer);
      values.emplace_back(user, static_cast<int>(v));
    }
  }
  for (const auto& [from, to] : graph.orders)
    if (!edge(from, to)) return fail(ErrorCode::internal, "assignment: node ", from, " is to run before node ", to);
  c.before_.build(nodes, std::move(before));
  c.after_.build(nodes, std::move(after));
  c.values_.build(nodes, std::move(values));
  c.seen_.assign(graph.values.size(), 0);
  return c;
}

uint64_t Costs::readers(int v, const Labels& labels) const {
  const CostValue& value = this->value(v);
  uint64_t units = value.output ? 1 : 0;
  for (int user : value.consumers) units |= uint64_t{1} << labels[static_cast<size_t>(user)];
  return units & ~(uint64_t{1} << maker(v, labels));
}

double Costs::transfers(int v, const Labels& labels) const {
  double seconds = 0;
  const int from = maker(v, labels);
  for (uint64_t units = readers(v, labels); units != 0; units &= units - 1)
    seconds += move(from, std::countr_zero(units), value(v).bytes);
  return seconds;
}

AssignedCost Costs::cost(const Labels& labels, const Regions& regions) const {
  AssignedCost c;
  for (int i = 0; i < nodes_; i++) c.compute += compute(i, labels[static_cast<size_t>(i)]);
  for (size_t v = 0; v < graph_->values.size(); v++) c.transfers += transfers(static_cast<int>(v), labels);
  c.launches = regions.launches;
  return c;
}

AssignedCost Costs::cost(const Labels& labels) const { return cost(labels, find_regions(*this, labels)); }

AssignedCost Costs::change(Labels& labels, std::span<const int> moved, int unit) const {
  AssignedCost c;
  std::vector<int> touched, old;
  now_++;
  for (int i : moved) {
    if (!can(i, unit)) return {kRefused};
    c.compute += compute(i, unit) - compute(i, labels[static_cast<size_t>(i)]);
    for (int v : values(i))
      if (int& seen = seen_[static_cast<size_t>(v)]; seen != now_) {
        seen = now_;
        touched.push_back(v);
        c.transfers -= transfers(v, labels);
      }
  }
  for (int i : moved) old.push_back(std::exchange(labels[static_cast<size_t>(i)], unit));
  for (int v : touched) c.transfers += transfers(v, labels);
  for (size_t k = 0; k < moved.size(); k++) labels[static_cast<size_t>(moved[k])] = old[k];
  return c;
}

}  // namespace moka::plan
