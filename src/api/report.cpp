#include <set>

#include "api/internal.h"

namespace moka::api {

namespace {

class Reporter {
 public:
  Reporter(ComputePlan& out, const StepTimes* times) : out_(out), times_(times) {}

  void add(const plan::Plan& plan, int depth) {
    out_.arena_bytes += plan.arena_bytes;
    out_.unshared_bytes += plan.largest_unshared_bytes;
    if (plan.parent == nullptr || plan.parent->block != plan.block) count_folded(plan);
    for (const plan::Step& s : plan.steps) add_step(plan, s, depth);
    if (plan.pending == nullptr) return;
    if (plan.pending_runs_first) add_step(plan, plan.pending_step, depth);
    auto rest = plan.continuations->snapshot();
    if (!rest.empty())
      add(*rest.front(), depth);
    else
      out_.complete = false;
  }

 private:
  void count_folded(const plan::Plan& plan) {
    for (const auto& op : plan.block->ops()) {
      if (op->has_trait(ir::Trait::constant) || op->output_count() == 0) continue;
      auto it = plan.place_of.find(op->output());
      if (it != plan.place_of.end() && plan.places[static_cast<size_t>(it->second)].storage == plan::Storage::constant)
        out_.folded++;
    }
  }

  void add_step(const plan::Plan& plan, const plan::Step& s, int depth) {
    PlannedOperation p;
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
      p.name = from.value != nullptr ? from.value->name : "";
      p.note =
          from.layout == to.layout ? "copy" : cat(kernel::to_string(from.layout), " to ", kernel::to_string(to.layout));
    }
    if (s.kind == plan::Step::Kind::transfer) {
      const plan::Place& from = plan.places[static_cast<size_t>(s.in[0])];
      const plan::Place& to = plan.places[static_cast<size_t>(s.out[0])];
      if (const ir::Value* v = from.value != nullptr ? from.value : to.value) p.name = v->name;
      const auto bytes = kernel::storage_bytes(from.type.dtype(), from.type.shape(), from.layout);
      p.note = cat(bytes.ok() ? *bytes : 0, " bytes ", to.device != nullptr ? "to " : "from ", p.device);
    } else if (s.kind == plan::Step::Kind::submit) {
      p.note = cat(plan.regions[static_cast<size_t>(s.region)].steps.size(), " steps in one submission");
    }
    if (s.choice && s.op != nullptr) {
      p.kernel = s.choice->kernel;
      p.note = s.choice->note;
      if (s.kind == plan::Step::Kind::placed)
        p.note = s.choice->cuts.empty() ? "no copy: its inputs are made in place" : "no copy: parts of its input";
      else
        p.estimated_seconds = s.choice->cost;
      for (const ir::Epilogue& e : s.op->epilogue) p.fused.push_back(e.origin);
      p.chosen_by = plan::to_string(s.by);
      if (s.measurement) {
        p.shape = s.measurement->shape;
        p.kernel_by_rule = s.measurement->by_rule;
        for (const plan::KernelTime& t : s.measurement->times) p.candidates.push_back({t.kernel, t.seconds});
      }
    }
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
  const StepTimes* times_;
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
  Reporter(out, times).add(plan, 0);
  for (const passes::Remark& r : model.remarks()) out.remarks.push_back({std::string(r.pass), r.text});
  out.operations_in_source = model.operations_in_source();
  const plan::ConstantPool& pool = *model.plan_options().constants;
  out.packed_bytes = pool.packed_bytes();
  if (pool.cache() != nullptr) out.cached_bytes = pool.cache()->found_bytes();
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
