// SPDX-License-Identifier: Apache-2.0
#include "runtime/frame.h"

#include <algorithm>
#include <cstring>

#include "kernel/fault.h"
#include "kernel/parallel.h"
#include "plan/late.h"
#include "runtime/launch.h"

namespace moka::runtime {

using plan::Place;

namespace {
/// A value that breaks a rule of an operation does so on every device: only failures of the device itself name it.
Status named(Status s, const kernel::Device& device) {
  if (s.ok() || s.error().code() == ErrorCode::data) return s;
  return std::move(kernel::failed_on(device, std::move(s).error()));
}

int threads_of(const plan::Step& step) {
  if (const plan::Run* run = std::get_if<plan::Run>(&step)) return run->threads;
  return std::get<plan::Convert>(step).threads;
}
}  // namespace

const ir::TensorView& Frame::output(size_t i) const {
  return last_->views_[static_cast<size_t>(last_->sequence_.outputs[i])];
}

const ir::Type& Frame::output_type(size_t i) const { return last_->sequence_.place(last_->sequence_.outputs[i]).type; }

Error Frame::locate(Error e, const plan::Call& step) const {
  std::string place = cat("operation '", step.op->name, "' (", step.op->type_name(), ")");
  if (e.message().starts_with(place)) return e;
  return std::move(e).in(place);
}

Status Frame::run() {
  plan::LatePreparation* const late = plan_->late.get();
  if (late == nullptr || late->is_done()) return run_plan();
  if (context_.trace == nullptr && context_.capture == nullptr)
    late->before_run();
  else
    late->finish();  // what is measured is what later predictions take
  const int64_t start = trace::now();
  Status status = run_plan();
  late->after_run(static_cast<double>(trace::now() - start) * 1e-9);
  return status;
}

Status Frame::run_plan() {
  import_values();
  has_submitted_ = false;
  if (!sequence_.regions.empty() && context_.shows_commands() != is_shown_) show_commands(!is_shown_);
  if (!crossings_.empty()) MOKA_TRY(bind_crossings());
  if (submissions_.size() < sequence_.regions.size()) MOKA_TRY(compile_regions());
  Status status = run_steps();
  wait_for_regions();
  MOKA_TRY(std::move(status));
  last_ = this;
  if (!sequence_.is_complete()) MOKA_TRY(run_pending());
  undo_.clear();
  return {};
}

Status Frame::check_stop() {
  if (context_.stop == nullptr || (keeps_running_ && has_submitted_)) return {};
  return context_.stop->check();
}

Status Frame::run_steps() {
  for (size_t s = 0; s < steps_.size();) {
    const size_t end = std::max(team_ends_[s], s + 1);
    Status status;
    auto steps = [&] {
      while (s < end && status.ok()) {
        if (context_.stop != nullptr) status = check_stop();
        if (status.ok()) status = run_step(s++);
      }
    };
    if (team_ends_[s] > 0)
      kernel::parallel_region(threads_of(sequence_.steps[s]), steps);
    else
      steps();
    MOKA_TRY(std::move(status));
  }
  return {};
}

Status Frame::run_step(size_t s) { return context_.is_timed() ? run_timed(s) : compute(s); }

Status Frame::run_timed(size_t s) {
  if (context_.capture != nullptr && context_.capture->wants_values()) MOKA_TRY(capture_before(s));
  const int64_t start = trace::now();
  if (context_.is_recorded) record_begin(s, start);
  Status status = compute(s);
  const int64_t end = trace::now();
  if (context_.is_recorded) record_end(s, start, end);
  if (status.ok() && context_.trace != nullptr)
    context_.trace->step(*plan_, sequence_.steps[s], static_cast<double>(end - start) * 1e-9, steps_[s].out);
  if (status.ok() && context_.capture != nullptr) return capture_step(s, static_cast<double>(end - start) * 1e-9);
  return status;
}

bool Frame::has_straight_steps() const {
  return sequence_.is_complete() && std::none_of(sequence_.steps.begin(), sequence_.steps.end(),
                                                 [](const auto& step) { return plan::control_of(step) != nullptr; });
}

void Frame::save_states_before(size_t s) {
  const plan::Step& step = sequence_.steps[s];
  const plan::Call* call = plan::call_of(step);
  const bool is_store =
      call != nullptr && call->op->has_trait(ir::Trait::stateful) && call->op->type_name() != "read_state";
  for (size_t i = 0; is_store && i < call->in.size(); i++)
    if (const Place& place = sequence_.place(call->in[i]); place.type.is_state() && place.device == nullptr)
      undo_.save(views_[static_cast<size_t>(place.root)]);
  for (int i : std::visit([&](const auto& one) { return plan::writes_of(sequence_, one); }, step)) {
    const Place& place = sequence_.place(i);
    const Place& root = sequence_.place(place.root);
    if (!root.type.is_state() || root.device != nullptr) continue;
    const ir::TensorView& state = views_[static_cast<size_t>(place.root)];
    const bool is_slice = call != nullptr && call->op->type_name() == "slice_update" && place.delta == 0 &&
                          state.shape == views_[static_cast<size_t>(i)].shape && place.layout == root.layout;
    if (is_slice)
      undo_.save_slice(*steps_[s].call, state);
    else
      undo_.save(state);
  }
}

Status Frame::compute(size_t s) {
  if (saves_states_) save_states_before(s);
  return std::visit([&](const auto& step) { return execute(step, steps_[s]); }, sequence_.steps[s]);
}

Status Frame::execute(const plan::Convert& step, StepData& data) {
  const Place& from = sequence_.place(step.from);
  const Place& to = sequence_.place(step.to);
  if (from.layout == to.layout)
    copy_value(to.type, data.in[0], data.out[0]);
  else
    launch_conversion(data.in[0], from.layout, data.out[0], to.layout, step.threads);
  return {};
}

Status Frame::execute(const plan::Launch& step, StepData&) {
  const auto r = static_cast<size_t>(step.region);
  if (context_.capture != nullptr && context_.capture->wants_values())
    return named(run_command_by_command(r), *sequence_.regions[r].device);
  Status status = named(submissions_[r]->submit(), *sequence_.regions[r].device);
  running_[r] = status.ok();
  has_submitted_ |= status.ok();
  return status;
}

Status Frame::execute(const plan::Wait& step, StepData&) {
  const auto r = static_cast<size_t>(step.region);
  if (!running_[r]) return {};  // it ran command by command
  Status status = named(submissions_[r]->wait(), *sequence_.regions[r].device);
  running_[r] = false;
  return status;
}

Status Frame::execute(const plan::Run& step, StepData& data) {
  const kernel::KernelChoice& c = *step.choice;
  const kernel::KernelArgs args{data.in,
                                data.out,
                                arena_.get() + data.scratch.own,
                                &*data.call,
                                0,
                                c.tiles,
                                0,
                                arena_.get() + data.scratch.threads,
                                plan_->memory.thread_step};
  const bool is_unprepared = !c.unpacked.empty_handle() && plan_->late != nullptr && !plan_->late->is_done();
  if (Status s = launch(c, args, step.threads, step.op->epilogue, is_unprepared); !s.ok())
    return locate(std::move(s).error(), step);
  if (context_.options->budget) MOKA_TRY(check_lists(step, data));
  return {};
}

void Frame::copy_value(const ir::Type& type, const ir::TensorView& from, const ir::TensorView& to) {
  if (from.data == to.data) return;
  if (type.is_list()) {
    to.list() = from.list();
  } else if (type.is_dict()) {
    to.dict() = from.dict();
  } else if (from.dtype == ir::DType::string) {
    std::copy_n(from.as<std::string>(), from.count(), to.as<std::string>());
  } else if (auto n = ir::storage_bytes(from.dtype, from.shape); n.ok() && *n > 0) {
    std::memmove(to.data, from.data, *n);
  }
}

Status Frame::check_lists(const plan::Call& step, const StepData& data) const {
  for (size_t i = 0; i < data.out.size(); i++) {
    if (!sequence_.place(step.out[i]).type.is_list()) continue;
    const ir::List& list = data.out[i].list();
    const size_t limit = context_.options->budget->limit();
    if (list.bytes() > limit)
      return locate(fail(ErrorCode::out_of_budget, "a list of ", list.size(),
                         " tensors takes more than the memory budget of ", limit, " bytes"),
                    step);
  }
  return {};
}

}  // namespace moka::runtime
