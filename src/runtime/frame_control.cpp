// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "runtime/frame.h"

namespace moka::runtime {

using plan::Plan;

namespace {
constexpr size_t kMaxChildren = 16;
}  // namespace

Result<Frame*> Frame::child(const std::shared_ptr<const Plan>& plan) {
  for (auto it = children_.begin(); it != children_.end(); ++it)
    if ((*it)->plan_ == plan) {
      std::rotate(it, it + 1, children_.end());
      return children_.back().get();
    }
  if (children_.size() >= kMaxChildren) children_.erase(children_.begin());
  children_.push_back(MOKA_TRY(make(plan, this, context_)));
  return children_.back().get();
}

Result<Frame*> Frame::branch(const plan::Control& step, size_t block, bool own_outputs,
                             const std::vector<ir::Type>& types) {
  const plan::PlanOptions& options = *context_.options;
  auto plan = MOKA_TRY(step.blocks[block]->get(types, options, [&] {
    const trace::Span span(trace::Lane::activity, "plan");
    return plan::plan_block(*step.op->block(block), types, plan_.get(), options, own_outputs);
  }));
  return child(plan);
}

Status Frame::run_block(const plan::Control& step, Frame& block) {
  MOKA_TRY_IN(block.run(), cat("operation '", step.op->name, "' (", step.op->type_name(), ")"));
  return {};
}

Result<bool> Frame::continues(const plan::Loop& step, Frame& test, int64_t iterations) {
  MOKA_TRY(run_block(step, test));
  MOKA_TRY(check_stop());
  if (ir::load_i64(test.output(0), 0) == 0) return false;
  if (iterations >= context_.loop_limit)
    return locate(
        fail(ErrorCode::data, "more than ", context_.loop_limit, " iterations, the limit of the load options"), step);
  return true;
}

Status Frame::execute(const plan::Cond& step, StepData& data) {
  key_.clear();
  Frame* f = MOKA_TRY(branch(step, ir::load_i64(data.in[0], 0) != 0 ? 0 : 1, false, key_));
  MOKA_TRY(run_block(step, *f));
  for (size_t i = 0; i < data.out.size(); i++) copy_value(sequence_.place(step.out[i]).type, f->output(i), data.out[i]);
  return {};
}

Status Frame::execute(const plan::Loop& step, StepData& data) {
  key_.clear();
  for (size_t i = 0; i < data.out.size(); i++) {
    key_.push_back(sequence_.place(step.in[i]).type);
    copy_value(key_[i], data.in[i], data.out[i]);
  }
  Frame* test = MOKA_TRY(branch(step, 0, false, key_));
  Frame* body = MOKA_TRY(branch(step, 1, true, key_));
  for (int64_t n = 0;; n++) {
    for (size_t i = 0; i < data.out.size(); i++) test->set_input(i, data.out[i].data);
    if (!MOKA_TRY(continues(step, *test, n))) return {};
    for (size_t i = 0; i < data.out.size(); i++) body->set_input(i, data.out[i].data);
    MOKA_TRY(run_block(step, *body));
    for (size_t i = 0; i < data.out.size(); i++) copy_value(key_[i], body->output(i), data.out[i]);
  }
}

Status Frame::run_growing_loop(const plan::Loop& step) {
  size_t count = step.op->output_count();
  auto keep = [&](LoopValue& l, const ir::Type& type, const ir::TensorView& from) -> Status {
    l.type = type;
    l.view = from;
    if (type.is_tensor() && type.dtype() != ir::DType::string) {
      ir::Tensor t = MOKA_TRY(ir::Tensor::zeros(type.dtype(), type.shape()));
      l.view.data = t.mutable_data();
      copy_value(type, from, l.view);
      l.tensor = std::move(t);
    } else {
      Object o;
      l.view.data = object_data(type, o);
      copy_value(type, from, l.view);
      l.object = std::move(o);
      l.view.data = object_data(type, l.object);
    }
    return {};
  };
  loop_values_.resize(count);
  for (size_t i = 0; i < count; i++) MOKA_TRY(keep(loop_values_[i], sequence_.place(step.in[i]).type, pending_.in[i]));
  for (int64_t n = 0;; n++) {
    key_.clear();
    for (const LoopValue& l : loop_values_) key_.push_back(l.type);
    Frame* test = MOKA_TRY(branch(step, 0, false, key_));
    for (size_t i = 0; i < count; i++) test->set_input(i, loop_values_[i].view.data);
    if (!MOKA_TRY(continues(step, *test, n))) return {};
    Frame* body = MOKA_TRY(branch(step, 1, true, key_));
    for (size_t i = 0; i < count; i++) body->set_input(i, loop_values_[i].view.data);
    MOKA_TRY(run_block(step, *body));
    std::vector<LoopValue> next(count);
    for (size_t i = 0; i < count; i++) MOKA_TRY(keep(next[i], body->output_type(i), body->output(i)));
    loop_values_ = std::move(next);
    for (LoopValue& l : loop_values_)
      if (!l.type.is_tensor() || l.type.dtype() == ir::DType::string) l.view.data = object_data(l.type, l.object);
  }
}

Result<std::vector<ir::Type>> Frame::infer_pending(const plan::Infer& step) const {
  auto inferred = step.op->version().infer(*pending_.call);
  if (!inferred.ok()) return locate(std::move(inferred).error(), step);
  std::vector<ir::Type> types = std::move(inferred).value();
  for (const ir::Type& t : types) {
    if (!t.is_tensor()) continue;
    if (!t.is_concrete())
      return locate(fail(ErrorCode::internal, "its result ", t, " is not known even from its inputs' values"), step);
    if (auto bytes = ir::storage_bytes(t.dtype(), t.shape()); !bytes.ok())
      return locate(std::move(bytes).error(), step);
  }
  return types;
}

Status Frame::run_pending() {
  const plan::PlanOptions& options = *context_.options;
  std::vector<ir::Type> types;
  std::vector<void*> results;
  if (const auto* cond = std::get_if<plan::Cond>(&*sequence_.pending)) {
    key_.clear();
    Frame* f = MOKA_TRY(branch(*cond, ir::load_i64(pending_.in[0], 0) != 0 ? 0 : 1, false, key_));
    MOKA_TRY(run_block(*cond, *f));
    for (size_t i = 0; i < cond->op->output_count(); i++) {
      types.push_back(f->output_type(i));
      results.push_back(f->output(i).data);
    }
  } else if (const auto* loop = std::get_if<plan::Loop>(&*sequence_.pending)) {
    MOKA_TRY(run_growing_loop(*loop));
    for (LoopValue& l : loop_values_) {
      types.push_back(l.type);
      results.push_back(l.view.data);
    }
  } else {
    types = MOKA_TRY(infer_pending(std::get<plan::Infer>(*sequence_.pending)));
  }
  auto plan = MOKA_TRY(plan_->continuations->get(types, options, [&] {
    const trace::Span span(trace::Lane::activity, "plan");
    return plan::plan_rest(*plan_, types, options);
  }));
  Frame* next = MOKA_TRY(child(plan));
  for (size_t i = 0; i < results.size(); i++) next->set_input(i, results[i]);
  MOKA_TRY(next->run());
  last_ = next->last_;
  return {};
}

}  // namespace moka::runtime
