#include "moka/model.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "api/bound_states.h"
#include "api/internal.h"
#include "base/processors.h"
#include "import/outline.h"
#include "ir/text_printer.h"
#include "kernel/layout.h"
#include "kernel/thread_pool.h"
#include "moka/inspection.h"
#include "plan/draft.h"

namespace moka {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::shared_ptr<MemoryBudget> budget_of(const ModelConfiguration& c) {
  return c.memory_budget == 0 ? nullptr : std::make_shared<MemoryBudget>(c.memory_budget);
}

/// The description of input `i` of the function's body. Inputs come first, then states.
const import::FeatureDescription& feature_of(const import::FunctionDescription& f, const ir::Value& input, size_t i) {
  if (i < f.inputs.size() && f.inputs[i].name == input.name) return f.inputs[i];
  for (const auto* list : {&f.inputs, &f.states})
    for (const auto& x : *list)
      if (x.name == input.name) return x;
  std::abort();  // compile has checked this
}

/// The value named `name`, which callers usually pass as the i-th; nullptr when absent.
const FeatureValue* value_of(const Features& features, std::string_view name, size_t i) {
  if (i < features.size() && features.begin()[static_cast<std::ptrdiff_t>(i)].first == name)
    return &features.begin()[static_cast<std::ptrdiff_t>(i)].second;
  return features.find(name);
}

/// The planes of each image input of a function that must be given.
std::function<std::optional<kernel::PlaneOrder>(const ir::Value&)> image_planes_of(const import::ModelDescription& d,
                                                                                   const std::string& function) {
  std::map<std::string, kernel::PlaneOrder> orders;
  if (const auto* f = d.function(function.empty() ? d.default_function : function))
    for (const import::FeatureDescription& x : f->inputs)
      if (x.kind == import::FeatureKind::image && !x.optional) orders.emplace(x.name, api::plane_order(x));
  return [orders = std::move(orders)](const ir::Value& input) -> std::optional<kernel::PlaneOrder> {
    const auto found = orders.find(input.name);
    return found == orders.end() ? std::nullopt : std::optional(found->second);
  };
}

/// An operation refused an argument. The error's kind depends on where the argument came from.
Error blamed(Error error, ErrorCode code) {
  return error.code() == ErrorCode::invalid_argument ? fail(code, error.to_string()) : std::move(error);
}

}  // namespace

Result<import::ImportedModel> Model::Impl::Source::import(const import::ImportOptions& options) const {
  if (file) {
    Result<import::ImportedModel> imported = import::import_model(*file, options);
    return imported.ok() ? std::move(imported) : blamed(std::move(imported).error(), ErrorCode::malformed);
  }
  if (options.rows) return fail(ErrorCode::unsupported, "programs in text form do not take rows");
  return api::import_text(text, weights, options.budget);
}

std::shared_ptr<const Model::Impl> Model::Impl::make(std::shared_ptr<const Source> source,
                                                     const ModelConfiguration& configuration,
                                                     std::shared_ptr<MemoryBudget> budget, LoadTimes times) {
  const size_t heap = heap_in_use();
  api::check_processors(configuration.processors);
  kernel::place_workers(configuration.processors);
  auto impl = std::make_shared<Impl>();
  impl->trace_model = trace::current_model();
  auto start = Clock::now();
  auto m = [&] {
    const trace::Span span(trace::Lane::activity, "import");
    return api::unwrap(source->import({budget}));
  }();
  times.import = seconds_since(start);
  impl->source = std::move(source);
  impl->sequences_only = m.sequences;
  impl->sized = m.sized;
  impl->configuration = configuration;
  impl->configuration.key = nullptr;
  impl->description = api::to_public(m.description);
  runtime::CompileOptions options;
  options.function_name = configuration.function_name;
  options.optimize = configuration.optimize;
  options.exact_precision = configuration.precision == Precision::exact;
  options.loop_limit = configuration.loop_limit;
  api::Devices devices = api::unwrap(api::devices_for(configuration));
  options.plan.devices = devices.list;
  if (!devices.pins.empty())
    options.plan.pinned_device = [pins = devices.pins](const ir::Op& op) { return pins.of(op); };
  options.plan.strict = configuration.strict;
  options.plan.states_on_devices = true;
  options.plan.image_planes = image_planes_of(m.description, options.function_name);
  options.plan.threads = configuration.threads > 0          ? configuration.threads
                         : configuration.processors.empty() ? processors()
                                                            : static_cast<int>(configuration.processors.size());
  const api::ModelRates rates = api::rates_for(configuration, options.plan.devices, options.plan.threads);
  options.plan.rates = rates.rates;
  if (!rates.remark.empty()) {
    api::warn(rates.remark);
    devices.remarks.push_back(rates.remark);
  }
  options.plan.low_memory = configuration.low_memory;
  options.plan.reuse_buffers = configuration.reuse_buffers;
  options.plan.cached_shapes = configuration.cached_shapes;
  options.plan.kept = std::make_shared<plan::KeptPlans>();
  options.plan.kept->limit = configuration.idle_memory;
  options.plan.budget = std::move(budget);
  options.packed = impl->source->packed;
  options.idle_memory = configuration.idle_memory;
  impl->kernel_cache = api::unwrap(api::kernel_cache_for(configuration, options.plan.devices));
  options.plan.choices = impl->kernel_cache.choices;
  // Packed weights on disk would be plain.
  const bool encrypted = impl->source->file && impl->source->file->encrypted();
  impl->packed_weights = api::unwrap(api::packed_weights_for(configuration, encrypted ? "" : impl->source->path,
                                                             options.plan.devices, options.plan.threads));
  options.cache = impl->packed_weights.cache;
  start = Clock::now();
  {
    const trace::Span span(trace::Lane::activity, "passes");
    impl->model = api::unwrap(runtime::Model::compile(std::move(m), options));
  }
  if (options.plan.choices) api::unwrap(api::check_pins(*options.plan.choices, impl->model->ir()));
  api::unwrap(devices.pins.check(impl->model->ir()));
  impl->device_remarks = devices.pins.idle(impl->model->ir());
  std::move(devices.remarks.begin(), devices.remarks.end(), std::back_inserter(impl->device_remarks));
  impl->compile_options = std::move(options);
  times.passes = seconds_since(start);
  const import::FunctionDescription& f = impl->model->function();
  for (const auto& g : impl->description.functions)
    if (g.name == f.name) impl->function = g;

  start = Clock::now();
  std::vector<ir::Type> types;
  bool concrete = !impl->sequences_only, flexible = false, chosen = false;
  for (const auto& v : impl->model->ir().body().inputs()) {
    const import::FeatureDescription& x = feature_of(f, *v, types.size());
    auto t = api::default_type(x, v->type);
    concrete &= t.ok() && (t->is_concrete() || t->is_state());
    flexible |= v->type.is_tensor() && !v->type.is_concrete();
    chosen |= api::chooses_default(x);
    if (t.ok()) types.push_back(*t);
  }
  // Default sizes that the model states must fit each other; Core ML refuses the model otherwise. Lowest sizes are only
  // what converters write when no default was chosen. They may contradict each other while the sizes of real inputs
  // fit.
  if (concrete && types.size() == impl->model->ir().body().inputs().size()) {
    auto planned = impl->model->plan(types);
    if (!planned.ok()) {
      const ErrorCode code = planned.error().code();
      const bool tolerated = flexible && (code == ErrorCode::data || (code == ErrorCode::invalid_argument && !chosen));
      Error error = blamed(std::move(planned).error(), impl->source->file ? ErrorCode::malformed : code);
      if (!flexible) api::raise(error);
      if (!tolerated) api::raise(std::move(error).in("with the default sizes of the inputs"));
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
  const size_t heap_now = heap_in_use();
  impl->heap_bytes = heap_now > heap ? heap_now - heap : 0;
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
    const ModelConfiguration& configuration, std::shared_ptr<plan::PackedStore> packed) {
  const api::TracedLoad traced(path, configuration);
  auto budget = budget_of(configuration);
  LoadTimes times;
  auto start = Clock::now();
  auto source = std::make_shared<Source>();
  if (packed) source->packed = std::move(packed);
  {
    const trace::Span span(trace::Lane::activity, "open");
    source->file = api::unwrap(open({budget, false, api::key_source(configuration.key)}));
  }
  source->path = path;
  for (const std::string& remark : import::remarks_of(*source->file))
    api::warn(path.empty() ? remark : cat("'", path, "': ", remark));
  times.open = seconds_since(start);
  return make(std::move(source), configuration, std::move(budget), times);
}

Model Model::Impl::in_memory(const Bytes& specification, const std::map<std::string, Bytes>& files,
                             std::shared_ptr<plan::PackedStore> packed, const ModelConfiguration& configuration) {
  return Model(from_file(
      {}, [&](const auto& options) { return format::open_model_bytes(specification, files, options); }, configuration,
      std::move(packed)));
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

Model Model::load(const ModelAssetView& asset, const ModelConfiguration& configuration) {
  std::map<std::string, Bytes> blobs;
  for (const auto& [name, data] : asset.blobs) blobs.emplace(name, Bytes{data, asset.owner});
  const Bytes specification{asset.specification, asset.owner};
  return Model(Impl::from_file(
      {}, [&](const auto& options) { return format::open_model_bytes(specification, blobs, options); }, configuration));
}

Model Model::load(const ModelReader& reader, const ModelConfiguration& configuration) {
  const Bytes bytes = api::read_model(reader);
  return Model(Impl::from_file(
      {}, [&](const auto& options) { return format::open_model_bytes(bytes, {}, options); }, configuration));
}

Model Model::from_mil(const std::string& text, const ModelConfiguration& configuration,
                      std::map<std::string, std::vector<std::byte>> weights) {
  const api::TracedLoad traced({}, configuration);
  auto source = std::make_shared<Impl::Source>();
  source->text = text;
  source->weights = hold(std::move(weights));
  return Model(Impl::make(std::move(source), configuration, budget_of(configuration), {}));
}

Model Model::configured(const ModelConfiguration& configuration) const {
  const api::TracedLoad traced(impl_->source->path, configuration);
  return Model(Impl::make(impl_->source, configuration, budget_of(configuration), {}));
}

ModelDescription Model::describe(const std::string& path) { return outline(path).description; }

ModelOutline Model::outline(const std::string& path) { return Inspection::open(path).outline(); }

const ModelDescription& Model::description() const& { return impl_->description; }
ModelDescription Model::description() && { return impl_->description; }
const FunctionDescription& Model::function() const& { return impl_->function; }
FunctionDescription Model::function() && { return impl_->function; }
const ModelConfiguration& Model::configuration() const& { return impl_->configuration; }
ModelConfiguration Model::configuration() && { return impl_->configuration; }
const LoadTimes& Model::load_times() const& { return impl_->times; }
LoadTimes Model::load_times() && { return impl_->times; }
const std::string& Model::kernel_cache_file() const { return impl_->kernel_cache.path; }
std::string Model::cache_file() const { return impl_->packed_weights.cache ? impl_->packed_weights.cache->path() : ""; }

namespace {

bool has_value(const FeatureValue* value) {
  return value != nullptr && !std::holds_alternative<std::monostate>(*value);
}

/// Arrays into which a frame computes its outputs. They are released after the prediction, whether or not it succeeds,
/// while the frame is kept.
class PlacedOutputs {
 public:
  explicit PlacedOutputs(runtime::Frame& frame) : frame_(frame) {}
  PlacedOutputs(const PlacedOutputs&) = delete;
  PlacedOutputs& operator=(const PlacedOutputs&) = delete;
  ~PlacedOutputs() {
    for (const auto& [i, array] : arrays_) frame_.place_output(i, nullptr);
    for (size_t i = 0; given_ >> i != 0 && i < kMostGiven; i++)
      if (is_given(i)) frame_.place_output(i, nullptr);
  }
  void add(size_t i, MultiArray array) {
    if (array.data() == nullptr) return;
    frame_.place_output(i, array.data());
    arrays_.emplace_back(i, std::move(array));
  }
  /// The caller's own array for the output, which outlives this.
  void give(size_t i, void* data) {
    frame_.place_output(i, data);
    given_ |= uint64_t{1} << i;
  }
  bool is_given(size_t i) const { return i < kMostGiven && (given_ >> i & 1) != 0; }
  static constexpr size_t kMostGiven = 64;
  MultiArray* find(size_t i) {
    for (auto& [of, array] : arrays_)
      if (of == i) return &array;
    return nullptr;
  }

 private:
  runtime::Frame& frame_;
  std::vector<std::pair<size_t, MultiArray>> arrays_;
  uint64_t given_ = 0;  ///< bit i: output i
};

std::pair<const std::byte*, const std::byte*> extent(const MultiArray& a) {
  const auto* first = static_cast<const std::byte*>(a.data());
  return {first, first + static_cast<size_t>(a.count()) * size_of(a.type())};
}

/// Whether writing to `array` before the prediction has ended changes what it reads, or another output.
bool overlaps(const MultiArray& array, const Features& inputs, const Features& outputs) {
  const auto [first, last] = extent(array);
  for (const Features* some : {&inputs, &outputs})
    for (const auto& [name, value] : *some)
      if (const auto* other = std::get_if<MultiArray>(&value); other != nullptr && other != &array) {
        if (!other->is_contiguous()) return true;
        const auto [from, to] = extent(*other);
        if (first < to && from < last) return true;
      }
  return false;
}

/// The caller's array for an output, where the output can be computed in it.
void* room_for(const import::FeatureDescription& f, const ir::TensorView& view, FeatureValue* value,
               const Features& inputs, const Features& outputs) {
  auto* array = std::get_if<MultiArray>(value);
  if (array == nullptr || array->data() == nullptr || !array->is_contiguous() ||
      f.kind != import::FeatureKind::multi_array || api::to_ir(array->type()) != f.array.dtype ||
      f.array.dtype != view.dtype || view.shape.rank() == 0)
    return nullptr;
  const auto dims = view.shape.dims();
  if (!std::equal(dims.begin(), dims.end(), array->shape().begin(), array->shape().end())) return nullptr;
  return overlaps(*array, inputs, outputs) ? nullptr : array->data();
}

}  // namespace

Result<Model::Impl::Chosen> Model::Impl::choose(const Features& inputs, const std::vector<std::string>& outputs,
                                                std::vector<ir::Type>& types) const {
  const import::FunctionDescription& f = model->function();
  api::Leading leading;
  for (size_t i = 0; const auto& [name, value] : inputs) {
    auto x = f.inputs.begin() + static_cast<std::ptrdiff_t>(std::min(i++, f.inputs.size()));
    if (x == f.inputs.end() || x->name != name)
      x = std::find_if(f.inputs.begin(), f.inputs.end(), [&n = name](const auto& of) { return of.name == n; });
    if (x != f.inputs.end()) {
      const api::Leading own = api::leading_of(*x, value);
      leading = {std::max(leading.sequence, own.sequence), std::max(leading.batch, own.batch)};
      continue;
    }
    std::string all;
    for (const auto& of : f.inputs) all += cat(all.empty() ? "'" : ", '", of.name, "'");
    return fail(ErrorCode::invalid_argument, "input '", name, "': not an input of the model; expected ", all);
  }
  const std::shared_ptr<const runtime::Model> runs = MOKA_TRY(model_for(leading, outputs, MOKA_TRY(sizes_of(inputs))));
  types.clear();
  for (const auto& v : runs->ir().body().inputs()) {
    const import::FeatureDescription& x = feature_of(f, *v, types.size());
    if (v->type.is_state()) {
      types.push_back(v->type);
      continue;
    }
    const FeatureValue* value = value_of(inputs, x.name, types.size());
    if (!has_value(value)) {
      if (!x.optional)
        return fail(ErrorCode::invalid_argument, "input '", x.name, "': expected ", api::to_public(x).formatted_type(),
                    ", got nothing");
      types.push_back(MOKA_TRY(api::default_type(x, v->type, leading.batch)));
    } else {
      types.push_back(MOKA_TRY(api::input_type(x, v->type, *value)));
    }
  }
  return Chosen{runs, sequences_only || leading.sequence != 1 || leading.batch != 1};
}

namespace {

/// The input whose value is not among the categories that the model knows; nullptr: none.
const import::FeatureDescription* of_unknown_category(const import::FunctionDescription& f, const Features& inputs) {
  const auto known = [](const import::FeatureDescription& x, const std::string& text) {
    return std::find(x.categories.begin(), x.categories.end(), text) != x.categories.end();
  };
  for (const import::FeatureDescription& x : f.inputs) {
    const FeatureValue* value = inputs.find(x.name);
    if (x.categories.empty() || value == nullptr) continue;
    if (const auto* text = std::get_if<std::string>(value); text != nullptr && !known(x, *text)) return &x;
    if (const auto* number = std::get_if<int64_t>(value); number != nullptr && !known(x, cat(*number))) return &x;
    if (const auto* array = std::get_if<MultiArray>(value))
      for (int64_t i = 0; i < array->count(); ++i)
        if (!known(x, cat(static_cast<int64_t>(array->at(i))))) return &x;
  }
  return nullptr;
}

}  // namespace

Status Model::Impl::plans(const Features& inputs) const {
  std::vector<ir::Type> types;
  const Chosen chosen = MOKA_TRY(choose(inputs, {}, types));
  MOKA_TRY(chosen.model->plan(types));
  return {};
}

bool Model::Impl::takes_rank5(std::string_view input) const {
  for (const auto& x : model->function().inputs)
    if (x.name == input) return x.array.takes_rank5;
  return false;
}

namespace {

void tell(const std::vector<std::string>& remarks, const PredictionOptions& options) {
  for (const std::string& remark : remarks) api::warn(remark);
  if (options.remarks == nullptr || remarks.empty()) return;
  // The items of a batch share the list.
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  options.remarks->insert(options.remarks->end(), remarks.begin(), remarks.end());
}

}  // namespace

Status Model::Impl::predict(const Features& inputs, Features& outputs, const PredictionOptions& options,
                            runtime::TraceSink* trace, Ran* ran, bool observed) const {
  kernel::place_workers(configuration.processors);
  const bool is_recorded = trace::is_on();
  const trace::Use use(is_recorded ? traced() : 0);
  const trace::Span span(trace::Lane::activity, "predict");
  const trace::Counted counted(trace::Counter::predictions);
  const import::FunctionDescription& f = model->function();
  thread_local std::vector<ir::Type> types;
  const auto checked = [&]() -> Result<Chosen> {
    const trace::Span checking(trace::Lane::activity, "check inputs");
    return choose(inputs, options.outputs, types);
  };
  const Chosen chosen = MOKA_TRY(checked());
  const std::shared_ptr<const runtime::Model>& runs = chosen.model;
  const auto& wanted = runs->function().outputs;
  auto body_inputs = runs->ir().body().inputs();
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

  auto session = MOKA_TRY(runs->acquire(types, observed));
  api::BoundStates states(options.state);
  const auto compute = [&]() -> Status {
    for (size_t i = 0; i < body_inputs.size(); i++) {
      const import::FeatureDescription& x = feature_of(f, *body_inputs[i], i);
      void* data = nullptr;
      if (types[i].is_state()) {
        MOKA_TRY(states.bind(x.name, types[i].element(), *session->frame, i,
                             runs->may_replay() && !session->devices.empty()));
        continue;
      } else if (const FeatureValue* value = value_of(inputs, x.name, i); has_value(value)) {
        if (const auto* image = std::get_if<Image>(value); image != nullptr && session->frame->takes_pixels(i)) {
          session->frame->set_pixels(i, api::pixels_of(*image));
          if (!session->frame->takes_planes(i)) continue;
        }
        data = MOKA_TRY(api::bind_input(x, types[i], *value, *session, i));
      } else {
        data = MOKA_TRY(api::bind_default(x, types[i], *session, i));
      }
      session->frame->set_input(i, data);
    }
    session->context.trace = trace;
    session->context.is_recorded = is_recorded;
    if (ran != nullptr) *ran = {runs, session->plan};
    auto returned = [&](size_t i, ir::TensorView view) {
      if (chosen.rank5) view.shape = api::output_shape(wanted[i], view.shape);
      return view;
    };
    PlacedOutputs placed(*session->frame);
    for (size_t i = 0; i < wanted.size(); i++) {
      const ir::TensorView* view = session->frame->placeable_output(i);
      if (view == nullptr) continue;
      if (FeatureValue* given = outputs.find(wanted[i].name); has_value(given)) {
        if (i < PlacedOutputs::kMostGiven)
          if (void* data = room_for(wanted[i], returned(i, *view), given, inputs, outputs)) placed.give(i, data);
        continue;
      }
      placed.add(i, MOKA_TRY(api::new_output(wanted[i], returned(i, *view))));
    }
    if (Status ran_through = runs->run(*session); !ran_through.ok())
      return blamed(std::move(ran_through).error(), ErrorCode::data);
    states.computed();
    for (size_t i = 0; i < wanted.size(); i++) {
      if (placed.is_given(i)) continue;
      if (MultiArray* array = placed.find(i)) {
        outputs[wanted[i].name] = std::move(*array);
        continue;
      }
      MOKA_TRY(api::store_output(wanted[i], session->frame->output_type(i), returned(i, session->frame->output(i)),
                                 outputs[wanted[i].name]));
    }
    return {};
  };
  Status status = compute();
  while (!status.ok()) {
    const bool again = runs->can_replay(*session, status.error());
    states.failed(*session->frame, status.error(), again);
    if (!again) break;
    if (trace != nullptr) trace->restart();
    session = MOKA_TRY(runs->acquire_instead(std::move(session), types, status.error()));
    status = compute();
  }
  tell(session->remarks, options);
  runs->release(std::move(session));
  if (!status.ok() && status.error().code() == ErrorCode::data)
    if (const auto* x = of_unknown_category(f, inputs))
      return std::move(status).error().in(cat("input '", x->name, "'"));
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
      impl->buffers.emplace_back(v->name, runtime::StateValue(api::unwrap(ir::Tensor::zeros(t.dtype(), t.shape()))));
    }
  return State(std::move(impl));
}

namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// Collects the times of all steps in several predictions.
class Timing final : public runtime::TraceSink {
 public:
  void step(const plan::Plan&, const plan::Step& step, double seconds, std::span<const ir::TensorView>) override {
    auto& [total, runs] = current_[&step];
    total += seconds;
    runs++;
  }
  void restart() override { current_.clear(); }
  void end_prediction() {
    for (const auto& [step, time] : current_) {
      all_[step].first.push_back(time.first);
      all_[step].second = std::max(all_[step].second, time.second);
    }
    current_.clear();
  }
  api::StepTimes medians() const {
    api::StepTimes out;
    for (const auto& [step, times] : all_) out[step] = {median(times.first), times.second};
    return out;
  }

 private:
  api::StepTimes current_;
  std::map<const plan::Step*, std::pair<std::vector<double>, int64_t>> all_;
};

/// Reports results of operations in program order. Results from devices reach the host later.
class Observer final : public runtime::TraceSink {
 public:
  /// `direct`: called immediately, since everything runs on the host; nullptr: `tell` reports the results.
  Observer(const ir::Block& body, const Intermediate* direct) : direct_(direct) {
    size_t n = 0;
    for (const auto& op : body.ops()) number(*op, n++);
  }
  void step(const plan::Plan& plan, const plan::Step& step, double, std::span<const ir::TensorView> out) override {
    const bool arrives = step.kind == plan::Step::Kind::transfer;
    if ((step.op == nullptr && !arrives) || (step.region >= 0) != arrives) return;
    for (size_t i = 0; i < out.size(); i++) {
      const plan::Place& p = plan.places[static_cast<size_t>(step.out[i])];
      if (p.device != nullptr || !p.type.is_tensor() || p.type.dtype() == ir::DType::string) continue;
      const ir::Value* value = arrives ? plan.places[static_cast<size_t>(step.in[i])].value : p.value;
      const ir::Op* op = arrives ? (value != nullptr ? value->producer() : nullptr) : step.op;
      if (op != nullptr) add(*op, value, p.layout, out[i]);
    }
  }
  void restart() override { seen_.clear(); }
  void tell(const Intermediate& observe) {
    std::stable_sort(seen_.begin(), seen_.end(), [](const Seen& a, const Seen& b) { return a.order < b.order; });
    for (const Seen& s : seen_) observe(s.op->name, s.value != nullptr ? s.value->name : s.op->name, s.array);
  }

 private:
  struct Seen {
    size_t order;
    const ir::Op* op;
    const ir::Value* value;
    MultiArray array;
  };
  void number(const ir::Op& op, size_t n) {
    order_[&op] = n;
    for (size_t b = 0; b < op.block_count(); b++)
      for (const auto& inner : op.block(b)->ops()) number(*inner, n);
  }
  void add(const ir::Op& op, const ir::Value* value, kernel::Layout layout, ir::TensorView view) {
    ir::Tensor plain;
    if (!layout.is_row_major()) {
      auto t = ir::Tensor::zeros(view.dtype, view.shape);
      if (!t.ok()) return;
      plain = std::move(t).value();
      kernel::convert_layout(view, layout, plain.view(), {}, 0, kernel::convert_tiles(view.shape, layout, {}));
      view = plain.view();
    }
    auto array = api::to_array(view);
    if (!array.ok()) return;
    if (direct_ != nullptr) return (*direct_)(op.name, value != nullptr ? value->name : op.name, *array);
    seen_.push_back({order_.at(&op), &op, value, std::move(*array)});
  }

  const Intermediate* direct_;
  std::map<const ir::Op*, size_t> order_;  ///< position of the outermost operation that contains each operation
  std::vector<Seen> seen_;
};

}  // namespace

namespace {
/// Throws out_of_budget when an input of the default shape exceeds `limit` bytes.
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

ComputePlan Model::compute_plan(const Features& inputs, int predictions, const std::vector<std::string>& wanted) const {
  if (inputs.empty() && impl_->configuration.memory_budget > 0)
    check_default_sizes(impl_->function, impl_->configuration.memory_budget);
  const Features given = inputs.empty() ? random_inputs() : inputs;
  Impl::Ran ran;
  api::StepTimes times;
  double total = -1;
  if (predictions > 0) {
    Features outputs;
    std::optional<State> state;
    PredictionOptions options{nullptr, wanted};
    if (!impl_->function.states.empty()) options.state = &state.emplace(new_state());
    // The first prediction also plans steps that depend on values and does one-time work.
    api::unwrap(impl_->predict(given, outputs, options, nullptr, &ran));
    Timing timing;
    std::vector<double> whole;
    for (int i = 0; i < predictions; i++) {
      const auto start = Clock::now();
      api::unwrap(impl_->predict(given, outputs, options, nullptr, &ran));
      whole.push_back(seconds_since(start));
      api::unwrap(impl_->predict(given, outputs, options, &timing, &ran));
      timing.end_prediction();
    }
    total = median(std::move(whole));
    times = timing.medians();
  } else {
    std::vector<ir::Type> types;
    ran.model = api::unwrap(impl_->choose(given, wanted, types)).model;
    ran.plan = api::unwrap(ran.model->plan(types));
  }
  ComputePlan report = api::report(*ran.model, *ran.plan, predictions > 0 ? &times : nullptr);
  report.memory.heap = impl_->heap_bytes;
  report.measured_seconds = total;
  report.predictions = std::max(predictions, 0);
  for (const std::string& remark : impl_->description.remarks) report.remarks.push_back({"specification", remark});
  if (const std::string failure = ran.model->failure(); !failure.empty())
    report.remarks.push_back({"devices", failure});
  for (const std::string& remark : impl_->device_remarks) report.remarks.push_back({"devices", remark});
  if (const std::string& remark = impl_->kernel_cache.remark; !remark.empty())
    report.remarks.push_back({"kernel_cache", remark});
  if (const auto& cache = impl_->packed_weights.cache; cache && !cache->remark().empty())
    report.remarks.push_back({"cache", cache->remark()});
  return report;
}

Features Model::intermediates(const Features& inputs, const Intermediate& observe,
                              const PredictionOptions& options) const {
  Features outputs;
  std::vector<ir::Type> types;
  const auto runs = api::unwrap(impl_->choose(inputs, options.outputs, types)).model;
  const bool on_host = plan::accelerators(runs->plan_options()).empty();
  Observer observer(runs->ir().body(), on_host ? &observe : nullptr);
  api::unwrap(impl_->predict(inputs, outputs, options, &observer, nullptr, true));
  observer.tell(observe);
  return outputs;
}

OperationList Model::operations() const { return api::operations(*impl_->model); }

ModelStructure Model::structure() const {
  const Impl::Source& source = *impl_->source;
  if (source.file) return api::to_public(import::outline(*source.file));
  return api::to_public(import::outline_of_text(source.text, format::WeightStore::in_memory(source.weights)));
}

std::string Model::mil(bool optimized) const {
  if (optimized) return ir::print_text(impl_->model->program());
  const Impl::Source& source = *impl_->source;
  return source.file ? ir::print_text(api::unwrap(source.import({})).program) : source.text;
}

}  // namespace moka
