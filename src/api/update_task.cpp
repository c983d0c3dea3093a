// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <thread>

#include "api/build.h"
#include "api/internal.h"
#include "boundary/path.h"
#include "compiler/decompile.h"
#include "moka/compiler.h"
#include "moka/edit.h"
#include "moka/update.h"
#include "update/examples.h"
#include "update/nearest_neighbors.h"
#include "update/settings.h"
#include "update/task.h"
#include "update/weights.h"

namespace moka {

using api::unwrap;
using Update = import::UpdateDescription;

std::string_view to_string(UpdateEvent event) {
  switch (event) {
    case UpdateEvent::training_begin: return "trainingBegin";
    case UpdateEvent::mini_batch_end: return "miniBatchEnd";
    case UpdateEvent::epoch_end: return "epochEnd";
  }
  return "?";
}

UpdateExamples::UpdateExamples(std::vector<Features> all) : count(all.size()) {
  read = [held = std::make_shared<std::vector<Features>>(std::move(all))](size_t index) { return held->at(index); };
  known = read;
}

struct __attribute__((visibility("hidden"))) UpdateContext::Impl {
  std::function<ModelSource()> source;
  std::vector<std::string> weights;  ///< that changed, by the names of ModelConfiguration::parameters
};

ModelSource UpdateContext::source() const { return impl_->source(); }

Model UpdateContext::model(const ModelConfiguration& configuration) const {
  ModelConfiguration with_weights = configuration;
  auto& names = with_weights.parameters;
  names.insert(names.end(), impl_->weights.begin(), impl_->weights.end());
  const ModelSource source = impl_->source();
  try {
    return source.load(with_weights);
  } catch (const Exception& e) {
    // Weights that predictions do not read.
    if (e.kind() != ErrorKind::not_found || impl_->weights.empty()) throw;
    return source.load(configuration);
  }
}

void UpdateContext::save(const std::filesystem::path& path, Overwrite overwrite) const {
  const ModelSource source = impl_->source();
  if ((path.has_filename() ? path : path.parent_path()).extension() != ".mlmodelc") return source.save(path, overwrite);
  compile_model(api::asset_of(source.impl().source()), path, {.overwrite = overwrite});
}

struct __attribute__((visibility("hidden"))) UpdateTask::Impl {
  Impl(ModelSource model, format::ModelFile file, UpdateExamples examples, UpdateOptions options);

  UpdateContext run_network();
  UpdateContext run_neighbors();
  void read_sample(size_t index, const std::string& input, const std::string& label, std::span<float> numbers,
                   update::Labels& labels) const;
  void change(const UpdateParameters& parameters);
  Features with_computed(size_t index, Features example) const;
  Status read(size_t index, update::Example& to) const;
  void check_known();
  Status check_known(size_t index, std::optional<int64_t>& target_size);
  UpdateContext context(UpdateEvent event, std::function<ModelSource()> source);
  void show(UpdateEvent event, std::function<ModelSource()> source);
  ModelSource current() const;
  update::Settings& settings() { return network ? network->settings() : own_settings; }

  ModelSource source;
  format::ModelFile file;  ///< of `source`
  UpdateExamples examples;
  UpdateOptions options;
  Update update;                ///< of `source`
  UpdateDescription described;  ///< the same
  update::Learner learner;
  Update own;  ///< of the learner
  bool label_is_target = false;
  bool is_checked = false;                       ///< check_known() has looked at all examples
  std::unique_ptr<update::NetworkTask> network;  ///< null: a nearest-neighbors classifier
  update::Settings own_settings;
  trace::ModelId trace_model = 0;  ///< whose lanes the steps are on
  update::Metrics metrics;
  std::atomic<bool> cancelled{false};
  std::atomic<std::thread::id> runs_on{};  ///< the thread of run(); none: it is not running
};

namespace {

struct Opened {
  ModelSource source;
  format::ModelFile file;
};

/// A model as it can be changed. Compiled models are decompiled.
Opened open_for_update(const std::string& path) {
  const format::ModelFile file = unwrap(format::open_model(path, {.any_kind = true}));
  if (file.compiled() == nullptr)
    return {ModelSource(std::make_shared<ModelSource::Impl>(unwrap(format::ModelSource::read(file)))), file};
  compiler::Decompiled model = unwrap(compiler::decompile(file));
  format::ModelSource out{unwrap(format::Message::parse("Model", Bytes::from(std::move(model.specification))))};
  out.weights = format::ropes_of(model.weights);
  ModelSource source(std::make_shared<ModelSource::Impl>(std::move(out)));
  format::ModelFile plain = api::file_of(source);
  return {std::move(source), std::move(plain)};
}

/// What the model says of its updates. Throws if it cannot be updated.
Update update_of(const format::ModelFile& model) {
  auto update = import::describe_update(model);
  if (!update)
    throw Exception(ErrorKind::invalid_argument,
                    "the model is not updatable; moka edit --updatable and moka.update.mark make it so");
  if (!update->fault.empty())
    throw Exception(ErrorKind::malformed, cat("the model cannot be updated: ", update->fault));
  return std::move(*update);
}

runtime::CompileOptions compile_options(const ModelConfiguration& configuration) {
  ModelConfiguration given = configuration;
  if (configuration.device.empty()) given.compute_units = ComputeUnits::cpu_only;
  api::Devices devices = unwrap(api::devices_for(given));
  runtime::CompileOptions out;
  out.plan.devices = devices.list;
  if (!devices.pins.empty()) out.plan.pinned_device = [pins = devices.pins](const ir::Op& op) { return pins.of(op); };
  out.plan.threads = api::threads_of(configuration);
  out.plan.budget = api::budget_of(configuration);
  out.loop_limit = configuration.loop_limit;
  return out;
}

/// The description of the learner, with the training inputs of the whole model.
Update own_update(const update::Learner& learner, const Update& whole) {
  if (whole.stage.empty()) return whole;
  auto out = import::describe_update(learner.file);
  if (!out) throw Exception(ErrorKind::malformed, "the last model of the pipeline is not updatable");
  out->training_inputs = whole.training_inputs;
  return std::move(*out);
}

}  // namespace

UpdateTask::Impl::Impl(ModelSource model, format::ModelFile opened, UpdateExamples given, UpdateOptions with)
    : source(std::move(model)),
      file(std::move(opened)),
      examples(std::move(given)),
      options(std::move(with)),
      update(update_of(file)),
      described(api::to_public(update)),
      learner(update::learner_of(source, file, update.stage, options.configuration, api::file_of)),
      own(own_update(learner, update)) {
  if (!examples.read && examples.count > 0)
    throw Exception(ErrorKind::invalid_argument, "expected a function that reads examples, got none");
  if (examples.count == 0) throw Exception(ErrorKind::invalid_argument, "expected at least one example, got none");
  api::check_threads(options.configuration.threads);
  api::check_processors(options.configuration.processors);
  own_settings = update::default_settings(own);
  change(options.parameters);
  if (own.neighbors) return;
  const import::LossLayer& loss = own.losses.at(0);
  label_is_target = loss.training_input == learner.description.functions.at(0).predicted_feature_name &&
                    !learner.description.class_labels.empty();
  update::NetworkLearner::Options network_options;
  network_options.optimizer = own.optimizer == "adam" ? training::Optimizer::adam : training::Optimizer::sgd;
  network_options.momentum = own.optimizer == "sgd" && own.parameter("momentum") != nullptr;
  network_options.compile = compile_options(options.configuration);
  network_options.kept_bytes = options.kept_bytes;
  auto made = unwrap(update::NetworkLearner::make(learner.file, own, std::move(network_options), examples.count,
                                                  [this](size_t i, update::Example& to) { return read(i, to); }));
  network = std::make_unique<update::NetworkTask>(std::move(made), own, own_settings, examples.count);
}

Features UpdateTask::Impl::with_computed(size_t index, Features example) const {
  try {
    return update::with_computed(learner, std::move(example));
  } catch (const Exception& e) {
    throw Exception(e.kind(), cat("example ", index, ": ", e.what()));
  }
}

Status UpdateTask::Impl::read(size_t index, update::Example& to) const {
  Features example = examples.read(index);
  const import::LossLayer& loss = own.losses[0];
  to.target = MOKA_TRY(update::target_of(own, label_is_target, example.find(loss.training_input), learner.description));
  return update::set_inputs(network->learner().front(), with_computed(index, std::move(example)), to);
}

Status UpdateTask::Impl::check_known(size_t index, std::optional<int64_t>& target_size) {
  const Features example = examples.known(index);
  MOKA_TRY(update::check_values(learner, network->learner().front(), own, example));
  const import::LossLayer& loss = own.losses[0];
  const FeatureValue* value = example.find(loss.training_input);
  if (value == nullptr) return {};
  const ir::Tensor target = MOKA_TRY(update::target_of(own, label_is_target, value, learner.description));
  // Only the number of classes is the same for inputs of all sizes.
  if (loss.kind == import::LossLayer::Kind::mean_squared_error) return {};
  if (!target_size) target_size = unwrap(network->learner().target_size());  // names the first example
  return network->learner().check_target(target, *target_size);
}

void UpdateTask::Impl::check_known() {
  std::optional<int64_t> target_size;
  for (size_t i = 0; examples.known && !is_checked && i < examples.count; i++) {
    if (network->is_stopping()) return;
    if (Status valid = check_known(i, target_size); !valid.ok())
      unwrap(Status(std::move(valid).error().in(cat("example ", i))));
  }
  is_checked = true;
}

void UpdateTask::Impl::change(const UpdateParameters& parameters) {
  unwrap(update::change_settings(settings(), {parameters.begin(), parameters.end()}, own));
}

ModelSource UpdateTask::Impl::current() const {
  format::ModelSource changed = source.impl().source();
  unwrap(update::set_weights(changed, own.layers, network->learner().parameters()));
  return ModelSource(std::make_shared<ModelSource::Impl>(std::move(changed)));
}

UpdateContext UpdateTask::Impl::context(UpdateEvent event, std::function<ModelSource()> model) {
  auto impl = std::make_shared<UpdateContext::Impl>();
  impl->source = std::move(model);
  for (const auto& layer : update.layers)
    impl->weights.insert(impl->weights.end(), layer.parameters.begin(), layer.parameters.end());
  UpdateContext out(impl);
  out.event = event;
  out.metrics = {metrics.loss, metrics.epoch, metrics.mini_batch, metrics.mini_batches};
  out.parameters = {settings().begin(), settings().end()};
  return out;
}

/// Calls the handler with a context that refuses to give a model later, when the weights change.
void UpdateTask::Impl::show(UpdateEvent event, std::function<ModelSource()> model) {
  if (!options.progress) return;
  struct Gate {
    std::mutex mutex;
    bool open = true;
  };
  struct Closing {
    std::shared_ptr<Gate> gate;
    ~Closing() {
      const std::lock_guard lock(gate->mutex);
      gate->open = false;
    }
  };
  const Closing closing{std::make_shared<Gate>()};
  options.progress(context(event, [gate = closing.gate, model = std::move(model)] {
    const std::lock_guard lock(gate->mutex);
    if (gate->open) return model();
    throw Exception(ErrorKind::invalid_argument,
                    "the handler of this context has returned; the context of UpdateTask::run keeps its model");
  }));
}

UpdateContext UpdateTask::Impl::run_network() {
  if (trace::is_on() && trace_model == 0) trace_model = trace::add_model("update");
  const trace::Use use(trace_model);
  const auto progress = [&](update::Event event, const update::Metrics& now, update::Settings&) -> Status {
    metrics = now;
    show(static_cast<UpdateEvent>(event), [this] { return current(); });
    return {};
  };
  check_known();
  unwrap(network->run(progress));
  UpdateContext out = context(UpdateEvent::epoch_end, [trained = current()] { return trained; });
  out.is_cancelled = network->is_cancelled();
  return out;
}

void UpdateTask::Impl::read_sample(size_t index, const std::string& input, const std::string& label,
                                   std::span<float> numbers, update::Labels& labels) const {
  const bool texts = own.neighbors->string_labels;
  const auto refuse = [&](const auto&... text) {
    throw Exception(ErrorKind::invalid_argument, cat("example ", index, ": '", text...));
  };
  std::variant<std::string, int64_t> given;
  if (!examples.read_sample || !learner.before.empty() || !examples.read_sample(index, numbers, given) ||
      std::holds_alternative<std::string>(given) != texts) {
    const Features example = with_computed(index, examples.read(index));
    try {
      update::copy_sample(example.find(input), input, numbers);
    } catch (const Exception& e) {
      throw Exception(e.kind(), cat("example ", index, ": ", e.what()));
    }
    const FeatureValue* value = example.find(label);
    const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
    const auto* number = value == nullptr ? nullptr : std::get_if<int64_t>(value);
    if (texts ? text == nullptr : number == nullptr)
      refuse(label, "': expected ", texts ? "a text" : "an integer", ", got ",
             value == nullptr ? "nothing" : describe(*value));
    if (texts)
      given = *text;
    else
      given = *number;
  }
  for (const float v : numbers)
    if (!std::isfinite(v)) refuse(input, "': expected finite numbers, got ", v);
  if (texts)
    std::get<std::vector<std::string>>(labels).push_back(std::get<std::string>(std::move(given)));
  else
    std::get<std::vector<int64_t>>(labels).push_back(std::get<int64_t>(given));
}

namespace {

/// The model that a nearest-neighbors classifier becomes.
struct Neighbors {
  explicit Neighbors(format::ModelSource model) : source(std::move(model)) {}

  format::ModelSource source;  ///< as it was before
  std::shared_ptr<const std::vector<float>> numbers;
  update::Labels labels;
  std::optional<int64_t> neighbors;
  int64_t dimensions = 0;
  std::optional<format::ModelFile> file;  ///< the new model; nullopt: it is made from its message

  /// The new model's message, made once.
  const format::ModelSource& written() {
    std::call_once(once_, [&] { unwrap(update::add_samples(source, *numbers, dimensions, labels, neighbors)); });
    return source;
  }

 private:
  std::once_flag once_;
};

format::ModelSource copy_of(format::ModelSource source) {
  source.specification = source.specification.copy();
  return source;
}

ModelSource source_of(const std::shared_ptr<Neighbors>& made) {
  if (!made->file) return ModelSource(std::make_shared<ModelSource::Impl>(copy_of(made->written())));
  return ModelSource(std::make_shared<ModelSource::Impl>(*made->file, [made] { return copy_of(made->written()); }));
}

}  // namespace

UpdateContext UpdateTask::Impl::run_neighbors() {
  const auto before = std::make_shared<format::ModelSource>(copy_of(source.impl().source()));
  std::function<ModelSource()> model = [before] {
    return ModelSource(std::make_shared<ModelSource::Impl>(copy_of(*before)));
  };
  const bool is_cancelled_before = cancelled.exchange(false);
  show(UpdateEvent::training_begin, model);
  const std::string input = learner.description.functions.at(0).inputs.at(0).name;
  const std::string label = learner.description.functions.at(0).predicted_feature_name;
  update::Labels labels;
  if (!own.neighbors->string_labels) labels = std::vector<int64_t>();
  const auto width = static_cast<size_t>(own.neighbors->dimensions);
  const auto rows = std::make_shared<std::vector<float>>(examples.count * width);
  for (size_t i = 0; i < examples.count && !is_cancelled_before && !cancelled; i++)
    read_sample(i, input, label, std::span(*rows).subspan(i * width, width), labels);
  const auto k = own_settings.find("numberOfNeighbors");
  const std::optional<int64_t> neighbors =
      k == own_settings.end() ? std::nullopt : std::optional(std::get<int64_t>(k->second));
  if (!is_cancelled_before && !cancelled) {
    unwrap(update::check_samples(own, *rows, own.neighbors->dimensions, labels, neighbors));
    auto made = std::make_shared<Neighbors>(copy_of(*before));
    made->numbers = rows;
    made->labels = std::move(labels);
    made->neighbors = neighbors;
    made->dimensions = own.neighbors->dimensions;
    if (update.stage.empty()) {
      auto more = file.with_samples({{std::as_bytes(std::span(*rows)), rows}, made->labels, neighbors});
      if (more.ok()) made->file = std::move(more).value();
    }
    model = [made] { return source_of(made); };
    show(UpdateEvent::epoch_end, model);
  }
  UpdateContext out = context(UpdateEvent::epoch_end, model);
  out.is_cancelled = is_cancelled_before || cancelled.exchange(false);
  return out;
}

UpdateTask::UpdateTask(const ModelSource& model, UpdateExamples examples, UpdateOptions options)
    : impl_(std::make_shared<Impl>(model, api::file_of(model), std::move(examples), std::move(options))) {}

UpdateTask::UpdateTask(const std::filesystem::path& path, UpdateExamples examples, UpdateOptions options)
    : impl_([&] {
        Opened opened = open_for_update(boundary::native(path));
        return std::make_shared<Impl>(std::move(opened.source), std::move(opened.file), std::move(examples),
                                      std::move(options));
      }()) {}

UpdateContext UpdateTask::run() {
  struct Running {
    Impl& task;
    ~Running() { task.runs_on = std::thread::id(); }
  };
  std::thread::id none;
  if (!impl_->runs_on.compare_exchange_strong(none, std::this_thread::get_id()))
    throw Exception(ErrorKind::invalid_argument, "the task is running already");
  const Running running{*impl_};
  return impl_->network ? impl_->run_network() : impl_->run_neighbors();
}

void UpdateTask::resume(const UpdateParameters& parameters) {
  const std::thread::id thread = impl_->runs_on;
  if (thread != std::thread::id() && thread != std::this_thread::get_id())
    throw Exception(ErrorKind::invalid_argument, "the task is running: only its handler changes parameters");
  impl_->change(parameters);
}

void UpdateTask::cancel() {
  impl_->cancelled = true;
  if (impl_->network) impl_->network->cancel();
}

ComputePlan UpdateTask::compute_plan() const {
  const runtime::Model* program = impl_->network ? impl_->network->learner().program() : nullptr;
  if (program == nullptr)
    throw Exception(ErrorKind::invalid_argument, impl_->network
                                                     ? "the plan of a step is made by the first mini-batch"
                                                     : "a nearest-neighbors classifier has no training step");
  std::vector<ir::Type> types;
  for (const auto& v : program->ir().body().inputs()) types.push_back(v->type);
  return api::report(*program, *unwrap(program->plan(types)), nullptr);
}

const UpdateDescription& UpdateTask::description() const { return impl_->described; }

}  // namespace moka
