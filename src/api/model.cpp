#include "moka/model.h"

#include <algorithm>

#include "api/build.h"
#include "api/internal.h"
#include "api/program_impl.h"
#include "base/clock.h"
#include "base/processors.h"
#include "import/outline.h"
#include "ir/text_printer.h"
#include "kernel/thread_pool.h"
#include "moka/inspection.h"

namespace moka {

namespace {

std::shared_ptr<MemoryBudget> budget_of(const ModelConfiguration& c) {
  return c.memory_budget == 0 ? nullptr : std::make_shared<MemoryBudget>(c.memory_budget);
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

}  // namespace

namespace api {

Error reclassified(Error error, ErrorCode code) {
  return error.code() == ErrorCode::invalid_argument ? fail(code, error.to_string()) : std::move(error);
}

}  // namespace api

Result<import::ImportedModel> Model::Impl::Source::import(const import::ImportOptions& options) const {
  if (file) {
    Result<import::ImportedModel> imported = import::import_model(*file, options);
    return imported.ok() ? std::move(imported) : api::reclassified(std::move(imported).error(), ErrorCode::malformed);
  }
  if (program) {
    if (options.rows) return fail(ErrorCode::unsupported, "ML programs do not take rows");
    import::ImportedModel out;
    Result<ir::Program> copied = program->copy();
    if (!copied.ok()) return api::reclassified(std::move(copied).error(), ErrorCode::malformed);
    out.program = std::move(copied).value();
    out.description = description;
    import::describe_values(out);
    return out;
  }
  if (options.rows) return fail(ErrorCode::unsupported, "programs in text form do not take rows");
  return api::import_text(text, weights, options.budget);
}

std::shared_ptr<const Model::Impl> Model::Impl::make(std::shared_ptr<const Source> source,
                                                     const ModelConfiguration& configuration,
                                                     std::shared_ptr<MemoryBudget> budget, LoadTimes times) {
  const size_t heap = heap_in_use();
  api::check_threads(configuration.threads);
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
  options.parameters = configuration.parameters;
  api::Devices devices = api::unwrap(api::devices_for(configuration));
  options.plan.devices = devices.list;
  options.keep_sources = devices.pins.has_users();
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
  if (!rates.note.empty()) devices.remarks.push_back(rates.note);
  options.plan.low_memory = configuration.low_memory;
  // With a budget, loading must report weights that do not fit.
  options.plan.prepare_late = !configuration.pack_while_loading && budget == nullptr;
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
  options.plan.prepare_late &= options.cache == nullptr;  // which keeps what loading packs
  start = Clock::now();
  {
    const trace::Span span(trace::Lane::activity, "passes");
    impl->model = api::unwrap(runtime::Model::compile(std::move(m), options));
  }
  if (options.plan.choices) api::unwrap(api::check_pins(*options.plan.choices, impl->model->ir()));
  impl->pins = devices.pins.uses(*impl->model);
  for (const PlannedPin& pin : impl->pins)
    if (pin.matched == 0) {
      if (configuration.strict) throw Exception(ErrorKind::not_found, pin.note);
      api::warn(pin.note);
    }
  impl->device_remarks = std::move(devices.remarks);
  impl->compile_options = std::move(options);
  times.passes = seconds_since(start);
  const import::FunctionDescription& f = impl->model->function();
  for (const auto& g : impl->description.functions)
    if (g.name == f.name) impl->function = g;

  start = Clock::now();
  std::vector<ir::Type> types;
  bool concrete = !impl->sequences_only, flexible = false, at_limit = false, listed = false;
  const auto inputs = impl->model->ir().body().inputs();
  for (size_t i = 0; i < inputs.size(); i++) {
    const auto& v = inputs[i];
    const import::FeatureDescription& x = impl->model->feature(i);
    auto t = api::default_type(x, v->type);
    concrete &= t.ok() && (t->is_concrete() || t->is_state());
    flexible |= v->type.is_tensor() && !v->type.is_concrete();
    at_limit |= api::has_default_at_limit(x);
    listed |= !x.array.enumerated.empty() || !x.image.enumerated.empty();
    if (t.ok()) types.push_back(*t);
  }
  // Core ML refuses a model whose default sizes contradict each other. It accepts the model if one of them is the
  // smallest or the largest allowed size, which converters write when nobody chose a default. They write the first of
  // enumerated sizes, which Moka accepts if another one fits.
  if (concrete && types.size() == inputs.size()) {
    auto planned = impl->model->plan(types);
    if (!planned.ok()) {
      const ErrorCode code = planned.error().code();
      const bool is_refused = code == ErrorCode::invalid_argument;
      const bool tolerated = flexible && (code == ErrorCode::data || (is_refused && at_limit) ||
                                          (is_refused && listed && !impl->fitting().is_usual));
      Error error = api::reclassified(import::with_empty_input(std::move(planned).error(), f),
                                      impl->source->text.empty() ? ErrorCode::malformed : code);
      if (!flexible) api::raise(error);
      if (!tolerated && is_refused) error = fail(error.code(), error.to_string(), impl->fitting_sizes());
      if (!tolerated) api::raise(std::move(error).in("with the default sizes of the inputs"));
    }
    api::unwrap(impl->kernel_cache.save());
    impl->packed_weights.save();
  }
  impl->packed_weights.show_remark();
  const plan::ConstantPool& pool = *impl->model->plan_options().constants;
  times.pack = pool.prepare_seconds();
  times.packed_bytes = pool.packed_bytes();
  times.shared_bytes = pool.shared_bytes();
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

Model Model::Impl::of_program(std::shared_ptr<const ProgramBuilder::Impl> program,
                              const ModelConfiguration& configuration) {
  const api::TracedLoad traced({}, configuration);
  auto source = std::make_shared<Source>();
  Message describing = program->describing_model();
  describing.add("mlProgram");
  source->description =
      api::unwrap(import::describe_model(api::unwrap(format::open_source(describing.impl().message, {}, {}))));
  source->program = std::move(program);
  return Model(make(std::move(source), configuration, budget_of(configuration), {}));
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
  std::map<std::string, ir::Tensor> values = impl_->compile_options.parameter_values;
  if (configuration.function_name != impl_->configuration.function_name) values.clear();
  ModelConfiguration c = configuration;
  for (const auto& [name, value] : values) c.parameters.push_back(name);
  auto made = Impl::make(impl_->source, c, budget_of(c), {});
  return Model(values.empty() ? std::move(made) : Impl::with_parameters(*made, values));
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
OperationList Model::operations() const { return api::operations(*impl_->model); }

ModelStructure Model::structure() const {
  const Impl::Source& source = *impl_->source;
  if (source.file) return api::to_public(import::outline(*source.file));
  if (source.program) {
    const format::ModelSource written = source.program->write();
    return api::to_public(
        import::outline(api::unwrap(format::open_source(written.specification, written.weights, {}))));
  }
  return api::to_public(import::outline_of_text(source.text, format::WeightStore::in_memory(source.weights)));
}

std::string Model::mil(bool optimized) const {
  if (optimized) return ir::print_text(impl_->model->program());
  const Impl::Source& source = *impl_->source;
  return source.text.empty() ? ir::print_text(api::unwrap(source.import({})).program) : source.text;
}

}  // namespace moka
