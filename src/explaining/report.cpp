// SPDX-License-Identifier: Apache-2.0
#include "explaining/report.h"

#include <algorithm>
#include <map>
#include <set>

#include "kernel/device.h"
#include "plan/late.h"

namespace moka::explaining {

namespace {

/// Operations that do not run where they are pinned.
class RefusedPins {
 public:
  void add(const kernel::Device& device, const plan::KernelCall& s) {
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

/// Batch norms that a device computes in dispatches of their own, with the reason that its kernel notes.
class OwnDispatches {
 public:
  void add(const plan::KernelCall& s) {
    if (s.op->type_name() == "batch_norm" && s.choice->note.starts_with("a dispatch"))
      found_[{s.device->name(), s.choice->note}].push_back(s.op->name);
  }
  void add_to(std::vector<PassRemark>& to) const {
    constexpr size_t kMostNames = 8;
    for (const auto& [where, names] : found_) {
      std::string list;
      for (size_t i = 0; i < std::min(names.size(), kMostNames); i++) list += cat(i > 0 ? ", " : "", names[i]);
      if (names.size() > kMostNames) list += cat(" and ", names.size() - kMostNames, " more");
      to.push_back({"batch norms", cat(list, " on ", where.first, ": ", where.second)});
    }
  }

 private:
  std::map<std::pair<std::string_view, std::string>, std::vector<std::string>> found_;
};

class Reporter {
 public:
  Reporter(ComputePlan& out, const plan::PlanOptions& options, const StepTimes* times)
      : out_(out), options_(options), times_(times) {}
  ~Reporter() {
    refused_.add_to(out_.remarks);
    own_dispatches_.add_to(out_.remarks);
  }

  void add(const plan::Plan& plan, int depth) {
    out_.arena_bytes += plan.memory.arena_bytes;
    out_.unshared_bytes += plan.memory.unshared_bytes;
    if (plan.parent == nullptr || plan.parent->sequence.block != plan.sequence.block) out_.folded += plan.folded;
    const size_t first_region = out_.regions.size();
    add_regions(plan);
    const Of of{plan, plan::CopiedValues(plan.sequence), first_region, depth};
    for (const plan::Step& s : plan.sequence.steps) {
      if (const auto* launch = std::get_if<plan::Launch>(&s))
        for (const plan::RegionStep& inner : plan.sequence.region(launch->region).steps)
          std::visit([&](const auto& one) { add_step(of, one, launch->region, nullptr); }, inner);
      std::visit([&](const auto& one) { add_step(of, one, -1, &s); }, s);
    }
    if (plan.sequence.is_complete()) return;
    if (const plan::Control* control = plan::control_of(*plan.sequence.pending)) add_step(of, *control, -1, nullptr);
    auto rest = plan.continuations->snapshot();
    if (!rest.empty())
      add(*rest.front(), depth);
    else
      out_.complete = false;
  }

 private:
  /// The plan whose steps are added.
  struct Of {
    const plan::Plan& plan;
    plan::CopiedValues values;
    size_t first_region;
    int depth;

    const plan::Place& place(int i) const { return plan.sequence.place(i); }
    const plan::Region& region(int r) const { return plan.sequence.region(r); }
  };

  void add_regions(const plan::Plan& plan) {
    const auto bytes_of = [&](const std::vector<int>& places) {
      size_t n = 0;
      for (int i : places) n += plan::bytes_of(plan.sequence.place(i));
      return n;
    };
    for (const plan::Region& r : plan.sequence.regions) {
      PlannedRegion p;
      p.device = r.device->name();
      p.upload_bytes = bytes_of(r.uploads);
      p.download_bytes = bytes_of(r.downloads);
      const plan::Decision::Region* decided = nullptr;
      for (const plan::RegionStep& one : r.steps) {
        const plan::Run* run = std::get_if<plan::Run>(&one);
        if (run == nullptr) continue;
        const plan::Run& step = *run;
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
  static double seconds_of(const plan::KernelCall& s) {
    if (s.bids)
      for (const plan::Bid& b : *s.bids)
        if (b.device == s.device && b.refusal.empty()) return b.seconds;
    return s.choice->cost;
  }

  void add_bids(const plan::KernelCall& s, PlannedOperation& p) const {
    const auto unit_of = [&](std::string_view name) {
      for (const kernel::Device* d : options_.devices)
        if (d->name() == name) return std::string(d->unit_name());
      return std::string();
    };
    if (s.bids) {
      for (const plan::Bid& b : *s.bids)
        p.bids.push_back({std::string(b.device->name()), std::string(b.device->unit_name()), b.seconds, b.refusal,
                          b.advice.remedy, b.advice.source, b.advice.rule, b.advice.doubt});
    } else {
      p.bids.push_back({p.device, unit_of(p.device), s.choice->cost, {}, {}, {}, {}, {}});
    }
    for (const plan::Refusal& r : s.refusals)
      if (r.device != p.device &&
          std::none_of(p.bids.begin(), p.bids.end(), [&](const UnitBid& b) { return b.device == r.device; }))
        p.bids.push_back(
            {r.device, unit_of(r.device), 0, r.reason, r.advice.remedy, r.advice.source, r.advice.rule, {}});
  }

  template <class One>
  void add_step(const Of& of, const One& step, int region, const plan::Step* host) {
    if constexpr (requires { step.region; }) region = step.region;
    if constexpr (requires { step.from.region; }) region = step.from.region;
    if constexpr (requires { step.to.region; }) region = step.to.region;
    PlannedOperation p;
    p.depth = of.depth;
    if (region >= 0) p.region = static_cast<int>(of.first_region) + region;
    if constexpr (std::is_base_of_v<plan::Call, One>) {
      p.type = step.op->type_name();
      p.name = step.op->name;
    }
    p.device = region >= 0 ? std::string(of.region(region).device->name()) : "executor";
    describe(of, step, p);
    for (int o : plan::writes_of(of.plan.sequence, step)) p.outputs.push_back(cat(of.place(o).type));
    if (const auto out = plan::writes_of(of.plan.sequence, step); !out.empty())
      p.layout = kernel::to_string(of.place(out[0]).layout);
    if (times_ != nullptr)
      if (auto it = times_->find(host); it != times_->end()) {
        p.measured_seconds = it->second.first;
        p.runs = it->second.second;
      }
    out_.operations.push_back(std::move(p));
    if constexpr (std::is_base_of_v<plan::Control, One>)
      for (const auto& cache : step.blocks) {
        const auto inner = cache->snapshot();
        if (!inner.empty())
          add(*inner.front(), of.depth + 1);
        else
          out_.complete = false;
      }
  }

  void describe(const Of&, const plan::Run& step, PlannedOperation& p) {
    describe_kernel(step, p);
    p.note = step.choice->note;
    p.estimated_seconds = seconds_of(step);
  }
  void describe(const Of&, const plan::Placed& step, PlannedOperation& p) {
    describe_kernel(step, p);
    p.note = step.choice->cuts.empty() ? "no copy: its inputs are made in place" : "no copy: parts of its input";
  }
  static void describe(const Of& of, const plan::Convert& step, PlannedOperation& p) {
    describe_conversion(of, step.from, step.to, p);
  }
  static void describe(const Of& of, const plan::DeviceConvert& step, PlannedOperation& p) {
    describe_conversion(of, step.from, step.to, p);
  }
  static void describe(const Of&, const plan::Control&, PlannedOperation&) {}
  static void describe(const Of& of, const plan::Upload& step, PlannedOperation& p) {
    describe_crossing(of, step.from, false, cat("to ", p.device), p);
  }
  static void describe(const Of& of, const plan::Download& step, PlannedOperation& p) {
    const int from = of.region(step.from.region).downloads[step.from.index];
    describe_crossing(of, from, true, cat("from ", p.device), p);
  }
  static void describe(const Of& of, const plan::Transfer& step, PlannedOperation& p) {
    const plan::Region& r = of.region(step.from.region);
    describe_crossing(of, r.downloads[step.from.index], false, cat("from ", r.device->name(), " to ", p.device), p);
  }
  static void describe(const Of& of, const plan::Launch& step, PlannedOperation& p) {
    p.type = "submit";
    const auto& steps = of.region(step.region).steps;
    const auto count = std::count_if(
        steps.begin(), steps.end(), [](const plan::RegionStep& s) { return !std::holds_alternative<plan::Placed>(s); });
    p.note = cat(count, " steps in one submission");
  }
  static void describe(const Of&, const plan::Wait&, PlannedOperation& p) { p.type = "wait"; }

  void describe_kernel(const plan::KernelCall& step, PlannedOperation& p) {
    own_dispatches_.add(step);
    p.device = step.device->name();
    p.kernel = step.choice->kernel;
    for (const ir::Epilogue& e : step.op->epilogue) p.fused.push_back(e.origin);
    p.chosen_by = plan::to_string(step.by);
    if (step.measurement) {
      p.shape = step.measurement->shape;
      p.kernel_by_rule = step.measurement->by_rule;
      for (const plan::KernelTime& t : step.measurement->times) p.candidates.push_back({t.kernel, t.seconds});
    }
    add_bids(step, p);
    if (options_.pinned_device)
      if (const kernel::Device* pin = options_.pinned_device(*step.op);
          pin != nullptr && pin != step.device && !plan::refusal_of(step, *pin).empty())
        refused_.add(*pin, step);
    for (const plan::Refusal& r : step.refusals) p.refusals.push_back(cat(r.device, ": ", r.reason));
  }

  static void describe_conversion(const Of& of, int from, int to, PlannedOperation& p) {
    const plan::Place &a = of.place(from), &b = of.place(to);
    p.type = "convert_layout";
    if (const ir::Value* v = of.values.of(from)) p.name = v->name;
    p.note = !(a.type == b.type)    ? "pixels to planes"
             : a.layout == b.layout ? "copy"
                                    : cat(kernel::to_string(a.layout), " to ", kernel::to_string(b.layout));
  }

  /// `way`: "to gpu", "from gpu".
  static void describe_crossing(const Of& of, int from, bool is_download, const std::string& way, PlannedOperation& p) {
    const plan::Plan& plan = of.plan;
    p.type = "transfer";
    p.bytes = plan::bytes_of(of.place(from));
    p.note = cat(p.bytes, " bytes ", way);
    if (!plan.sequence.is_complete() && is_download)
      p.reason = cat("the plan ends at '", plan.sequence.pending_op().name, "' (",
                     plan.sequence.pending_op().type_name(), "), whose shapes depend on values");
    const ir::Value* v = of.values.of(from);
    if (v == nullptr) return;
    p.name = v->name;
    if (plan.decision == nullptr) return;
    if (auto at = plan.decision->reasons.find({v, is_download});
        at != plan.decision->reasons.end() && !at->second.empty())
      p.reason = at->second;
  }

  ComputePlan& out_;
  const plan::PlanOptions& options_;
  const StepTimes* times_;
  OwnDispatches own_dispatches_;
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

}  // namespace moka::explaining
