// SPDX-License-Identifier: Apache-2.0
#include "api/internal.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/processors.h"
#include "base/watch.h"
#include "boundary/path.h"
#include "kernel/thread_pool.h"

namespace moka {

int api::threads_of(const ModelConfiguration& configuration) {
  if (configuration.threads > 0) return configuration.threads;
  return configuration.processors.empty() ? processors() : static_cast<int>(configuration.processors.size());
}

namespace {

Watch::Progress progress_of(const ModelConfiguration& configuration) {
  if (!configuration.progress) return {};
  return [&progress = configuration.progress](std::string_view stage, size_t done, size_t total) {
    progress({stage, done, total});
  };
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

/// The rates that decide between units. Adds what the user should know about them to the remarks of the devices.
std::shared_ptr<const kernel::Rates> rates_of(const ModelConfiguration& configuration, int threads,
                                              api::Devices& devices) {
  api::ModelRates rates = api::rates_for(configuration, devices.list, threads);
  if (!rates.remark.empty()) {
    api::warn(rates.remark);
    devices.remarks.push_back(rates.remark);
  }
  if (!rates.note.empty()) devices.remarks.push_back(rates.note);
  return rates.rates;
}

/// Opens the caches of the model, too.
runtime::CompileOptions options_of(Model::Impl& impl, const import::ModelDescription& description,
                                   std::shared_ptr<MemoryBudget> budget, api::Devices& devices) {
  const ModelConfiguration& configuration = impl.configuration;
  runtime::CompileOptions options;
  options.function_name = configuration.function_name;
  options.optimize = configuration.optimize;
  options.exact_precision = configuration.precision == Precision::exact;
  options.loop_limit = configuration.loop_limit;
  options.parameters = configuration.parameters;
  options.plan.devices = devices.list;
  options.keep_sources = devices.pins.has_users();
  if (!devices.pins.empty())
    options.plan.pinned_device = [pins = devices.pins](const ir::Op& op) { return pins.of(op); };
  options.plan.strict = configuration.strict;
  options.plan.states_on_devices = true;
  options.plan.image_planes = image_planes_of(description, options.function_name);
  options.plan.threads = api::threads_of(configuration);
  options.plan.rates = rates_of(configuration, options.plan.threads, devices);
  options.plan.low_memory = configuration.low_memory;
  // With a budget, loading must report weights that do not fit.
  options.plan.prepare_late = !configuration.pack_while_loading && budget == nullptr;
  options.plan.reuse_buffers = configuration.reuse_buffers;
  options.plan.cached_shapes = configuration.cached_shapes;
  options.plan.kept = std::make_shared<plan::KeptPlans>();
  options.plan.kept->limit = configuration.idle_memory;
  options.plan.budget = std::move(budget);
  options.packed = impl.source->packed;
  options.idle_memory = configuration.idle_memory;
  impl.kernel_cache = api::unwrap(api::kernel_cache_for(configuration, options.plan.devices));
  options.plan.choices = impl.kernel_cache.choices;
  // Packed weights on disk would be plain.
  const bool encrypted = impl.source->file && impl.source->file->encrypted();
  impl.packed_weights = api::unwrap(api::packed_weights_for(configuration, encrypted ? "" : impl.source->path,
                                                            options.plan.devices, options.plan.threads));
  options.cache = impl.packed_weights.cache;
  options.plan.prepare_late &= options.cache == nullptr;  // which keeps what loading packs
  return options;
}

/// Reports pins that match nothing.
void check_pins(Model::Impl& impl, const api::Devices& devices) {
  if (impl.kernel_cache.choices) api::unwrap(api::check_pins(*impl.kernel_cache.choices, impl.model->ir()));
  impl.pins = devices.pins.uses(*impl.model);
  for (const PlannedPin& pin : impl.pins)
    if (pin.matched == 0) {
      if (impl.configuration.strict) throw Exception(ErrorKind::not_found, pin.note);
      api::warn(pin.note);
    }
}

/// The default sizes of a model's inputs.
struct DefaultTypes {
  std::vector<ir::Type> types;  ///< empty: not all sizes are known
  bool flexible = false;        ///< some sizes may differ
  bool at_limit = false;        ///< one of them is its smallest or largest allowed size
  bool listed = false;          ///< the model lists allowed sizes
};

DefaultTypes default_types(const Model::Impl& impl) {
  DefaultTypes out;
  bool concrete = !impl.sequences_only;
  const auto inputs = impl.model->ir().body().inputs();
  for (size_t i = 0; i < inputs.size(); i++) {
    const ir::Type& declared = inputs[i]->type;
    const import::FeatureDescription& x = impl.model->feature(i);
    const auto type = api::default_type(x, declared);
    concrete &= type.ok() && (type->is_concrete() || type->is_state());
    out.flexible |= declared.is_tensor() && !declared.is_concrete();
    out.at_limit |= api::has_default_at_limit(x);
    out.listed |= !x.array.enumerated.empty() || !x.image.enumerated.empty();
    if (type.ok()) out.types.push_back(*type);
  }
  if (!concrete) out.types.clear();
  return out;
}

/// Throws the error of planning the default sizes where Core ML refuses the model, too. It refuses default sizes that
/// contradict each other. It accepts the model if one of them is the smallest or the largest allowed size, which
/// converters write when nobody chose a default. They write the first of enumerated sizes, which Moka accepts if
/// another one fits.
void judge_default_sizes(const Model::Impl& impl, const DefaultTypes& sizes, Error planned) {
  const ErrorCode code = planned.code();
  const bool is_refused = code == ErrorCode::invalid_argument;
  const bool tolerated = sizes.flexible && (code == ErrorCode::data || (is_refused && sizes.at_limit) ||
                                            (is_refused && sizes.listed && !impl.fitting().is_usual));
  Error error = api::reclassified(import::with_empty_input(std::move(planned), impl.model->function()),
                                  impl.source->text.empty() ? ErrorCode::malformed : code);
  if (!sizes.flexible) api::raise(error);
  if (!tolerated && is_refused) error = fail(error.code(), error.to_string(), impl.fitting_sizes());
  if (!tolerated) api::raise(std::move(error).in("with the default sizes of the inputs"));
}

void plan_default_sizes(const Model::Impl& impl) {
  const DefaultTypes sizes = default_types(impl);
  if (sizes.types.size() == impl.model->ir().body().inputs().size()) {
    auto planned = impl.model->plan(sizes.types);
    if (!planned.ok()) judge_default_sizes(impl, sizes, std::move(planned).error());
    api::unwrap(impl.kernel_cache.save());
    impl.packed_weights.save();
  }
  impl.packed_weights.show_remark();
}

/// `planning`: seconds of planning and packing.
void add_times(const plan::ConstantPool& pool, double planning, LoadTimes& times) {
  times.pack = pool.prepare_seconds();
  times.packed_bytes = pool.packed_bytes();
  times.shared_bytes = pool.shared_bytes();
  if (pool.cache() != nullptr) times.cached_bytes = pool.cache()->found_bytes();
  times.plan = planning - times.pack;
  times.total = times.open + times.import + times.passes + times.plan + times.pack;
}

}  // namespace

std::shared_ptr<const Model::Impl> Model::Impl::make(std::shared_ptr<const Source> source,
                                                     const ModelConfiguration& configuration,
                                                     std::shared_ptr<MemoryBudget> budget, LoadTimes times) {
  const size_t heap = heap_in_use();
  api::check_threads(configuration.threads);
  api::check_processors(configuration.processors);
  for (const std::string* path :
       {&configuration.rates, &configuration.neural_engine_rules, &configuration.cache, &configuration.kernel_cache})
    boundary::native(*path);
  kernel::place_workers(configuration.processors);
  const Watch watch(Stop(configuration.stop, configuration.deadline), progress_of(configuration));
  const Watch::Scope watched(&watch);
  api::unwrap(watch.stop().check());
  auto impl = std::make_shared<Impl>();
  impl->present.set_model(trace::current_model());
  auto start = Clock::now();
  auto imported = [&] {
    const trace::Span span(trace::Lane::activity, "import");
    return api::unwrap(source->import({budget}));
  }();
  times.import = seconds_since(start);
  impl->source = std::move(source);
  impl->sequences_only = imported.sequences;
  impl->sized = imported.sized;
  impl->configuration = configuration;
  impl->description = api::to_public(imported.description);
  api::Devices devices = api::unwrap(api::devices_for(configuration));
  impl->compile_options = options_of(*impl, imported.description, std::move(budget), devices);
  impl->configuration.key = nullptr;
  impl->configuration.stop = {};
  impl->configuration.deadline.reset();
  impl->configuration.progress = nullptr;
  start = Clock::now();
  {
    const trace::Span span(trace::Lane::activity, "passes");
    impl->model = api::unwrap(runtime::Model::compile(std::move(imported), impl->compile_options));
  }
  check_pins(*impl, devices);
  impl->device_remarks = std::move(devices.remarks);
  times.passes = seconds_since(start);
  for (const auto& function : impl->description.functions)
    if (function.name == impl->model->function().name) impl->function = function;

  start = Clock::now();
  plan_default_sizes(*impl);
  add_times(*impl->model->plan_options().constants, seconds_since(start), times);
  impl->times = times;
  impl->present.list(api::trace_name(impl->source->path, configuration), impl->source->path, impl->times.total);
  const size_t heap_now = heap_in_use();
  impl->heap_bytes = heap_now > heap ? heap_now - heap : 0;
  return impl;
}

}  // namespace moka
