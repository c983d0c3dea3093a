// SPDX-License-Identifier: Apache-2.0
#include "moka/model.h"

#include <algorithm>

#include "api/build.h"
#include "api/internal.h"
#include "api/program_impl.h"
#include "base/clock.h"
#include "base/processors.h"
#include "boundary/errors.h"
#include "boundary/path.h"
#include "import/outline.h"
#include "ir/text_printer.h"
#include "kernel/thread_pool.h"
#include "moka/inspection.h"

namespace moka {

namespace api {

std::shared_ptr<MemoryBudget> budget_of(const ModelConfiguration& c) {
  return c.memory_budget == 0 ? nullptr : std::make_shared<MemoryBudget>(c.memory_budget);
}

}  // namespace api

Result<import::ImportedModel> api::LoadedSource::import(const import::ImportOptions& options) const {
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
  auto budget = api::budget_of(configuration);
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

Model Model::load(const std::filesystem::path& path, const ModelConfiguration& configuration) {
  return Model(Impl::from_file(
      boundary::native(path), [&](const auto& options) { return format::open_model(path.native(), options); },
      configuration));
}

Expected<Model> Model::try_load(const std::filesystem::path& path, const ModelConfiguration& configuration) noexcept {
  try {
    return load(path, configuration);
  } catch (...) {
    return api::tell_caught([](ErrorKind kind, const char* message) { return Failure{kind, message}; });
  }
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

Model Model::Impl::of_file(const format::ModelFile& file, const ModelConfiguration& configuration) {
  return Model(from_file(
      {}, [&](const auto&) { return file; }, configuration));
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
  return Model(make(std::move(source), configuration, api::budget_of(configuration), {}));
}

Model Model::from_mil(const std::string& text, const ModelConfiguration& configuration,
                      std::map<std::string, std::vector<std::byte>> weights) {
  const api::TracedLoad traced({}, configuration);
  auto source = std::make_shared<Impl::Source>();
  source->text = text;
  source->weights = hold(std::move(weights));
  return Model(Impl::make(std::move(source), configuration, api::budget_of(configuration), {}));
}

Model Model::configured(const ModelConfiguration& configuration) const {
  const api::TracedLoad traced(impl_->source->path, configuration);
  std::map<std::string, ir::Tensor> values = impl_->compile_options.parameter_values;
  const auto function_of = [this](const ModelConfiguration& c) {
    return c.function_name.empty() ? impl_->description.default_function : c.function_name;
  };
  if (function_of(configuration) != function_of(impl_->configuration)) values.clear();
  ModelConfiguration c = configuration;
  for (const auto& [name, value] : values)
    if (std::find(c.parameters.begin(), c.parameters.end(), name) == c.parameters.end()) c.parameters.push_back(name);
  auto made = Impl::make(impl_->source, c, api::budget_of(c), {});
  return Model(values.empty() ? std::move(made) : Impl::with_parameters(*made, values));
}

ModelDescription Model::describe(const std::filesystem::path& path) { return outline(path).description; }

ModelOutline Model::outline(const std::filesystem::path& path) { return Inspection::open(path).outline(); }

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
