#include "runtime/frame.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/memory.h"
#include "kernel/fault.h"
#include "kernel/parallel.h"
#include "plan/late.h"
#include "runtime/launch.h"

namespace moka::runtime {

using plan::Place;
using plan::Plan;
using plan::Step;
using plan::Storage;

namespace {
constexpr size_t kMaxChildren = 16;

/// A value that breaks a rule of an operation does so on every device: only failures of the device itself name it.
Status named(Status s, const kernel::Device& device) {
  if (s.ok() || s.error().code() == ErrorCode::data) return s;
  return std::move(kernel::failed_on(device, std::move(s).error()));
}

const ir::Type& storage_type(const ir::Type& t) { return t.is_state() ? t.element() : t; }
}  // namespace

Result<std::unique_ptr<Frame>> Frame::make(std::shared_ptr<const Plan> plan, Frame* parent, ExecContext& context) {
  std::unique_ptr<Frame> f(new Frame(std::move(plan), parent, context));
  MOKA_TRY(f->set_up());
  return f;
}

Frame::~Frame() {
  if (charged_ > 0) context_.options->budget->give_back(charged_);
}

size_t Frame::bytes() const {
  size_t n = plan_->arena_bytes;
  for (const auto& child : children_) n += child->bytes();
  return n;
}

void* Frame::object_data(const ir::Type& type, Object& object) {
  if (type.is_list()) return &object.list;
  if (type.is_dict()) return &object.dict;
  object.strings.resize(static_cast<size_t>(type.shape().count()));
  return object.strings.data();
}

Status Frame::set_up() {
  const auto& places = plan_->places;
  size_t bytes = plan_->arena_bytes;
  if (context_.options->budget) {
    MOKA_TRY(context_.options->budget->take(bytes, "the arena"));
    charged_ = bytes;
  }
  arena_ = allocate_large(bytes + 64);
  if (arena_ == nullptr) return fail(ErrorCode::out_of_budget, "no memory for an arena of ", bytes, " bytes");
  objects_.resize(plan_->objects);
  views_.resize(places.size());
  patches_.resize(places.size());
  find_placeable();
  for (size_t i = 0; i < places.size(); i++) {
    const Place& p = places[i];
    const ir::Type& t = storage_type(p.type);
    ir::TensorView& v = views_[i];
    if (t.is_tensor()) {
      v.dtype = t.dtype();
      v.shape = t.shape();
    }
    switch (p.storage) {
      case Storage::arena:
        if (p.device == nullptr) v.data = arena_.get() + p.offset;
        break;
      case Storage::constant:
        if (t.is_tensor()) {
          v.data = const_cast<void*>(p.constant.data());
        } else {
          constants_.push_back(MOKA_TRY(ir::runtime_value(*p.value->constant())));
          v.data = constants_.back().view().data;
        }
        break;
      case Storage::object: v.data = object_data(p.type, objects_[static_cast<size_t>(p.object)]); break;
      case Storage::external:
      case Storage::prepared: break;
    }
    follow_root(p, &v);
  }
  steps_.resize(plan_->steps.size());
  for (size_t s = 0; s < steps_.size(); s++) fill(steps_[s], plan_->steps[s]);
  if (plan_->pending != nullptr) fill(pending_, plan_->pending_step);
  find_teams();
  return set_up_devices();
}

/// From a step that shares its work to the last one, before one that has blocks.
void Frame::find_teams() {
  const auto& steps = plan_->steps;
  team_ends_.assign(steps.size(), 0);
  size_t first = steps.size();
  for (size_t s = 0; s < steps.size(); s++) {
    const Step& step = steps[s];
    const kernel::KernelChoice* c = step.kind == Step::Kind::run ? &*step.choice : nullptr;
    if (step.region >= 0) continue;
    if (step.kind == Step::Kind::cond || step.kind == Step::Kind::loop) {
      first = steps.size();
    } else if (step.threads > 1 &&
               (c != nullptr ? c->internally_parallel || c->tiles > 1 : step.kind == Step::Kind::convert)) {
      first = std::min(first, s);
      team_ends_[first] = s + 1;
    }
  }
}

void Frame::fill(StepData& data, const Step& step) {
  auto take = [&](std::vector<ir::TensorView>& to, const std::vector<int>& from) {
    for (int i : from) to.push_back(views_[static_cast<size_t>(i)]);
    for (size_t k = 0; k < from.size(); k++) {
      const Place& p = plan_->places[static_cast<size_t>(from[k])];
      follow_root(p, &to[k]);
    }
  };
  data.in.reserve(step.in.size());
  data.out.reserve(step.out.size());
  take(data.in, step.in);
  take(data.out, step.out);
  for (size_t k = 0; k < step.in.size(); k++)
    data.args.push_back({&plan_->places[static_cast<size_t>(step.in[k])].type, &data.in[k]});
  if (step.op != nullptr) {
    data.call.emplace(step.op->version(), step.op->name, data.args, step.first_arg);
    data.call->op = step.op;
    data.call->random = &context_.random;
  }
}

void Frame::follow_root(const Place& p, ir::TensorView* view) {
  if (p.storage == Storage::external || (p.storage == Storage::arena && is_placeable(p.root)))
    patches_[static_cast<size_t>(p.root)].push_back({view, p.delta});
}

void Frame::find_placeable() {
  placeable_.assign(plan_->places.size(), false);
  placeable_outputs_.assign(plan_->outputs.size(), false);
  if (plan_->pending != nullptr) return;
  for (size_t i = 0; i < plan_->outputs.size(); i++) {
    const Place& p = plan_->places[static_cast<size_t>(plan_->outputs[i])];
    if (p.storage != Storage::arena || !p.type.is_tensor() || !p.layout.is_row_major()) continue;
    const Place& root = plan_->places[static_cast<size_t>(p.root)];
    auto bytes = ir::storage_bytes(p.type.dtype(), p.type.shape());
    const bool alone = root.storage == Storage::arena && root.layout.is_row_major() && p.delta == 0 && bytes.ok() &&
                       *bytes == root.bytes && !is_placeable(p.root);
    placeable_outputs_[i] = alone;
    if (alone) placeable_[static_cast<size_t>(p.root)] = true;
  }
}

const ir::TensorView* Frame::placeable_output(size_t i) const {
  return i < placeable_outputs_.size() && placeable_outputs_[i] ? &views_[static_cast<size_t>(plan_->outputs[i])]
                                                                : nullptr;
}

void Frame::place_output(size_t i, void* data) {
  const int place = plan_->outputs[i];
  const Place& root = plan_->places[static_cast<size_t>(plan_->places[static_cast<size_t>(place)].root)];
  set_external(place, data != nullptr ? data : arena_.get() + root.offset);
}

void Frame::set_external(int place, void* data) {
  auto& targets = patches_[static_cast<size_t>(plan_->places[static_cast<size_t>(place)].root)];
  auto at = [&](const Patch& p) { return static_cast<std::byte*>(data) + p.delta; };
  if (targets.empty() || targets.front().view->data == at(targets.front())) return;
  for (const Patch& p : targets) p.view->data = at(p);
}

void Frame::import_values() {
  for (auto [mine, theirs] : plan_->imports) set_external(mine, parent_->views_[static_cast<size_t>(theirs)].data);
}

const ir::TensorView& Frame::output(size_t i) const {
  return last_->views_[static_cast<size_t>(last_->plan_->outputs[i])];
}

const ir::Type& Frame::output_type(size_t i) const {
  return last_->plan_->places[static_cast<size_t>(last_->plan_->outputs[i])].type;
}

Error Frame::locate(Error e, const Step& step) const {
  std::string place = cat("operation '", step.op->name, "' (", step.op->type_name(), ")");
  if (e.message().starts_with(place)) return e;
  return std::move(e).in(place);
}

Status Frame::run() {
  plan::LatePreparation* const late = plan_->late.get();
  if (late == nullptr || late->is_done()) return run_plan();
  if (context_.trace == nullptr)
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
  if (submissions_.size() < plan_->regions.size()) MOKA_TRY(compile_regions());
  Status status = run_steps();
  wait_for_regions();
  MOKA_TRY(std::move(status));
  last_ = this;
  if (plan_->pending != nullptr) MOKA_TRY(run_pending());
  return {};
}

Status Frame::run_steps() {
  for (size_t s = 0; s < steps_.size();) {
    const size_t end = std::max(team_ends_[s], s + 1);
    Status status;
    auto steps = [&] {
      while (s < end && status.ok()) status = run_step(s++);
    };
    if (team_ends_[s] > 0)
      kernel::parallel_region(plan_->steps[s].threads, steps);
    else
      steps();
    MOKA_TRY(std::move(status));
  }
  return {};
}

Status Frame::run_step(size_t s) {
  const Step& step = plan_->steps[s];
  if (step.region >= 0 && (step.op == nullptr || step.kind == Step::Kind::run) &&
      (step.kind == Step::Kind::run || step.kind == Step::Kind::convert || step.kind == Step::Kind::placed))
    return {};
  return context_.is_timed() ? run_timed(s) : compute(s);
}

Status Frame::run_timed(size_t s) {
  const int64_t start = trace::now();
  if (context_.is_recorded) record_begin(s, start);
  Status status = compute(s);
  const int64_t end = trace::now();
  if (context_.is_recorded) record_end(s, start, end);
  if (status.ok() && context_.trace != nullptr)
    context_.trace->step(*plan_, plan_->steps[s], static_cast<double>(end - start) * 1e-9, steps_[s].out);
  return status;
}

Status Frame::compute(size_t s) {
  const Step& step = plan_->steps[s];
  StepData& data = steps_[s];
  const auto region = static_cast<size_t>(step.region);
  switch (step.kind) {
    case Step::Kind::run: return run_kernel(step, data);
    case Step::Kind::placed: break;
    case Step::Kind::convert: {
      const Place& from = plan_->places[static_cast<size_t>(step.in[0])];
      const Place& to = plan_->places[static_cast<size_t>(step.out[0])];
      if (from.layout == to.layout)
        copy_value(to.type, data.in[0], data.out[0]);
      else
        launch_conversion(data.in[0], from.layout, data.out[0], to.layout, step.threads);
      break;
    }
    case Step::Kind::cond: return run_cond(step, data);
    case Step::Kind::loop: return run_loop(step, data);
    case Step::Kind::transfer: run_transfer(step, data); break;
    case Step::Kind::submit: {
      Status status = named(submissions_[region]->submit(), *step.device);
      running_[region] = status.ok();
      has_submitted_ |= status.ok();
      return status;
    }
    case Step::Kind::wait: {
      Status status = named(submissions_[region]->wait(), *step.device);
      running_[region] = false;
      return status;
    }
  }
  return {};
}

Status Frame::run_kernel(const Step& step, StepData& data) {
  const kernel::KernelChoice& c = *step.choice;
  const kernel::KernelArgs args{data.in, data.out, arena_.get() + step.scratch_offset, &*data.call,       0,
                                c.tiles, 0,        arena_.get() + step.threads_offset, plan_->thread_step};
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

Result<Frame*> Frame::branch(const Step& step, size_t block, const std::vector<ir::Type>& types) {
  const plan::PlanOptions& options = *context_.options;
  bool loop_body = step.kind == Step::Kind::loop && block == 1;
  auto plan = MOKA_TRY(step.blocks[block]->get(types, options, [&] {
    const trace::Span span(trace::Lane::activity, "plan");
    return plan::plan_block(*step.op->block(block), types, plan_.get(), options, loop_body);
  }));
  return child(plan);
}

Status Frame::check_lists(const Step& step, const StepData& data) const {
  for (size_t i = 0; i < data.out.size(); i++) {
    if (!plan_->places[static_cast<size_t>(step.out[i])].type.is_list()) continue;
    const ir::List& list = data.out[i].list();
    const size_t limit = context_.options->budget->limit();
    if (list.bytes() > limit)
      return locate(fail(ErrorCode::out_of_budget, "a list of ", list.size(),
                         " tensors takes more than the memory budget of ", limit, " bytes"),
                    step);
  }
  return {};
}

Status Frame::run_cond(const Step& step, StepData& data) {
  key_.clear();
  Frame* f = MOKA_TRY(branch(step, ir::load_i64(data.in[0], 0) != 0 ? 0 : 1, key_));
  MOKA_TRY_IN(f->run(), cat("operation '", step.op->name, "' (cond)"));
  for (size_t i = 0; i < data.out.size(); i++)
    copy_value(plan_->places[static_cast<size_t>(step.out[i])].type, f->output(i), data.out[i]);
  return {};
}

Status Frame::run_loop(const Step& step, StepData& data) {
  key_.clear();
  for (size_t i = 0; i < data.out.size(); i++) {
    key_.push_back(plan_->places[static_cast<size_t>(step.in[i])].type);
    copy_value(key_[i], data.in[i], data.out[i]);
  }
  Frame* test = MOKA_TRY(branch(step, 0, key_));
  Frame* body = MOKA_TRY(branch(step, 1, key_));
  for (int64_t n = 0;; n++) {
    for (size_t i = 0; i < data.out.size(); i++) test->set_input(i, data.out[i].data);
    MOKA_TRY_IN(test->run(), cat("operation '", step.op->name, "' (while_loop)"));
    if (ir::load_i64(test->output(0), 0) == 0) return {};
    if (n >= context_.loop_limit)
      return locate(
          fail(ErrorCode::data, "more than ", context_.loop_limit, " iterations, the limit of the load options"), step);
    for (size_t i = 0; i < data.out.size(); i++) body->set_input(i, data.out[i].data);
    MOKA_TRY_IN(body->run(), cat("operation '", step.op->name, "' (while_loop)"));
    for (size_t i = 0; i < data.out.size(); i++) copy_value(key_[i], body->output(i), data.out[i]);
  }
}

Status Frame::run_loose_loop() {
  const Step& step = plan_->pending_step;
  size_t count = step.op->output_count();
  auto keep = [&](Loose& l, const ir::Type& type, const ir::TensorView& from) -> Status {
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
  loose_.resize(count);
  for (size_t i = 0; i < count; i++)
    MOKA_TRY(keep(loose_[i], plan_->places[static_cast<size_t>(step.in[i])].type, pending_.in[i]));
  for (int64_t n = 0;; n++) {
    key_.clear();
    for (const Loose& l : loose_) key_.push_back(l.type);
    Frame* test = MOKA_TRY(branch(step, 0, key_));
    for (size_t i = 0; i < count; i++) test->set_input(i, loose_[i].view.data);
    MOKA_TRY_IN(test->run(), cat("operation '", step.op->name, "' (while_loop)"));
    if (ir::load_i64(test->output(0), 0) == 0) return {};
    if (n >= context_.loop_limit)
      return locate(
          fail(ErrorCode::data, "more than ", context_.loop_limit, " iterations, the limit of the load options"), step);
    Frame* body = MOKA_TRY(branch(step, 1, key_));
    for (size_t i = 0; i < count; i++) body->set_input(i, loose_[i].view.data);
    MOKA_TRY_IN(body->run(), cat("operation '", step.op->name, "' (while_loop)"));
    std::vector<Loose> next(count);
    for (size_t i = 0; i < count; i++) MOKA_TRY(keep(next[i], body->output_type(i), body->output(i)));
    loose_ = std::move(next);
    for (Loose& l : loose_)
      if (!l.type.is_tensor() || l.type.dtype() == ir::DType::string) l.view.data = object_data(l.type, l.object);
  }
}

Status Frame::run_pending() {
  const Step& step = plan_->pending_step;
  const plan::PlanOptions& options = *context_.options;
  std::vector<ir::Type> types;
  std::vector<void*> results;
  if (plan_->pending_runs_first) {
    if (step.kind == Step::Kind::cond) {
      key_.clear();
      Frame* f = MOKA_TRY(branch(step, ir::load_i64(pending_.in[0], 0) != 0 ? 0 : 1, key_));
      MOKA_TRY_IN(f->run(), cat("operation '", step.op->name, "' (cond)"));
      for (size_t i = 0; i < step.op->output_count(); i++) {
        types.push_back(f->output_type(i));
        results.push_back(f->output(i).data);
      }
    } else {
      MOKA_TRY(run_loose_loop());
      for (Loose& l : loose_) {
        types.push_back(l.type);
        results.push_back(l.view.data);
      }
    }
  } else {
    auto inferred = step.op->version().infer(*pending_.call);
    if (!inferred.ok()) return locate(std::move(inferred).error(), step);
    types = std::move(inferred).value();
    for (const ir::Type& t : types) {
      if (!t.is_tensor()) continue;
      if (!t.is_concrete())
        return locate(fail(ErrorCode::internal, "its result ", t, " is not known even from its inputs' values"), step);
      if (auto bytes = ir::storage_bytes(t.dtype(), t.shape()); !bytes.ok())
        return locate(std::move(bytes).error(), step);
    }
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
