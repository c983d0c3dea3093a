#include "runtime/model.h"

#include <algorithm>
#include <random>

#include "plan/draft.h"

namespace moka::runtime {

namespace {

/// A prediction within another one has the other's turn.
thread_local bool runs_here = false;

size_t count_operations(const ir::Block& block) {
  size_t n = 0;
  for (const auto& op : block.ops()) {
    n += !op->has_trait(ir::Trait::constant);
    for (size_t b = 0; b < op->block_count(); b++) n += count_operations(*op->block(b));
  }
  return n;
}

void mark_half(const ir::Block& block) {
  for (const auto& op : block.ops()) {
    for (size_t i = 0; i < op->output_count(); i++)
      if (const ir::Type& t = op->output(i)->type; t.is_tensor() && t.dtype() == ir::DType::fp32)
        op->output(i)->half = true;
    for (size_t b = 0; b < op->block_count(); b++) mark_half(*op->block(b));
  }
}

}  // namespace

Result<std::unique_ptr<Model>> Model::compile(import::ImportedModel imported, const CompileOptions& options) {
  std::unique_ptr<Model> m(new Model(std::move(imported), options));
  const import::ModelDescription& d = m->imported_.description;
  const std::string& name = options.function_name.empty() ? d.default_function : options.function_name;
  m->function_ = d.function(name);
  m->ir_ = m->imported_.program.find(name);
  if (m->function_ == nullptr || m->ir_ == nullptr) {
    std::string all;
    for (const auto& f : d.functions) all += cat(all.empty() ? "'" : ", '", f.name, "'");
    return fail(ErrorCode::not_found, "function: expected one of ", all, ", got '", name, "'");
  }
  std::erase_if(m->imported_.program.functions, [&](const auto& f) { return f.get() != m->ir_; });
  if (m->ir_->body().inputs().size() != m->function_->inputs.size() + m->function_->states.size())
    return fail(ErrorCode::malformed, "function '", name, "': the description has ", m->function_->inputs.size(),
                " inputs and ", m->function_->states.size(), " states, the program takes ",
                m->ir_->body().inputs().size());
  if (m->ir_->body().outputs().size() != m->function_->outputs.size())
    return fail(ErrorCode::malformed, "function '", name, "': the description has ", m->function_->outputs.size(),
                " outputs, the program returns ", m->ir_->body().outputs().size());
  m->operations_in_source_ = count_operations(m->ir_->body());
  if (!options.outputs.empty()) MOKA_TRY(m->select_outputs());
  passes::PipelineOptions pipeline{options.optimize, !options.exact_precision};
  MOKA_TRY(passes::run_pipeline(m->imported_.program, ops::table(), pipeline, m->remarks_));
  // Neural networks have no types: where a unit computes float16 only, all is float16.
  const auto& devices = options.plan.devices;
  if (d.type_name != "mlProgram" && std::any_of(devices.begin(), devices.end(), [](const kernel::Device* x) {
        return x->unit() == kernel::ComputeUnit::neural_engine;
      }))
    mark_half(m->ir_->body());
  m->options_.plan.constants = std::make_shared<plan::ConstantPool>(options.plan.budget, options.packed, options.cache);
  m->set_up_devices();
  return m;
}

Status Model::select_outputs() {
  auto& described = imported_.description.functions;
  auto& outputs =
      std::find_if(described.begin(), described.end(), [&](const auto& f) { return &f == function_; })->outputs;
  std::vector<import::FeatureDescription> kept;
  std::vector<ir::Value*> values;
  for (size_t i = 0; i < outputs.size(); i++) {
    if (std::find(options_.outputs.begin(), options_.outputs.end(), outputs[i].name) == options_.outputs.end())
      continue;
    kept.push_back(outputs[i]);
    values.push_back(ir_->body().outputs()[i]);
  }
  outputs = std::move(kept);
  ir_->body().set_outputs(std::move(values));
  const passes::Pass* sweep = passes::find("remove_dead_code");
  passes::PassContext context{*ir_, ops::table(), remarks_, "outputs"};
  return sweep->run(context);
}

Model::~Model() {
  if (!devices_.empty()) DeviceSessions::shared().remove(sessions_);
}

void Model::set_up_devices() {
  devices_ = plan::accelerators(options_.plan);
  if (devices_.empty()) return;
  DeviceSessions::shared().add(sessions_);
  // A fixed order, in which the turns of several devices are taken.
  std::sort(devices_.begin(), devices_.end());
  observed_ = host_ = options_.plan;
  observed_.observed = true;
  host_.devices = plan::host_devices(options_.plan);
  if (const auto pinned = options_.plan.pinned_device)
    host_.pinned_device = [pinned](const ir::Op& op) {
      const kernel::Device* d = pinned(op);
      return d != nullptr && d->memory() != nullptr ? nullptr : d;
    };
}

const plan::PlanOptions& Model::options_for(Where where) const {
  return where == Where::units || devices_.empty() ? options_.plan : where == Where::host ? host_ : observed_;
}

Result<std::shared_ptr<const plan::Plan>> Model::plan_for(Where where, const std::vector<ir::Type>& inputs) const {
  const plan::PlanOptions& options = options_for(where);
  return plans_[static_cast<size_t>(where)].get(
      inputs, options, [&] { return plan::plan_block(ir_->body(), inputs, nullptr, options); });
}

bool Model::is_fault(const Error& error) const {
  return may_replay() && (error.code() == ErrorCode::device_lost || error.code() == ErrorCode::out_of_budget);
}

bool Model::can_replay(const Session& session, const Error& error) const {
  return !session.devices.empty() && is_fault(error);
}

void Model::give_up_devices(const Error& error) const {
  std::lock_guard lock(failure_mutex_);
  if (failed_.exchange(true)) return;
  failure_ = error.to_string();
}

std::string Model::failure() const {
  std::lock_guard lock(failure_mutex_);
  return failure_;
}

Result<std::shared_ptr<const plan::Plan>> Model::plan(const std::vector<ir::Type>& inputs) const {
  if (failed_) return plan_for(Where::host, inputs);
  auto plan = plan_for(Where::units, inputs);
  if (plan.ok() || !is_fault(plan.error())) return plan;
  auto host = plan_for(Where::host, inputs);
  // Weights that do not fit now do not fit later.
  if (host.ok()) give_up_devices(plan.error());
  return host;
}

Result<std::unique_ptr<Session>> Model::acquire_for(Where where, const std::vector<ir::Type>& inputs) const {
  auto plan = MOKA_TRY(plan_for(where, inputs));
  const bool on_devices = where != Where::host && !devices_.empty();
  if (auto session = sessions_.take(*plan)) {
    if (on_devices) DeviceSessions::shared().started();
    return session;
  }
  // A plan that is new may have replaced another one.
  std::vector<std::shared_ptr<const plan::Plan>> plans;
  for (const plan::PlanCache& cache : plans_) {
    auto some = cache.snapshot();
    plans.insert(plans.end(), some.begin(), some.end());
  }
  sessions_.keep_only(plans);
  auto s = std::make_unique<Session>(plan, inputs.size());
  s->context.options = &options_for(where);
  s->context.loop_limit = options_.loop_limit;
  s->context.random.state = (uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  if (on_devices) s->devices = devices_;
  for (;;) {
    const uint64_t ended = DeviceSessions::shared().count_ended();
    auto frame = Frame::make(plan, nullptr, s->context);
    if (frame.ok()) {
      s->frame = std::move(frame).value();
      if (on_devices) DeviceSessions::shared().started();
      return s;
    }
    const bool is_full = on_devices && frame.error().code() == ErrorCode::out_of_budget;
    if (is_full && DeviceSessions::shared().drop_idle()) continue;
    if (is_full && !runs_here && DeviceSessions::shared().wait_for_end(ended)) continue;
    sessions_.give_up(*plan);
    return std::move(frame).error();
  }
}

Result<std::unique_ptr<Session>> Model::acquire(const std::vector<ir::Type>& inputs, bool observed) const {
  if (failed_) {
    auto session = MOKA_TRY(acquire_for(Where::host, inputs));
    session->remarks = {cat("the CPU computed this prediction, since a device failed before: ", failure())};
    return session;
  }
  auto session = acquire_for(observed ? Where::observed : Where::units, inputs);
  if (session.ok() || !is_fault(session.error())) return session;
  return acquire_instead(inputs, session.error());
}

Result<std::unique_ptr<Session>> Model::acquire_instead(const std::vector<ir::Type>& inputs, const Error& error) const {
  auto session = MOKA_TRY(acquire_for(Where::host, inputs));
  if (error.code() == ErrorCode::device_lost) give_up_devices(error);
  session->remarks = {cat("the CPU computed this prediction: ", error.to_string())};
  return session;
}

Status Model::run(Session& session) const {
  const bool waits = !session.devices.empty() && !runs_here;
  if (!waits) return session.frame->run();
  runs_here = true;
  for (const kernel::Device* d : session.devices) Turns::of(*d).take(this);
  Status status = session.frame->run();
  for (const kernel::Device* d : session.devices) Turns::of(*d).give_back();
  runs_here = false;
  return status;
}

void Model::discard(std::unique_ptr<Session> session) const {
  const bool on_devices = !session->devices.empty();
  sessions_.discard(std::move(session));
  if (on_devices) DeviceSessions::shared().ended();
}

void Model::release(std::unique_ptr<Session> session) const {
  const bool on_devices = !session->devices.empty();
  session->context.trace = nullptr;
  session->remarks.clear();
  sessions_.give_back(std::move(session));
  if (on_devices) DeviceSessions::shared().ended();
}

}  // namespace moka::runtime
