#include <algorithm>
#include <map>
#include <set>

#include "api/internal.h"
#include "kernel/device.h"
#include "plan/late.h"

namespace moka::api {

namespace {

/// Finds the value that a place of a plan holds, even if the place is a copy.
class Values {
 public:
  explicit Values(const plan::Plan& plan) : plan_(plan), from_(plan.places.size(), -1) {
    for (const plan::Step& s : plan.steps)
      if (s.op == nullptr && s.in.size() == 1 && s.out.size() == 1) from_[static_cast<size_t>(s.out[0])] = s.in[0];
    for (const plan::PixelInput& p : plan.pixels) from_[static_cast<size_t>(p.place)] = plan.inputs[p.input];
  }
  const ir::Value* of(int place) const {
    while (place >= 0 && plan_.places[static_cast<size_t>(place)].value == nullptr)
      place = from_[static_cast<size_t>(place)];
    return place < 0 ? nullptr : plan_.places[static_cast<size_t>(place)].value;
  }

 private:
  const plan::Plan& plan_;
  std::vector<int> from_;  ///< by place: the place that it was copied from
};

/// Operations that do not run where they are pinned.
class RefusedPins {
 public:
  void add(const kernel::Device& device, const plan::Step& s) {
    Refused& r = by_device_[&device];
    if (r.count++ > 0) return;
    r.first = cat("'", s.op->name, "' (", s.op->type_name(), ")");
    r.reason = plan::refusal_of(s, device);
  }
  void add_to(std::vector<PassRemark>& to) const {
    std::vector<PassRemark> made;
    for (const auto& [device, r] : by_device_)
      made.push_back({"pins", cat("device '", device->name(), "' refuses ", r.count,
                                  r.count == 1 ? " operation that is" : " operations that are", " pinned to it, ",
                                  r.count == 1 ? "" : "such as ", r.first, ": ", r.reason)});
    std::sort(made.begin(), made.end(), [](const auto& a, const auto& b) { return a.text < b.text; });
    std::move(made.begin(), made.end(), std::back_inserter(to));
  }

 private:
  struct Refused {
    int64_t count = 0;
    std::string first, reason;
  };
  std::map<const kernel::Device*, Refused> by_device_;
};

class Reporter {
 public:
  Reporter(ComputePlan& out, const plan::PlanOptions& options, const StepTimes* times)
      : out_(out), options_(options), times_(times) {}
  ~Reporter() { refused_.add_to(out_.remarks); }

  void add(const plan::Plan& plan, int depth) {
    out_.arena_bytes += plan.arena_bytes;
    out_.unshared_bytes += plan.largest_unshared_bytes;
    if (plan.parent == nullptr || plan.parent->block != plan.block) out_.folded += plan.folded;
    const size_t first_region = out_.regions.size();
    add_regions(plan);
    const Values values(plan);
    for (const plan::Step& s : plan.steps) add_step(plan, values, first_region, s, depth);
    if (plan.pending == nullptr) return;
    if (plan.pending_runs_first) add_step(plan, values, first_region, plan.pending_step, depth);
    auto rest = plan.continuations->snapshot();
    if (!rest.empty())
      add(*rest.front(), depth);
    else
      out_.complete = false;
  }

 private:
  void add_regions(const plan::Plan& plan) {
    const auto bytes_of = [&](const std::vector<int>& places) {
      size_t n = 0;
      for (int i : places) n += bytes(plan.places[static_cast<size_t>(i)]);
      return n;
    };
    for (const plan::Region& r : plan.regions) {
      PlannedRegion p;
      p.device = r.device->name();
      p.upload_bytes = bytes_of(r.uploads);
      p.download_bytes = bytes_of(r.downloads);
      const plan::Decision::Region* decided = nullptr;
      for (int s : r.steps) {
        const plan::Step& step = plan.steps[static_cast<size_t>(s)];
        if (step.op == nullptr) continue;
        p.operations++;
        if (step.bids)
          for (const plan::Bid& b : *step.bids)
            if (b.device == r.device) p.seconds += b.seconds;
        if (plan.decision == nullptr) continue;
        if (auto at = plan.decision->region_of.find(step.op); at != plan.decision->region_of.end())
          decided = &plan.decision->regions[static_cast<size_t>(at->second)];
      }
      if (decided != nullptr) {
        p.launch = decided->launch;
        p.saves = decided->saves;
      }
      out_.regions.push_back(std::move(p));
    }
    if (plan.decision == nullptr) return;
    const plan::Decision& d = *plan.decision;
    out_.cost.compute += d.compute;
    out_.cost.transfers += d.transfers;
    out_.cost.launches += d.launches;
    out_.cost.on_host += d.on_host;
    out_.cost.is_optimal = d.is_optimal && (!decided_ || out_.cost.is_optimal);
    decided_ = true;
  }

  /// By the rates in use, when several devices were compared.
  static double seconds_of(const plan::Step& s) {
    if (s.bids)
      for (const plan::Bid& b : *s.bids)
        if (b.device == s.device && b.refusal.empty()) return b.seconds;
    return s.choice->cost;
  }

  static size_t bytes(const plan::Place& p) {
    const auto n = kernel::storage_bytes(p.type.dtype(), p.type.shape(), p.layout);
    return n.ok() ? *n : 0;
  }

  void add_bids(const plan::Step& s, PlannedOperation& p) const {
    const auto unit_of = [&](std::string_view name) {
      for (const kernel::Device* d : options_.devices)
        if (d->name() == name) return std::string(d->unit_name());
      return std::string();
    };
    if (s.bids) {
      for (const plan::Bid& b : *s.bids)
        p.bids.push_back({std::string(b.device->name()), std::string(b.device->unit_name()), b.seconds, b.refusal,
                          b.advice.remedy, b.advice.source});
    } else if (s.device != nullptr && s.choice) {
      p.bids.push_back({p.device, unit_of(p.device), s.choice->cost, {}, {}, {}});
    }
    for (const plan::Refusal& r : s.refusals)
      if (r.device != p.device &&
          std::none_of(p.bids.begin(), p.bids.end(), [&](const UnitBid& b) { return b.device == r.device; }))
        p.bids.push_back({r.device, unit_of(r.device), 0, r.reason, r.advice.remedy, r.advice.source});
  }

  void add_step(const plan::Plan& plan, const Values& values, size_t first_region, const plan::Step& s, int depth) {
    // The store of a state that is computed in its memory.
    if (s.kind == plan::Step::Kind::placed && s.op == nullptr) return;
    PlannedOperation p;
    if (s.region >= 0) p.region = static_cast<int>(first_region) + s.region;
    p.depth = depth;
    switch (s.kind) {
      case plan::Step::Kind::convert: p.type = "convert_layout"; break;
      case plan::Step::Kind::transfer: p.type = "transfer"; break;
      case plan::Step::Kind::submit: p.type = "submit"; break;
      case plan::Step::Kind::wait: p.type = "wait"; break;
      default: p.type = s.op->type_name();
    }
    p.device = s.device != nullptr ? std::string(s.device->name()) : "executor";
    if (s.op != nullptr) p.name = s.op->name;
    if (s.kind == plan::Step::Kind::convert) {
      const plan::Place& from = plan.places[static_cast<size_t>(s.in[0])];
      const plan::Place& to = plan.places[static_cast<size_t>(s.out[0])];
      if (const ir::Value* v = values.of(s.in[0])) p.name = v->name;
      p.note = !(from.type == to.type)    ? "pixels to planes"
               : from.layout == to.layout ? "copy"
                                          : cat(kernel::to_string(from.layout), " to ", kernel::to_string(to.layout));
    }
    if (s.kind == plan::Step::Kind::transfer) {
      const plan::Place& from = plan.places[static_cast<size_t>(s.in[0])];
      const plan::Place& to = plan.places[static_cast<size_t>(s.out[0])];
      p.bytes = bytes(from);
      p.note = cat(p.bytes, " bytes ", to.device != nullptr ? "to " : "from ", p.device);
      const ir::Value* v = values.of(s.in[0]);
      if (plan.pending != nullptr && to.device == nullptr)
        p.reason = cat("the plan ends at '", plan.pending->name, "' (", plan.pending->type_name(),
                       "), whose shapes depend on values");
      if (v != nullptr) {
        p.name = v->name;
        if (plan.decision != nullptr)
          if (auto at = plan.decision->reasons.find({v, to.device == nullptr});
              at != plan.decision->reasons.end() && !at->second.empty())
            p.reason = at->second;
      }
    } else if (s.kind == plan::Step::Kind::submit) {
      p.note = cat(plan.regions[static_cast<size_t>(s.region)].steps.size(), " steps in one submission");
    }
    if (s.choice && s.op != nullptr) {
      p.kernel = s.choice->kernel;
      p.note = s.choice->note;
      if (s.kind == plan::Step::Kind::placed)
        p.note = s.choice->cuts.empty() ? "no copy: its inputs are made in place" : "no copy: parts of its input";
      else
        p.estimated_seconds = seconds_of(s);
      for (const ir::Epilogue& e : s.op->epilogue) p.fused.push_back(e.origin);
      p.chosen_by = plan::to_string(s.by);
      if (s.measurement) {
        p.shape = s.measurement->shape;
        p.kernel_by_rule = s.measurement->by_rule;
        for (const plan::KernelTime& t : s.measurement->times) p.candidates.push_back({t.kernel, t.seconds});
      }
    }
    if (s.op != nullptr) add_bids(s, p);
    if (s.op != nullptr && s.choice && options_.pinned_device)
      if (const kernel::Device* pin = options_.pinned_device(*s.op);
          pin != nullptr && pin != s.device && !plan::refusal_of(s, *pin).empty())
        refused_.add(*pin, s);
    for (const plan::Refusal& r : s.refusals) p.refusals.push_back(cat(r.device, ": ", r.reason));
    for (int o : s.out) p.outputs.push_back(cat(plan.places[static_cast<size_t>(o)].type));
    if (!s.out.empty()) p.layout = kernel::to_string(plan.places[static_cast<size_t>(s.out[0])].layout);
    if (times_ != nullptr)
      if (auto it = times_->find(&s); it != times_->end()) {
        p.measured_seconds = it->second.first;
        p.runs = it->second.second;
      }
    out_.operations.push_back(std::move(p));
    for (const auto& cache : s.blocks)
      if (cache) {
        auto inner = cache->snapshot();
        if (!inner.empty())
          add(*inner.front(), depth + 1);
        else
          out_.complete = false;
      }
  }

  ComputePlan& out_;
  const plan::PlanOptions& options_;
  const StepTimes* times_;
  RefusedPins refused_;
  bool decided_ = false;
};

void list_operations(const ir::Block& block, int depth, OperationList& out, std::set<const ir::Value*>& seen) {
  auto weight = [&](const ir::Value& v, const std::string& name) {
    if (v.constant() == nullptr || !v.type.is_tensor() || v.type.dtype() == ir::DType::string ||
        !seen.insert(&v).second)
      return;
    const ir::Constant& c = *v.constant();
    if (c.tensor.count() < 2 && c.blob_path.empty()) return;
    out.weights.push_back({name, cat(v.type), c.tensor.bytes(), c.blob_path.empty() ? "inline" : "file"});
  };
  for (const auto& op : block.ops()) {
    if (op->has_trait(ir::Trait::constant)) {
      weight(*op->output(), op->output()->name);
      continue;
    }
    OperationList::Operation o;
    o.name = op->name;
    o.type = op->type_name();
    o.depth = depth;
    for (const ir::Operand& operand : op->operands()) {
      const std::string& param = op->version().params[static_cast<size_t>(operand.param)].name;
      for (const ir::Value* v : operand.values) {
        if (v->is_inline_constant()) weight(*v, cat(op->name, ".", param));
        o.inputs.emplace_back(param, v->is_inline_constant() ? cat(v->type) : v->name);
      }
    }
    for (size_t i = 0; i < op->output_count(); i++)
      o.outputs.emplace_back(op->output(i)->name, cat(op->output(i)->type));
    out.operations.push_back(std::move(o));
    for (size_t b = 0; b < op->block_count(); b++) list_operations(*op->block(b), depth + 1, out, seen);
  }
}

}  // namespace

ComputePlan report(const runtime::Model& model, const plan::Plan& plan, const StepTimes* times) {
  ComputePlan out;
  if (plan.late != nullptr) plan.late->finish();
  Reporter(out, model.plan_options(), times).add(plan, 0);
  out.rates = model.plan_options().rates ? model.plan_options().rates->source : kernel::Rates{}.source;
  for (const passes::Remark& r : model.remarks()) out.remarks.push_back({std::string(r.pass), r.text});
  out.operations_in_source = model.operations_in_source();
  const plan::ConstantPool& pool = *model.plan_options().constants;
  out.packed_bytes = pool.packed_bytes();
  if (pool.cache() != nullptr) out.cached_bytes = pool.cache()->found_bytes();
  for (const auto& w : operations(model).weights)
    if (w.storage == "file") out.memory.mapped += w.bytes;
  out.memory.packed = out.packed_bytes + out.cached_bytes;
  out.memory.constants = model.plan_options().constants->kept_bytes();
  out.memory.shared = pool.shared_bytes();
  out.memory.arenas = model.session_bytes();
  return out;
}

OperationList operations(const runtime::Model& model) {
  OperationList out;
  out.function = model.ir().name;
  out.opset = ir::to_string(model.ir().opset);
  std::set<const ir::Value*> seen;
  list_operations(model.ir().body(), 0, out, seen);
  return out;
}

}  // namespace moka::api
