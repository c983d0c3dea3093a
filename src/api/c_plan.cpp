// SPDX-License-Identifier: Apache-2.0
#include "api/c_support.h"

using namespace moka::api;
using moka::cat;

struct moka_compute_plan {
  /// Pointers to the texts of an operation.
  struct Texts {
    std::vector<const char*> fused, refusals, outputs;
  };

  explicit moka_compute_plan(moka::ComputePlan made) : plan(std::move(made)) {
    for (size_t i = 0; i < plan.operations.size(); i++) {
      const moka::PlannedOperation& o = plan.operations[i];
      texts.push_back({pointers(o.fused), pointers(o.refusals), pointers(o.outputs)});
      // Control flow contains the operations that follow it at a larger depth.
      if (i + 1 == plan.operations.size() || plan.operations[i + 1].depth <= o.depth)
        estimated_seconds += o.estimated_seconds;
    }
  }

  const moka::ComputePlan plan;
  std::vector<Texts> texts;
  double estimated_seconds = 0;
};

namespace {

moka::Features default_or(const moka_features* inputs) { return inputs == nullptr ? moka::Features{} : inputs->values; }

const moka::PlannedOperation& operation_at(const moka_compute_plan* plan, size_t index) {
  const auto& operations = need(plan, "plan").plan.operations;
  check_index(index, operations.size(), "operation");
  return operations[index];
}

moka_planned_operation c_operation(const moka_compute_plan& plan, size_t index) {
  const moka::PlannedOperation& o = plan.plan.operations[index];
  const moka_compute_plan::Texts& texts = plan.texts[index];
  moka_planned_operation out = MOKA_PLANNED_OPERATION_INIT;
  out.name = o.name.c_str();
  out.type = o.type.c_str();
  out.device = o.device.c_str();
  out.kernel = o.kernel.c_str();
  out.note = o.note.c_str();
  out.layout = o.layout.c_str();
  out.chosen_by = o.chosen_by.c_str();
  out.reason = o.reason.c_str();
  out.estimated_seconds = o.estimated_seconds;
  out.measured_seconds = o.measured_seconds;
  out.cost = plan.estimated_seconds > 0 ? o.estimated_seconds / plan.estimated_seconds : 0;
  out.runs = o.runs;
  out.depth = o.depth;
  out.region = o.region;
  out.bytes = o.bytes;
  out.fused_count = texts.fused.size();
  out.fused = texts.fused.data();
  out.refusal_count = texts.refusals.size();
  out.refusals = texts.refusals.data();
  out.output_count = texts.outputs.size();
  out.outputs = texts.outputs.data();
  out.bid_count = o.bids.size();
  return out;
}

moka_plan_totals c_totals(const moka_compute_plan& made) {
  const moka::ComputePlan& p = made.plan;
  moka_plan_totals out = MOKA_PLAN_TOTALS_INIT;
  out.estimated_seconds = made.estimated_seconds;
  out.measured_seconds = p.measured_seconds;
  out.predictions = p.predictions;
  out.complete = p.complete ? 1 : 0;
  out.compute_seconds = p.cost.compute;
  out.transfer_seconds = p.cost.transfers;
  out.launch_seconds = p.cost.launches;
  out.host_seconds = p.cost.on_host;
  out.is_optimal = p.cost.is_optimal ? 1 : 0;
  out.rates = p.rates.c_str();
  out.operations_in_source = p.operations_in_source;
  out.folded = p.folded;
  out.arena_bytes = p.arena_bytes;
  out.unshared_bytes = p.unshared_bytes;
  out.packed_bytes = p.packed_bytes;
  out.cached_bytes = p.cached_bytes;
  out.memory_bytes = p.memory.total();
  return out;
}

}  // namespace

extern "C" {

moka_status moka_model_compute_plan(const moka_model* model, const moka_features* inputs, int predictions,
                                    moka_compute_plan** plan) {
  return guarded([&] {
    need(plan, "plan");
    if (predictions < 0) wrong(cat("predictions: expected 0 or more, got ", predictions));
    *plan = new moka_compute_plan(need(model, "model").model.compute_plan(default_or(inputs), predictions));
  });
}

void moka_compute_plan_free(moka_compute_plan* plan) { delete plan; }

size_t moka_compute_plan_operation_count(const moka_compute_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.operations.size();
}

moka_status moka_compute_plan_operation(const moka_compute_plan* plan, size_t index,
                                        moka_planned_operation* operation) {
  return guarded([&] {
    operation_at(plan, index);
    give(operation, c_operation(*plan, index), "operation");
  });
}

moka_status moka_compute_plan_bid(const moka_compute_plan* plan, size_t operation, size_t index, moka_unit_bid* bid) {
  return guarded([&] {
    const auto& bids = operation_at(plan, operation).bids;
    check_index(index, bids.size(), "bid");
    const moka::UnitBid& b = bids[index];
    give(bid, {0, b.device.c_str(), b.unit.c_str(), b.seconds, b.refusal.c_str(), b.remedy.c_str(), b.source.c_str()},
         "bid");
  });
}

moka_status moka_compute_plan_totals(const moka_compute_plan* plan, moka_plan_totals* totals) {
  return guarded([&] { give(totals, c_totals(need(plan, "plan")), "totals"); });
}

size_t moka_compute_plan_region_count(const moka_compute_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.regions.size();
}

moka_status moka_compute_plan_region(const moka_compute_plan* plan, size_t index, moka_planned_region* region) {
  return guarded([&] {
    const auto& regions = need(plan, "plan").plan.regions;
    check_index(index, regions.size(), "region");
    const moka::PlannedRegion& r = regions[index];
    give(region, {0, r.device.c_str(), r.operations, r.upload_bytes, r.download_bytes, r.seconds, r.launch, r.saves},
         "region");
  });
}

size_t moka_compute_plan_remark_count(const moka_compute_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.remarks.size();
}

moka_status moka_compute_plan_remark(const moka_compute_plan* plan, size_t index, const char** pass,
                                     const char** text) {
  return guarded([&] {
    const auto& remarks = need(plan, "plan").plan.remarks;
    check_index(index, remarks.size(), "remark");
    need(pass, "pass");
    need(text, "text");
    *pass = remarks[index].pass.c_str();
    *text = remarks[index].text.c_str();
  });
}

moka_status moka_model_plan_text(const moka_model* model, const moka_features* inputs, moka_plan_stage stage,
                                 const char** text) {
  return guarded([&] {
    thread_local std::string last;
    need(text, "text");
    const moka::PlanStage which = enumerator<moka::PlanStage>(stage, MOKA_PLAN_MEMORY + 1, "stage");
    last = need(model, "model").model.plan_text(which, default_or(inputs));
    *text = last.c_str();
  });
}

}  // extern "C"
