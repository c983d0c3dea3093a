// SPDX-License-Identifier: Apache-2.0
#include "plan/assignment.h"

#include <algorithm>
#include <numeric>

#include "plan/plan.h"

namespace moka::plan {

namespace {

class GraphMaker {
 public:
  GraphMaker(const Resolved& resolved, const Claims& claims, const PlanOptions& options)
      : resolved_(resolved), claims_(claims), values_(resolved.values.size(), -1), maker_(resolved.values.size(), -1) {
    graph_.units.push_back({"host"});
    std::vector<TransferCost> transfer(1);
    for (const kernel::Device* d : claims.accelerators) {
      const kernel::UnitRates rates = options.rates ? options.rates->of(d->name()) : kernel::UnitRates{};
      graph_.units.push_back({std::string(d->name()), true, rates.launch});
      transfer.push_back({rates.latency, rates.bytes_per_second});
    }
    // A value goes from one device to another through the host.
    for (size_t u = 1; u < graph_.units.size(); u++) {
      graph_.connect(static_cast<int>(u), 0, transfer[u]);
      for (size_t v = 1; v < u; v++)
        graph_.connect(static_cast<int>(u), static_cast<int>(v),
                       {transfer[u].latency + transfer[v].latency,
                        1 / (1 / transfer[u].bytes_per_second + 1 / transfer[v].bytes_per_second)});
    }
    for (size_t n = 0; n < resolved.ops.size(); n++) add_node(*resolved.ops[n].op, claims.ops[n], options);
  }

  Result<CostGraph> run() {
    for (size_t n = 0; n < resolved_.ops.size(); n++) MOKA_TRY(add_values(static_cast<int>(n)));
    return std::move(graph_);
  }
  /// The values of the graph, in its order.
  const std::vector<const ir::Value*>& values() const { return of_; }

 private:
  void add_node(const ir::Op& op, const OpClaims& claims, const PlanOptions& options) {
    // A view goes where its input is: pinned alone, it would only cross twice. A state belongs to a device.
    const bool may_be_pinned = !claims.is_view || op.has_trait(ir::Trait::stateful);
    const kernel::Device* pin = options.pinned_device && may_be_pinned ? options.pinned_device(op) : nullptr;
    std::vector<double> seconds(graph_.units.size(), claims.is_view ? 0 : kRefused);
    seconds[0] = 0;
    if (claims.bids) {
      seconds[0] = claims.bids->front().seconds;
      for (const Bid& b : std::span(*claims.bids).subspan(1))
        if (b.refusal.empty() && b.device->memory() != nullptr) seconds[unit_of(b.device)] = b.seconds;
    }
    const size_t pinned = pin == nullptr ? seconds.size() : unit_of(pin);
    if (pinned < seconds.size() && seconds[pinned] != kRefused)
      for (size_t u = 0; u < seconds.size(); u++)
        if (u != pinned) seconds[u] += kUnpinned;
    graph_.seconds.insert(graph_.seconds.end(), seconds.begin(), seconds.end());
  }

  size_t unit_of(const kernel::Device* device) const {
    const auto& devices = claims_.accelerators;
    return static_cast<size_t>(std::find(devices.begin(), devices.end(), device) - devices.begin() + 1) %
           (devices.size() + 1);
  }

  /// The value in the graph; nullptr: it is constant or no tensor of numbers.
  Result<CostValue*> value(int i) {
    const ResolvedValue& v = resolved_.at(i);
    if (v.is_constant() || is_object(v.type)) return nullptr;
    int& index = values_[static_cast<size_t>(i)];
    if (index < 0) {
      index = static_cast<int>(graph_.values.size());
      const size_t bytes = MOKA_TRY(kernel::storage_bytes(v.type.dtype(), v.type.shape(), {}));
      graph_.values.push_back({.bytes = static_cast<double>(bytes)});
      of_.push_back(v.value);
    }
    return &graph_.values[static_cast<size_t>(index)];
  }

  Status add_values(int n) {
    const ResolvedOp& op = resolved_.ops[static_cast<size_t>(n)];
    for (const std::vector<int>* read_by : {&op.in, &op.captured})
      for (int i : *read_by)
        if (CostValue* read = MOKA_TRY(value(i)); read == nullptr)
          order_object(i, n);
        else if (read->consumers.empty() || read->consumers.back() != n)
          read->consumers.push_back(n);
    for (int i : op.out) maker_[static_cast<size_t>(i)] = n;
    for (int i : op.out)
      if (CostValue* made = MOKA_TRY(value(i))) {
        made->producer = n;
        made->output = !resolved_.at(i).value->returned_by().empty();
      }
    order_states(*op.op, n);
    return {};
  }

  /// Lists, dictionaries and strings cost nothing, but they are made before they are read.
  void order_object(int i, int node) {
    if (const int maker = maker_[static_cast<size_t>(i)]; maker >= 0) graph_.orders.emplace_back(maker, node);
  }

  /// Operations on states, random draws and control flow stay in the order of the program.
  void order_states(const ir::Op& op, int node) {
    if (!op.has_trait(ir::Trait::stateful) && !op.has_trait(ir::Trait::random) && !op.has_trait(ir::Trait::control))
      return;
    if (last_ordered_ >= 0) graph_.orders.emplace_back(last_ordered_, node);
    last_ordered_ = node;
  }

  const Resolved& resolved_;
  const Claims& claims_;
  CostGraph graph_;
  std::vector<int> values_;  ///< by resolved value: its index in the graph; -1: none
  std::vector<int> maker_;   ///< by resolved value: the node that makes it
  std::vector<const ir::Value*> of_;
  int last_ordered_ = -1;
};

/// An assignment that violates a pin cannot be chosen.
double allowed(double seconds) { return seconds < kUnpinned / 2 ? seconds : kRefused; }

}  // namespace

Result<Assignment> assign(const Resolved& resolved, const Claims& claims, const PlanOptions& options) {
  Assignment out;
  out.device.resize(resolved.ops.size());
  out.region.resize(resolved.ops.size(), -1);
  if (claims.accelerators.empty()) {
    out.order.resize(resolved.ops.size());
    std::iota(out.order.begin(), out.order.end(), 0);
    return out;
  }
  GraphMaker maker(resolved, claims, options);
  const CostGraph graph = MOKA_TRY(maker.run());
  const GraphAssignment cut = MOKA_TRY(assign(graph));
  auto decision = std::make_shared<Decision>();
  decision->compute = cut.cost.compute;
  decision->transfers = cut.cost.transfers;
  decision->launches = cut.cost.launches;
  decision->on_host = allowed(cut.on_host);
  decision->is_optimal = cut.is_optimal;
  for (const AssignedRegion& r : cut.regions)
    decision->regions.push_back({graph.units[static_cast<size_t>(r.unit)].launch, allowed(r.saves)});
  const std::vector<std::string> reasons = reasons_of(resolved, claims, graph, cut);
  for (size_t t = 0; t < reasons.size(); t++) {
    const AssignedTransfer& moved = cut.transfers[t];
    decision->reasons.try_emplace({maker.values()[static_cast<size_t>(moved.value)], moved.to == 0}, reasons[t]);
  }
  for (size_t n = 0; n < resolved.ops.size(); n++) {
    if (cut.unit[n] > 0) out.device[n] = claims.accelerators[static_cast<size_t>(cut.unit[n]) - 1];
    if (cut.region[n] >= 0) decision->region_of[resolved.ops[n].op] = cut.region[n];
  }
  out.order = cut.order;
  out.region = cut.region;
  out.decision = std::move(decision);
  return out;
}

Status check(const Assignment& assignment, const Resolved& resolved) {
  const size_t ops = resolved.ops.size();
  if (assignment.order.size() != ops || assignment.device.size() != ops || assignment.region.size() != ops)
    return fail(ErrorCode::internal, "an assignment of ", assignment.order.size(), " operations for ", ops);
  std::vector<char> is_known(resolved.values.size(), 1);
  for (const ResolvedOp& op : resolved.ops)
    for (int i : op.out) is_known[static_cast<size_t>(i)] = 0;
  std::vector<char> is_done(ops, 0), is_left(ops + 1, 0);
  int last = -1;
  for (int n : assignment.order) {
    if (n < 0 || static_cast<size_t>(n) >= ops || is_done[static_cast<size_t>(n)])
      return fail(ErrorCode::internal, "operation ", n, " is not in the block, or is assigned twice");
    const auto k = static_cast<size_t>(n);
    is_done[k] = 1;
    const ResolvedOp& op = resolved.ops[k];
    for (const std::vector<int>* read : {&op.in, &op.captured})
      for (int i : *read)
        if (!is_known[static_cast<size_t>(i)])
          return fail(ErrorCode::internal, "'", op.op->name, "' comes before '", resolved.at(i).value->name,
                      "', which it reads");
    for (int i : op.out) is_known[static_cast<size_t>(i)] = 1;
    const int region = assignment.region[k];
    if ((region >= 0) != (assignment.device[k] != nullptr) || region >= static_cast<int>(ops))
      return fail(ErrorCode::internal, "'", op.op->name, "' has a region but no device, or a device but no region");
    if (region != last && last >= 0) is_left[static_cast<size_t>(last)] = 1;
    if (region >= 0 && is_left[static_cast<size_t>(region)])
      return fail(ErrorCode::internal, "region ", region, " goes on at '", op.op->name, "' after it was left");
    last = region;
  }
  return {};
}

}  // namespace moka::plan
