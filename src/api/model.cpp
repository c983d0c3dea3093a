#include "moka/model.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "api/internal.h"
#include "api/structure.h"
#include "base/processors.h"
#include "ir/text_printer.h"
#include "kernel/layout.h"
#include "kernel/workers.h"

namespace moka {

namespace api {
/// Devices for a configuration, best first, `reference` last; made by the build from src/devices/.
Result<std::vector<const kernel::Device*>> devices_for(const ModelConfiguration& configuration);
}  // namespace api

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::shared_ptr<MemoryBudget> budget_of(const ModelConfiguration& c) {
  return c.memory_budget == 0 ? nullptr : std::make_shared<MemoryBudget>(c.memory_budget);
}

/// Input `i` of the function is described by its inputs, then its states.
const import::FeatureDescription& feature_of(const import::FunctionDescription& f, const ir::Value& input) {
  for (const auto* list : {&f.inputs, &f.states})
    for (const auto& x : *list)
      if (x.name == input.name) return x;
  std::abort();  // compile checked it
}

}  // namespace

Result<import::ImportedModel> Model::Impl::Source::import(const import::ImportOptions& options) const {
  if (file) return import::import_model(*file, options);
  return api::import_text(text, weights, options.budget);
}

std::shared_ptr<const Model::Impl> Model::Impl::make(std::shared_ptr<const Source> source,
                                                     const ModelConfiguration& configuration,
                                                     std::shared_ptr<MemoryBudget> budget, LoadTimes times) {
  api::check_processors(configuration.processors);
  kernel::help_from(configuration.processors);
  auto impl = std::make_shared<Impl>();
  auto start = Clock::now();
  import::ImportedModel m = api::unwrap(source->import({budget}));
  times.import = seconds_since(start);
  impl->source = std::move(source);
  impl->sequences_only = m.sequences;
  impl->configuration = configuration;
  impl->description = api::to_public(m.description);
  runtime::CompileOptions options;
  options.function_name = configuration.function_name;
  options.optimize = configuration.optimize;
  options.exact_precision = configuration.precision == Precision::exact;
  options.loop_limit = configuration.loop_limit;
  options.plan.devices = api::unwrap(api::devices_for(configuration));
  options.plan.threads = configuration.threads > 0          ? configuration.threads
                         : configuration.processors.empty() ? processors()
                                                            : static_cast<int>(configuration.processors.size());
  options.plan.reuse_buffers = configuration.reuse_buffers;
  options.plan.cached_shapes = configuration.cached_shapes;
  options.plan.budget = std::move(budget);
  options.packed = impl->source->packed;
  impl->kernel_cache = api::unwrap(api::kernel_cache_for(configuration, options.plan.devices));
  options.plan.choices = impl->kernel_cache.choices;
  impl->packed_weights = api::unwrap(
      api::packed_weights_for(configuration, impl->source->path, options.plan.devices, options.plan.threads));
  options.cache = impl->packed_weights.cache;
  start = Clock::now();
  impl->model = api::unwrap(runtime::Model::compile(std::move(m), options));
  if (options.plan.choices) api::unwrap(api::check_pins(*options.plan.choices, impl->model->ir()));
  impl->compile_options = std::move(options);
  times.passes = seconds_since(start);
  const import::FunctionDescription& f = impl->model->function();
  for (const auto& g : impl->description.functions)
    if (g.name == f.name) impl->function = g;

  start = Clock::now();
  std::vector<ir::Type> types;
  bool concrete = !impl->sequences_only, flexible = false, chosen = false;
  for (const auto& v : impl->model->ir().body().inputs()) {
    const import::FeatureDescription& x = feature_of(f, *v);
    auto t = api::default_type(x, v->type);
    concrete &= t.ok() && (t->is_concrete() || t->is_state());
    flexible |= v->type.is_tensor() && !v->type.is_concrete();
    chosen |= api::chooses_default(x);
    if (t.ok()) types.push_back(*t);
  }
  // Default sizes that the model chooses must fit each other: Core ML refuses it otherwise. The lowest sizes are what
  // converters write when nobody chooses, and values that break a rule may be others for the sizes that come.
  if (concrete && types.size() == impl->model->ir().body().inputs().size()) {
    auto planned = impl->model->plan(types);
    if (!planned.ok()) {
      const ErrorCode code = planned.error().code();
      const bool tolerated = flexible && (code == ErrorCode::data || (code == ErrorCode::invalid_argument && !chosen));
      if (!flexible) api::raise(planned.error());
      if (!tolerated) api::raise(std::move(planned.error()).in("with the default sizes of the inputs"));
    }
    api::unwrap(impl->kernel_cache.save());
    impl->packed_weights.save();
  }
  impl->packed_weights.tell();
  const plan::ConstantPool& pool = *impl->model->plan_options().constants;
  times.pack = pool.prepare_seconds();
  times.packed_bytes = pool.packed_bytes();
  if (pool.cache() != nullptr) times.cached_bytes = pool.cache()->found_bytes();
  times.plan = seconds_since(start) - times.pack;
  times.total = times.open + times.import + times.passes + times.plan + times.pack;
  impl->times = times;
  return impl;
}

namespace {

Bytes hold(std::vector<std::byte> v) {
  auto owner = std::make_shared<std::vector<std::byte>>(std::move(v));
  return {*owner, owner};
}

std::map<std::string, Bytes> hold(std::map<std::string, std::vector<std::byte>> files) {
  std::map<std::string, Bytes> out;
  for (auto& [name, data] : files) out.emplace(name, hold(std::move(data)));
  return out;
}

}  // namespace

std::shared_ptr<const Model::Impl> Model::Impl::from_file(
    const std::string& path, const std::function<Result<format::ModelFile>(const format::OpenOptions&)>& open,
    const ModelConfiguration& configuration) {
  auto budget = budget_of(configuration);
  LoadTimes times;
  auto start = Clock::now();
  auto source = std::make_shared<Source>();
  source->file = api::unwrap(open({budget}));
  source->path = path;
  times.open = seconds_since(start);
  return make(std::move(source), configuration, std::move(budget), times);
}

Model Model::load(const std::string& path, const ModelConfiguration& configuration) {
  return Model(Impl::from_file(
      path, [&](const auto& options) { return format::open_model(path, options); }, configuration));
}

Model Model::load(ModelAsset asset, const ModelConfiguration& configuration) {
  Bytes specification = hold(std::move(asset.specification));
  auto blobs = hold(std::move(asset.blobs));
  return Model(Impl::from_file(
      {}, [&](const auto& options) { return format::open_model_bytes(specification, blobs, options); }, configuration));
}

Model Model::from_mil(const std::string& text, const ModelConfiguration& configuration,
                      std::map<std::string, std::vector<std::byte>> weights) {
  auto source = std::make_shared<Impl::Source>();
  source->text = text;
  source->weights = hold(std::move(weights));
  return Model(Impl::make(std::move(source), configuration, budget_of(configuration), {}));
}

Model Model::configured(const ModelConfiguration& configuration) const {
  return Model(Impl::make(impl_->source, configuration, budget_of(configuration), {}));
}

ModelDescription Model::describe(const std::string& path) {
  return api::to_public(api::unwrap(import::describe_model(api::unwrap(format::open_model(path)))));
}

const ModelDescription& Model::description() const { return impl_->description; }
const FunctionDescription& Model::function() const { return impl_->function; }
const ModelConfiguration& Model::configuration() const { return impl_->configuration; }
const LoadTimes& Model::load_times() const { return impl_->times; }
const std::string& Model::kernel_cache_file() const { return impl_->kernel_cache.path; }
std::string Model::cache_file() const { return impl_->packed_weights.cache ? impl_->packed_weights.cache->path() : ""; }

Result<const runtime::Model*> Model::Impl::model_for(const api::Leading& leading) const {
  const bool sequences = leading.sequence != 1, batches = leading.batch != 1;
  if (!batches && (sequences_only || !sequences)) return model.get();
  Rank5& made = rank5[(sequences || sequences_only ? 1 : 0) + (batches ? 2 : 0) - 1];
  std::call_once(made.once, [&] {
    made.model = [&]() -> Result<std::unique_ptr<runtime::Model>> {
      return runtime::Model::compile(
          MOKA_TRY(source->import({compile_options.plan.budget, sequences || sequences_only, batches})),
          compile_options);
    }();
  });
  if (made.model.ok()) return made.model->get();
  const Error& e = made.model.error();
  return fail(e.code(), "inputs of rank 5: ", e.to_string());
}

namespace {

bool has_value(const FeatureValue* value) {
  return value != nullptr && !std::holds_alternative<std::monostate>(*value);
}

/// Arrays that a frame computes its outputs in. They end with the prediction, whatever becomes of it, and the frame
/// stays.
class PlacedOutputs {
 public:
  explicit PlacedOutputs(runtime::Frame& frame) : frame_(frame) {}
  PlacedOutputs(const PlacedOutputs&) = delete;
  PlacedOutputs& operator=(const PlacedOutputs&) = delete;
  ~PlacedOutputs() {
    for (const auto& [i, array] : arrays_) frame_.place_output(i, nullptr);
  }
  void add(size_t i, MultiArray array) {
    if (array.data() == nullptr) return;
    frame_.place_output(i, array.data());
    arrays_.emplace_back(i, std::move(array));
  }
  MultiArray* find(size_t i) {
    for (auto& [of, array] : arrays_)
      if (of == i) return &array;
    return nullptr;
  }

 private:
  runtime::Frame& frame_;
  std::vector<std::pair<size_t, MultiArray>> arrays_;
};

}  // namespace

Status Model::Impl::predict(const Features& inputs, Features& outputs, const PredictionOptions& options,
                            runtime::TraceSink* trace, Ran* ran) const {
  kernel::help_from(configuration.processors);
  const import::FunctionDescription& f = model->function();
  api::Leading leading;
  for (const auto& [name, value] : inputs) {
    bool known = false;
    for (const auto& x : f.inputs) {
      if (x.name != name) continue;
      known = true;
      const api::Leading own = api::leading_of(x, value);
      leading = {std::max(leading.sequence, own.sequence), std::max(leading.batch, own.batch)};
    }
    if (known) continue;
    std::string all;
    for (const auto& x : f.inputs) all += cat(all.empty() ? "'" : ", '", x.name, "'");
    return fail(ErrorCode::invalid_argument, "input '", name, "': not an input of the model; expected ", all);
  }
  const runtime::Model* const runs = MOKA_TRY(model_for(leading));
  auto body_inputs = runs->ir().body().inputs();
  thread_local std::vector<ir::Type> types;
  types.clear();
  for (const auto& v : body_inputs) {
    const import::FeatureDescription& x = feature_of(f, *v);
    if (v->type.is_state()) {
      types.push_back(v->type);
      continue;
    }
    const FeatureValue* value = inputs.find(x.name);
    if (!has_value(value)) {
      if (!x.optional)
        return fail(ErrorCode::invalid_argument, "input '", x.name, "': expected ", api::to_public(x).formatted_type(),
                    ", got nothing");
      types.push_back(MOKA_TRY(api::default_type(x, v->type, leading.batch)));
    } else {
      types.push_back(MOKA_TRY(api::input_type(x, v->type, *value)));
    }
  }
  if (!f.states.empty() && options.state == nullptr)
    return fail(ErrorCode::invalid_argument, "the model keeps states: predict needs one made by new_state");

  struct InUse {
    std::atomic<bool>* flag = nullptr;
    ~InUse() {
      if (flag != nullptr) flag->store(false);
    }
  } in_use;
  if (!f.states.empty()) {
    if (options.state->impl().in_use.exchange(true))
      return fail(ErrorCode::invalid_argument, "the state is used by another prediction at the same time");
    in_use.flag = &options.state->impl().in_use;
  }

  auto session = MOKA_TRY(runs->acquire(types));
  Status status = [&]() -> Status {
    for (size_t i = 0; i < body_inputs.size(); i++) {
      const import::FeatureDescription& x = feature_of(f, *body_inputs[i]);
      void* data = nullptr;
      if (types[i].is_state()) {
        for (auto& [name, buffer] : options.state->impl().buffers)
          if (name == x.name && buffer.dtype() == types[i].element().dtype() &&
              buffer.shape() == types[i].element().shape())
            data = buffer.mutable_data();
        if (data == nullptr)
          return fail(ErrorCode::invalid_argument, "state '", x.name, "': expected ", types[i].element(),
                      ", which the given state does not have: states are made by new_state of the same model");
      } else if (const FeatureValue* value = inputs.find(x.name); has_value(value)) {
        data = MOKA_TRY(api::bind_input(x, types[i], *value, *session, i));
      } else {
        data = MOKA_TRY(api::bind_default(x, types[i], *session, i));
      }
      session->frame->set_input(i, data);
    }
    session->context.trace = trace;
    if (ran != nullptr) *ran = {runs, session->plan};
    auto returned = [&](size_t i, ir::TensorView view) {
      if (runs != model.get() || sequences_only) view.shape = api::output_shape(f.outputs[i], view.shape);
      return view;
    };
    PlacedOutputs placed(*session->frame);
    for (size_t i = 0; i < f.outputs.size(); i++) {
      const ir::TensorView* view = session->frame->placeable_output(i);
      if (view == nullptr || has_value(outputs.find(f.outputs[i].name))) continue;
      placed.add(i, MOKA_TRY(api::new_output(f.outputs[i], returned(i, *view))));
    }
    MOKA_TRY(session->frame->run());
    for (size_t i = 0; i < f.outputs.size(); i++) {
      if (MultiArray* array = placed.find(i)) {
        outputs[f.outputs[i].name] = std::move(*array);
        continue;
      }
      MOKA_TRY(api::store_output(f.outputs[i], session->frame->output_type(i), returned(i, session->frame->output(i)),
                                 outputs[f.outputs[i].name]));
    }
    return {};
  }();
  runs->release(std::move(session));
  packed_weights.save();
  if (status.ok()) MOKA_TRY(kernel_cache.save());
  return status;
}

void Model::predict(const Features& inputs, Features& outputs, const PredictionOptions& options) const {
  api::unwrap(impl_->predict(inputs, outputs, options, nullptr, nullptr));
}

Features Model::predict(const Features& inputs, const PredictionOptions& options) const {
  Features outputs;
  predict(inputs, outputs, options);
  return outputs;
}

std::vector<Features> Model::predict_batch(std::span<const Features> inputs) const {
  std::vector<Features> out;
  out.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); i++) {
    try {
      out.push_back(predict(inputs[i]));
    } catch (const Exception& e) {
      throw Exception(e.kind(), cat("batch item ", i, ": ", e.what()));
    }
  }
  return out;
}

std::future<Features> Model::predict_async(Features inputs) const {
  return std::async(std::launch::async, [model = *this, inputs = std::move(inputs)] { return model.predict(inputs); });
}

State Model::new_state() const {
  auto impl = std::make_shared<State::Impl>();
  for (const auto& v : impl_->model->ir().body().inputs())
    if (v->type.is_state()) {
      const ir::Type& t = v->type.element();
      size_t bytes = api::unwrap(ir::storage_bytes(t.dtype(), t.shape())), limit = impl_->configuration.memory_budget;
      if (limit > 0 && bytes > limit)
        throw Exception(ErrorKind::out_of_budget,
                        cat("state '", v->name, "' needs ", bytes, " bytes; the memory budget is ", limit));
      impl->buffers.emplace_back(v->name, api::unwrap(ir::Tensor::zeros(t.dtype(), t.shape())));
    }
  return State(std::move(impl));
}

namespace {

struct Timing final : runtime::TraceSink {
  std::map<const plan::Step*, std::pair<double, int64_t>> steps;
  void step(const plan::Plan&, const plan::Step& step, double seconds, std::span<const ir::TensorView>) override {
    auto& [total, runs] = steps[&step];
    total += seconds;
    runs++;
  }
};

struct Observer final : runtime::TraceSink {
  const Intermediate& observe;
  explicit Observer(const Intermediate& o) : observe(o) {}
  void step(const plan::Plan& plan, const plan::Step& step, double, std::span<const ir::TensorView> out) override {
    if (step.op == nullptr) return;
    for (size_t i = 0; i < out.size(); i++) {
      const plan::Place& p = plan.places[static_cast<size_t>(step.out[i])];
      if (!p.type.is_tensor() || p.type.dtype() == ir::DType::string) continue;
      ir::Tensor plain;
      ir::TensorView view = out[i];
      if (!p.layout.is_row_major()) {
        auto t = ir::Tensor::zeros(view.dtype, view.shape);
        if (!t.ok()) continue;
        plain = std::move(t).value();
        kernel::convert_layout(view, p.layout, plain.view(), {}, 0, kernel::convert_tiles(view.shape, p.layout, {}));
        view = plain.view();
      }
      auto array = api::to_array(view);
      if (array.ok()) observe(step.op->name, p.value != nullptr ? p.value->name : step.op->name, *array);
    }
  }
};

}  // namespace

namespace {
/// Throws out_of_budget where an input of the default shape is larger than `limit` bytes.
void check_default_sizes(const FunctionDescription& function, size_t limit) {
  for (const FeatureDescription& f : function.inputs) {
    size_t bytes = size_of(f.array.type);
    for (int64_t d : f.array.shape)
      if (d < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(d), &bytes)) bytes = SIZE_MAX / 2;
    if (f.type == FeatureType::multi_array && bytes > limit)
      throw Exception(ErrorKind::out_of_budget, cat("input '", f.name, "': ", f.formatted_type(),
                                                    " is larger than the memory budget of ", limit, " bytes"));
  }
}
}  // namespace

ComputePlan Model::compute_plan(const Features& inputs, bool measure) const {
  if (inputs.empty() && impl_->configuration.memory_budget > 0)
    check_default_sizes(impl_->function, impl_->configuration.memory_budget);
  Features given = inputs.empty() ? random_inputs(impl_->function) : inputs;
  Features outputs;
  std::optional<State> state;
  PredictionOptions options;
  if (!impl_->function.states.empty()) {
    state = new_state();
    options.state = &*state;
  }
  Impl::Ran ran;
  // Continuations are planned as shapes are learned: running once shows them all.
  api::unwrap(impl_->predict(given, outputs, options, nullptr, &ran));
  Timing timing;
  double total = -1;
  if (measure) {
    auto start = Clock::now();
    api::unwrap(impl_->predict(given, outputs, options, &timing, &ran));
    total = seconds_since(start);
  }
  ComputePlan report = api::report(*ran.model, *ran.plan, measure ? &timing.steps : nullptr);
  report.measured_seconds = total;
  if (const std::string& remark = impl_->kernel_cache.remark; !remark.empty())
    report.remarks.push_back({"kernel_cache", remark});
  if (const auto& cache = impl_->packed_weights.cache; cache && !cache->remark().empty())
    report.remarks.push_back({"cache", cache->remark()});
  return report;
}

Features Model::intermediates(const Features& inputs, const Intermediate& observe,
                              const PredictionOptions& options) const {
  Features outputs;
  Observer observer(observe);
  api::unwrap(impl_->predict(inputs, outputs, options, &observer, nullptr));
  return outputs;
}

OperationList Model::operations() const { return api::operations(*impl_->model); }

ModelStructure Model::structure() const {
  const Impl::Source& source = *impl_->source;
  if (source.file) return api::unwrap(api::structure_of(*source.file, {}));
  ModelStructure out;
  out.type = impl_->description.type;
  out.functions = api::functions_of(api::unwrap(source.import({})).program);
  return out;
}

std::string Model::mil(bool optimized) const {
  if (optimized) return ir::print_text(impl_->model->program());
  const Impl::Source& source = *impl_->source;
  return source.file ? ir::print_text(api::unwrap(source.import({})).program) : source.text;
}

MultiArray State::read(std::string_view name) const {
  for (const auto& [n, t] : impl_->buffers)
    if (n == name) return api::unwrap(api::to_array(t.view()));
  throw Exception(ErrorKind::not_found, cat("state '", name, "': not a state of the model"));
}

void State::write(std::string_view name, const MultiArray& value) {
  for (auto& [n, t] : impl_->buffers)
    if (n == name) {
      if (ir::Shape(std::span<const int64_t>(value.shape())) == t.shape()) return api::copy_array(value, t.view());
      throw Exception(ErrorKind::invalid_argument,
                      cat("state '", name, "': expected shape ", t.shape(), ", got ", describe(value)));
    }
  throw Exception(ErrorKind::not_found, cat("state '", name, "': not a state of the model"));
}

std::vector<std::string> State::names() const {
  std::vector<std::string> out;
  for (const auto& [n, t] : impl_->buffers) out.push_back(n);
  return out;
}

}  // namespace moka
