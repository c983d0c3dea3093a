// SPDX-License-Identifier: Apache-2.0
#include "runtime/model.h"

#include <algorithm>
#include <random>

#include "kernel/fault.h"
#include "plan/prepare.h"
#include "runtime/bind_frame.h"

namespace moka::runtime {

namespace {

/// Whether this thread already predicts with devices. A nested prediction uses the turn of the outer one.
thread_local bool runs_here = false;

size_t count_operations(const ir::Block& block) {
  size_t n = 0;
  for (const auto& op : block.ops()) {
    n += !op->has_trait(ir::Trait::constant);
    for (size_t b = 0; b < op->block_count(); b++) n += count_operations(*op->block(b));
  }
  return n;
}

/// Sets the sources that importers have left out. Only layers of neural networks have one before.
void record_sources(const ir::Block& block, std::vector<SourceRecord>& to) {
  for (const auto& op : block.ops()) {
    if (op->has_trait(ir::Trait::constant)) continue;
    if (op->source == nullptr)
      op->source = std::make_shared<const ir::SourceOp>(ir::SourceOp{op->name, op->type_name()});
    to.push_back({op->name, op->type_name(), op->source});
    for (size_t b = 0; b < op->block_count(); b++) record_sources(*op->block(b), to);
  }
}

void mark_half(const ir::Block& block) {
  for (const auto& op : block.ops()) {
    for (size_t i = 0; i < op->output_count(); i++)
      if (const ir::Type& t = op->output(i)->type; t.is_tensor() && t.dtype() == ir::DType::fp32)
        op->output(i)->half = true;
    for (size_t b = 0; b < op->block_count(); b++) mark_half(*op->block(b));
  }
}

/// Whether values of the described feature have the form of the type. Arrays and images have sizes, which are compared
/// when they come.
bool takes(const ir::Type& type, const import::FeatureDescription& f) {
  using enum import::FeatureKind;
  if (f.kind == state) return type.is_state();
  if (f.kind == dictionary) return type.is_dict() && (type.element(0).dtype() == ir::DType::string) == f.string_keys;
  const bool is_one = f.kind == int64 || f.kind == float64 || f.kind == string;
  const bool is_text = f.kind == string || (f.kind == sequence && f.string_keys);
  return type.is_tensor() && (type.dtype() == ir::DType::string) == is_text &&
         !(is_one && type.is_concrete() && type.shape().count() != 1);
}

}  // namespace

Result<std::vector<size_t>> features_of(const ir::Block& body, const import::FunctionDescription& function) {
  const size_t count = function.inputs.size();
  const auto name = [&](size_t i) -> const std::string& {
    return i < count ? function.inputs[i].name : function.states[i - count].name;
  };
  std::vector<size_t> out;
  for (const auto& v : body.inputs()) {
    size_t i = out.size(), all = count + function.states.size();
    if (i >= all || name(i) != v->name)
      for (i = 0; i < all && name(i) != v->name; i++) {
      }
    if (i == all) return fail(ErrorCode::malformed, "input '", v->name, "' of the program: the description lacks it");
    if (v->type.is_state() != (i >= count))
      return fail(ErrorCode::malformed, "input '", v->name, "' of the program: the description lists it among the ",
                  i >= count ? "states" : "inputs", ", but it is a ", v->type);
    if (i < count && !takes(v->type, function.inputs[i]))
      return fail(ErrorCode::malformed, "input '", v->name, "' of the program: a ", v->type,
                  ", which the description gives another type");
    out.push_back(i);
  }
  return out;
}

const import::FeatureDescription& Model::feature(size_t i) const {
  const size_t at = compiled_->features[i], count = function().inputs.size();
  return at < count ? function().inputs[at] : function().states[at - count];
}

Result<std::shared_ptr<Model::Compiled>> Model::compile_function(import::ImportedModel imported,
                                                                 const CompileOptions& options) {
  auto c = std::make_shared<Compiled>();
  c->imported = std::move(imported);
  const import::ModelDescription& d = c->imported.description;
  const std::string& name = options.function_name.empty() ? d.default_function : options.function_name;
  c->function = d.function(name);
  c->ir = c->imported.program.find(name);
  if (c->function == nullptr || c->ir == nullptr) {
    std::string all;
    for (const auto& f : d.functions) all += cat(all.empty() ? "'" : ", '", f.name, "'");
    return fail(ErrorCode::not_found, "function: expected one of ", all, ", got '", name, "'");
  }
  std::erase_if(c->imported.program.functions, [&](const auto& f) { return f.get() != c->ir; });
  if (c->ir->body().inputs().size() != c->function->inputs.size() + c->function->states.size())
    return fail(ErrorCode::malformed, "function '", name, "': the description has ", c->function->inputs.size(),
                " inputs and ", c->function->states.size(), " states, the program takes ",
                c->ir->body().inputs().size());
  if (c->ir->body().outputs().size() != c->function->outputs.size())
    return fail(ErrorCode::malformed, "function '", name, "': the description has ", c->function->outputs.size(),
                " outputs, the program returns ", c->ir->body().outputs().size());
  c->features = MOKA_TRY_IN(features_of(c->ir->body(), *c->function), cat("function '", name, "'"));
  for (const auto& v : c->ir->body().inputs())
    if (v->type.is_state() && !(v->type.element().is_tensor() && v->type.element().is_concrete()))
      return fail(ErrorCode::malformed, "function '", name, "': state '", v->name,
                  "': expected sizes that are known, got ", v->type.element());
  c->operations_in_source = count_operations(c->ir->body());
  MOKA_TRY(mark_parameters(*c->ir, options.parameters, ops::table()));
  if (!options.outputs.empty()) MOKA_TRY(c->select_outputs(options.outputs));
  if (options.keep_sources) record_sources(c->ir->body(), c->sources);
  passes::PipelineOptions pipeline{options.optimize, !options.exact_precision};
  MOKA_TRY(passes::run_pipeline(c->imported.program, ops::table(), pipeline, c->remarks));
  c->parameters = parameters_of(*c->ir);
  // Neural networks declare no types. If a device computes only in float16, all values become float16.
  const auto& devices = options.plan.devices;
  if (!d.typed &&
      std::any_of(devices.begin(), devices.end(), [](const kernel::Device* x) { return x->is_half_only(); }))
    mark_half(c->ir->body());
  return c;
}

Result<std::unique_ptr<Model>> Model::compile(import::ImportedModel imported, const CompileOptions& options) {
  auto compiled = MOKA_TRY(compile_function(std::move(imported), options));
  std::unique_ptr<Model> m(new Model(std::move(compiled), options));
  m->set_up_constants();
  m->set_up_devices();
  return m;
}

std::unique_ptr<Model> Model::with_parameters(const std::map<std::string, ir::Tensor>& values,
                                              std::shared_ptr<MemoryBudget> budget) const {
  std::unique_ptr<Model> m(new Model(compiled_, options_));
  m->options_.plan.budget = std::move(budget);
  for (const auto& [name, value] : values) m->options_.parameter_values.insert_or_assign(name, value);
  m->set_up_constants();
  m->set_up_devices();
  return m;
}

void Model::set_up_constants() {
  plan::ParameterValues values;
  for (const Parameter& p : compiled_->parameters)
    if (const auto it = options_.parameter_values.find(p.name); it != options_.parameter_values.end())
      values.emplace(p.value, it->second);
  options_.plan.constants = std::make_shared<plan::ConstantPool>(options_.plan.budget, options_.packed, options_.cache,
                                                                 std::move(values), options_.plan.renewable);
}

Status Model::renew_parameters() const {
  MOKA_TRY(options_.plan.constants->renew());
  for (const auto& plan : all_.plans.snapshot()) MOKA_TRY(plan::renew(*plan, all_.options));
  return {};
}

Result<ir::Tensor> Model::parameter_value(const Parameter& parameter) const {
  return options_.plan.constants->get(*parameter.value, false);
}

Status Model::Compiled::select_outputs(const std::vector<std::string>& names) {
  auto& described = imported.description.functions;
  auto& outputs =
      std::find_if(described.begin(), described.end(), [&](const auto& f) { return &f == function; })->outputs;
  std::vector<import::FeatureDescription> kept;
  std::vector<ir::Value*> values;
  for (size_t i = 0; i < outputs.size(); i++) {
    if (std::find(names.begin(), names.end(), outputs[i].name) == names.end()) continue;
    kept.push_back(outputs[i]);
    values.push_back(ir->body().outputs()[i]);
  }
  outputs = std::move(kept);
  ir->body().set_outputs(std::move(values));
  const passes::Pass* sweep = passes::find("remove_dead_code");
  passes::PassContext context{*ir, ops::table(), remarks, "outputs"};
  return sweep->run(context);
}

Model::~Model() {
  if (!devices_.empty()) DeviceSessions::shared().remove(sessions_);
}

void Model::set_up_devices() {
  devices_ = plan::accelerators(options_.plan);
  if (devices_.size() > 32) devices_.resize(32);
  all_.options = options_.plan;
  if (!devices_.empty()) DeviceSessions::shared().add(sessions_);
}

size_t Model::frame_bytes_for(uint32_t without, const PredictionRequest& request) const {
  size_t most = 0;
  for (const InputValue& value : request.inputs)
    if (const auto* frame = std::get_if<const FittedFrame*>(&value)) most = std::max(most, frame_room_for(**frame));
  for (size_t i = 0; most > 0 && i < devices_.size(); i++)
    if ((without >> i & 1) == 0 && devices_[i]->takes_frames()) return most;
  return 0;
}

const Model::Setting& Model::setting(uint32_t without, bool observed, size_t frame_bytes) const {
  // The plan for the host alone can always be observed, so it needs no second plan.
  if (without == all_devices()) observed = false;
  if (without == 0 && !observed && frame_bytes == 0) return all_;
  std::lock_guard lock(settings_mutex_);
  const auto [it, is_new] = settings_.try_emplace(std::tuple(without, observed, frame_bytes));
  Setting& s = it->second;
  if (!is_new) return s;
  const auto is_out = [this, without](const kernel::Device* d) {
    const auto found = std::find(devices_.begin(), devices_.end(), d);
    return found != devices_.end() && (without >> (found - devices_.begin()) & 1) != 0;
  };
  s.without = without;
  s.options = options_.plan;
  s.options.observed = observed;
  s.options.frame_bytes = frame_bytes;
  std::erase_if(s.options.devices, is_out);
  if (const auto pinned = options_.plan.pinned_device)
    s.options.pinned_device = [pinned, is_out](const ir::Op& op) {
      const kernel::Device* d = pinned(op);
      return is_out(d) ? nullptr : d;
    };
  return s;
}

Result<std::shared_ptr<const plan::Plan>> Model::plan_for(const Setting& s, const std::vector<ir::Type>& inputs) const {
  return s.plans.get(inputs, s.options, [&] {
    const trace::Span span(trace::Lane::activity, "plan");
    return plan::plan_block(compiled_->ir->body(), inputs, nullptr, s.options);
  });
}

bool Model::is_fault(const Error& error) const {
  return !options_.plan.strict && !devices_.empty() &&
         (error.code() == ErrorCode::device_lost || error.code() == ErrorCode::out_of_budget);
}

uint32_t Model::without_also(uint32_t without, const Error& error) const {
  for (size_t i = 0; i < devices_.size(); i++)
    if (const uint32_t bit = uint32_t{1} << i; (without & bit) == 0 && error.device() == devices_[i]->name())
      return without | bit;
  return all_devices();
}

std::string Model::units_without(uint32_t without) const {
  std::string names;
  for (size_t i = 0; i < devices_.size(); i++)
    if ((without >> i & 1) == 0) names += kernel::place_of(*devices_[i]) + " and ";
  return names + "the CPU";
}

void Model::give_up(uint32_t devices, const Error& error) const {
  std::lock_guard lock(failure_mutex_);
  if ((devices & ~lost_) == 0) return;
  lost_ |= devices;
  failure_ += cat(failure_.empty() ? "" : "; ", error.to_string());
}

std::string Model::failure() const {
  const uint32_t lost = lost_;
  if (lost == 0) return {};
  std::lock_guard lock(failure_mutex_);
  return cat(units_without(lost), lost == all_devices() ? " computes" : " compute",
             " everything, since a device failed: ", failure_);
}

Result<std::shared_ptr<const plan::Plan>> Model::plan(const std::vector<ir::Type>& inputs) const {
  uint32_t without = lost_;
  std::vector<std::pair<uint32_t, Error>> failed;
  for (;;) {
    auto plan = plan_for(setting(without, false, 0), inputs);
    if (plan.ok()) {
      // Weights that do not fit now do not fit later.
      for (const auto& [devices, error] : failed) give_up(devices, error);
      return plan;
    }
    if (without == all_devices() || !is_fault(plan.error())) return plan;
    const uint32_t next = without_also(without, plan.error());
    failed.emplace_back(next & ~without, std::move(plan).error());
    without = next;
  }
}

std::vector<const kernel::Device*> Model::devices_of(const plan::Plan& plan, uint32_t without) const {
  // Blocks, and steps after an unknown shape, are planned later.
  const bool is_whole = plan.sequence.is_complete() &&
                        std::none_of(plan.sequence.steps.begin(), plan.sequence.steps.end(),
                                     [](const plan::Step& step) { return plan::control_of(step) != nullptr; });
  std::vector<const kernel::Device*> out;
  for (size_t i = 0; i < devices_.size(); i++)
    if ((without >> i & 1) == 0 && (!is_whole || std::any_of(plan.sequence.regions.begin(), plan.sequence.regions.end(),
                                                             [&](const auto& r) { return r.device == devices_[i]; })))
      out.push_back(devices_[i]);
  return out;
}

Result<std::unique_ptr<Session>> Model::acquire_for(const Setting& setting, const PredictionRequest& request) const {
  auto plan = MOKA_TRY(plan_for(setting, request.types));
  if (auto session = MOKA_TRY(sessions_.take(*plan, request.stop))) {
    if (!session->devices.empty()) DeviceSessions::shared().started();
    return session;
  }
  // A new plan may have replaced another one.
  std::vector<std::shared_ptr<const plan::Plan>> plans = all_.plans.snapshot();
  if (!devices_.empty()) {
    std::lock_guard lock(settings_mutex_);
    for (const auto& [key, other] : settings_) {
      auto some = other.plans.snapshot();
      plans.insert(plans.end(), some.begin(), some.end());
    }
  }
  sessions_.keep_only(plans);
  auto s = std::make_unique<Session>(plan, request.types.size());
  s->context.options = &setting.options;
  s->context.loop_limit = options_.loop_limit;
  s->context.random.state = (uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  s->without = setting.without;
  s->observed = request.is_observed;
  s->devices = devices_of(*plan, setting.without);
  const bool on_devices = !s->devices.empty();
  Admission admission(DeviceSessions::shared());
  for (;;) {
    // A nested prediction must not wait for the outer one.
    if (on_devices && !runs_here)
      if (Status waited = admission.wait_for_turn(request.stop); !waited.ok()) {
        sessions_.give_up(*plan);
        return std::move(waited).error();
      }
    const uint64_t ended = DeviceSessions::shared().count_ended();
    auto frame = [&] {
      const trace::Span span(trace::Lane::activity, "make session");
      return Frame::make(plan, nullptr, s->context);
    }();
    if (frame.ok()) {
      s->frame = std::move(frame).value();
      if (on_devices) DeviceSessions::shared().started();
      return s;
    }
    const bool is_full = on_devices && frame.error().code() == ErrorCode::out_of_budget;
    if (is_full && DeviceSessions::shared().drop_idle()) continue;
    Error error = std::move(frame).error();
    if (is_full && !runs_here) {
      Result<bool> has_ended = admission.wait_for_end(ended, request.stop);
      if (!has_ended.ok())
        error = std::move(has_ended).error();
      else if (*has_ended)
        continue;
    }
    sessions_.give_up(*plan);
    return error;
  }
}

Result<std::unique_ptr<Session>> Model::acquire_without(uint32_t without, std::vector<std::string> faults,
                                                        const PredictionRequest& request) const {
  for (;;) {
    auto session = acquire_for(setting(without, request.is_observed, frame_bytes_for(without, request)), request);
    if (!session.ok()) {
      if (without == all_devices() || !is_fault(session.error())) return session;
      const uint32_t next = without_also(without, session.error());
      if (session.error().code() == ErrorCode::device_lost) give_up(next & ~without, session.error());
      faults.push_back(session.error().to_string());
      without = next;
      continue;
    }
    Session& s = **session;
    if (!faults.empty()) {
      std::string all;
      for (const std::string& fault : faults) all += cat(all.empty() ? "" : "; ", fault);
      s.remarks = {cat(units_without(without), " computed this prediction: ", all)};
    } else if (without != 0) {
      std::lock_guard lock(failure_mutex_);
      s.remarks = {cat(units_without(without), " computed this prediction, since a device failed before: ", failure_)};
    }
    s.faults = std::move(faults);
    return session;
  }
}

Result<std::unique_ptr<Session>> Model::acquire(const PredictionRequest& request) const {
  return acquire_without(lost_, {}, request);
}

Result<std::unique_ptr<Session>> Model::acquire_instead(std::unique_ptr<Session> failed,
                                                        const PredictionRequest& request, const Error& error) const {
  const uint32_t before = failed->without, without = without_also(before, error);
  std::vector<std::string> faults = std::move(failed->faults);
  faults.push_back(error.to_string());
  discard(std::move(failed));
  if (error.code() == ErrorCode::device_lost) give_up(without & ~before, error);
  return acquire_without(without, std::move(faults), request);
}

Status Model::run(Session& session) const {
  const auto run_frame = [&session]() -> Status {
    ExecContext& context = session.context;
    context.stretch = nullptr;
    context.depth = 0;
    Status status = session.frame->run();
    if (context.stretch != nullptr) trace::end(trace::Lane::compute, trace::now());
    context.stretch = nullptr;
    return status;
  };
  const bool waits = !session.devices.empty() && !runs_here;
  if (!waits) return run_frame();
  runs_here = true;
  // All models list devices in the same order, so two that wait for each other's device cannot deadlock.
  Status status;
  size_t taken = 0;
  while (taken < session.devices.size() && status.ok()) {
    status = Turns::of(*session.devices[taken]).take(this, session.context.stop);
    if (status.ok()) taken++;
  }
  if (status.ok()) status = run_frame();
  for (size_t i = 0; i < taken; i++) Turns::of(*session.devices[i]).give_back();
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
  if (on_devices && DeviceSessions::shared().is_anyone_waiting()) return discard(std::move(session));
  session->context.trace = nullptr;
  session->context.is_recorded = false;
  session->remarks.clear();
  session->faults.clear();
  sessions_.give_back(std::move(session));
  if (on_devices) DeviceSessions::shared().ended();
}

}  // namespace moka::runtime
