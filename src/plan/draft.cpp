#include "plan/draft.h"

#include <algorithm>

namespace moka::plan {

namespace {

class GraphMaker {
 public:
  GraphMaker(const Draft& draft, const PlanOptions& options) : draft_(draft), devices_(accelerators(options)) {
    graph_.units.push_back({"host"});
    std::vector<TransferCost> transfer(1);
    for (const kernel::Device* d : devices_) {
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
    for (const DraftOp& d : draft.ops) add_node(d, options);
    add_values();
  }
  const CostGraph& graph() const { return graph_; }
  const ir::Value* value(int index) const { return values_[static_cast<size_t>(index)]; }
  const kernel::Device* device(int unit) const { return unit == 0 ? nullptr : devices_[static_cast<size_t>(unit) - 1]; }

 private:
  void add_node(const DraftOp& d, const PlanOptions& options) {
    // A view goes where its input is: pinned alone, it would only cross twice. A state belongs to a device.
    const bool may_be_pinned = !d.view || d.op->has_trait(ir::Trait::stateful);
    const kernel::Device* pin = options.pinned_device && may_be_pinned ? options.pinned_device(*d.op) : nullptr;
    std::vector<double> seconds(graph_.units.size(), d.view ? 0 : kRefused);
    seconds[0] = d.bids.empty() ? 0 : d.bids[0].seconds;
    for (size_t b = 1; b < d.bids.size(); b++)
      if (d.bids[b].refusal.empty() && d.bids[b].device->memory() != nullptr)
        seconds[unit_of(d.bids[b].device)] = d.bids[b].seconds;
    const size_t pinned = pin == nullptr ? seconds.size() : unit_of(pin);
    if (pinned < seconds.size() && seconds[pinned] != kRefused)
      for (size_t u = 0; u < seconds.size(); u++)
        if (u != pinned) seconds[u] += kUnpinned;
    graph_.seconds.insert(graph_.seconds.end(), seconds.begin(), seconds.end());
  }

  size_t unit_of(const kernel::Device* device) const {
    return static_cast<size_t>(std::find(devices_.begin(), devices_.end(), device) - devices_.begin() + 1) %
           (devices_.size() + 1);
  }

  void add_values() {
    std::unordered_map<const ir::Value*, size_t> index;
    const auto value = [&](const ir::Value* v) -> CostValue* {
      auto bytes = draft_.bytes.find(v);
      if (bytes == draft_.bytes.end()) return nullptr;
      const auto [it, is_new] = index.emplace(v, graph_.values.size());
      if (is_new) {
        graph_.values.push_back({.bytes = static_cast<double>(bytes->second)});
        values_.push_back(v);
      }
      return &graph_.values[it->second];
    };
    for (size_t n = 0; n < draft_.ops.size(); n++) {
      const ir::Op& op = *draft_.ops[n].op;
      for (const ir::Operand& o : op.operands())
        for (const ir::Value* v : o.values)
          if (CostValue* read = value(v);
              read != nullptr && (read->consumers.empty() || read->consumers.back() != static_cast<int>(n)))
            read->consumers.push_back(static_cast<int>(n));
      for (size_t i = 0; i < op.output_count(); i++)
        if (CostValue* made = value(op.output(i))) {
          made->producer = static_cast<int>(n);
          made->output = !op.output(i)->returned_by().empty();
        }
      order_states(op, static_cast<int>(n));
    }
  }

  /// Operations on states, random draws and control flow stay in the order of the program.
  void order_states(const ir::Op& op, int node) {
    if (!op.has_trait(ir::Trait::stateful) && !op.has_trait(ir::Trait::random) && !op.has_trait(ir::Trait::control))
      return;
    if (last_ordered_ >= 0) graph_.orders.emplace_back(last_ordered_, node);
    last_ordered_ = node;
  }

  const Draft& draft_;
  std::vector<const kernel::Device*> devices_;
  CostGraph graph_;
  std::vector<const ir::Value*> values_;
  int last_ordered_ = -1;
};

}  // namespace

std::vector<const kernel::Device*> host_devices(const PlanOptions& options) {
  std::vector<const kernel::Device*> out;
  for (const kernel::Device* d : options.devices)
    if (d->memory() == nullptr) out.push_back(d);
  return out;
}

std::vector<const kernel::Device*> accelerators(const PlanOptions& options) {
  std::vector<const kernel::Device*> out;
  for (const kernel::Device* d : options.devices)
    if (d->memory() != nullptr) out.push_back(d);
  return out;
}

bool applies_epilogues(const kernel::Device& device, const kernel::KernelChoice& choice,
                       std::span<const ir::Epilogue> epilogue) {
  return std::all_of(epilogue.begin() + static_cast<std::ptrdiff_t>(std::min(choice.epilogues, epilogue.size())),
                     epilogue.end(), [&](const ir::Epilogue& e) { return device.applies(e); });
}

Result<Placement> place(Draft draft, const PlanOptions& options) {
  const GraphMaker made(draft, options);
  const Assignment assignment = MOKA_TRY(assign(made.graph()));
  Placement out;
  auto decision = std::make_shared<Decision>();
  decision->compute = assignment.cost.compute;
  decision->transfers = assignment.cost.transfers;
  decision->launches = assignment.cost.launches;
  // An assignment that violates a pin cannot be chosen.
  const auto allowed = [](double seconds) { return seconds < kUnpinned / 2 ? seconds : kRefused; };
  decision->on_host = allowed(assignment.on_host);
  decision->is_optimal = assignment.is_optimal;
  for (const AssignedRegion& r : assignment.regions)
    decision->regions.push_back({made.graph().units[static_cast<size_t>(r.unit)].launch, allowed(r.saves)});
  const std::vector<std::string> reasons = reasons_of(draft, made.graph(), assignment);
  for (size_t t = 0; t < reasons.size(); t++)
    decision->reasons.try_emplace({made.value(assignment.transfers[t].value), assignment.transfers[t].to == 0},
                                  reasons[t]);
  for (int n : assignment.order) {
    out.order.push_back(draft.ops[static_cast<size_t>(n)].op);
    out.region.push_back(assignment.region[static_cast<size_t>(n)]);
  }
  for (size_t n = 0; n < draft.ops.size(); n++) {
    DraftOp& d = draft.ops[n];
    const kernel::Device* device = made.device(assignment.unit[n]);
    const kernel::Device* pin = options.pinned_device ? options.pinned_device(*d.op) : nullptr;
    if (device == nullptr && pin != nullptr && pin->memory() == nullptr) device = pin;
    if (device != nullptr) out.device[d.op] = device;
    if (const int region = assignment.region[n]; region >= 0) decision->region_of[d.op] = region;
    out.bids[d.op] = std::make_shared<std::vector<Bid>>(std::move(d.bids));
  }
  out.decision = std::move(decision);
  return out;
}

std::string refusal_of(const Step& step, const kernel::Device& device) {
  for (const Refusal& r : step.refusals)
    if (r.device == device.name()) return r.reason;
  if (step.bids)
    for (const Bid& b : *step.bids)
      if (b.device == &device) return b.refusal;
  return {};
}

}  // namespace moka::plan
