// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <span>
#include <sstream>

#include "api/c_support.h"
#include "api/internal.h"
#include "trace/live.h"

using namespace moka::api;
using moka::cat;

namespace moka::api {

ModelConfiguration configuration_of(const moka_configuration* given) {
  const auto full = options_from<moka_configuration>(given, MOKA_CONFIGURATION_INIT, "configuration");
  const moka_configuration* const c = &full;
  ModelConfiguration out;
  out.compute_units = enumerator<ComputeUnits>(c->compute_units, 4, "compute units");
  out.precision = c->exact_precision != 0 ? Precision::exact : Precision::at_least;
  out.threads = c->threads;
  out.optimize = c->optimize != 0;
  out.reuse_buffers = c->reuse_buffers != 0;
  out.memory_budget = c->memory_budget;
  out.loop_limit = c->loop_limit;
  out.cached_shapes = c->cached_shapes;
  out.low_memory = c->low_memory != 0;
  out.pack_while_loading = c->pack_while_loading != 0;
  if (c->function_name != nullptr) out.function_name = c->function_name;
  if (c->device != nullptr) out.device = c->device;
  if (c->kernel_cache != nullptr) out.kernel_cache = c->kernel_cache;
  if (c->cache != nullptr) out.cache = c->cache;
  if (c->processor_count > 0) need(c->processors, "processors");
  if (c->processors != nullptr) out.processors.assign(c->processors, c->processors + c->processor_count);
  if (c->pins != nullptr) out.pins = parse_pins(c->pins);
  if (c->parameters != nullptr) {
    std::istringstream lines(c->parameters);
    for (std::string name; std::getline(lines, name);)
      if (!name.empty()) out.parameters.push_back(name);
  }
  out.strict = c->strict != 0;
  if (c->rates != nullptr) out.rates = c->rates;
  if (c->identity != nullptr || c->passphrase != nullptr)
    out.key = [identity = c->identity, passphrase = c->passphrase](const KeyRequest& request) -> std::string {
      const char* key = request.passphrase ? passphrase : identity;
      return key == nullptr ? "" : key;
    };
  out.measure_kernels = enumerator<MeasureKernels>(c->measure_kernels, 3, "kernels to measure");
  if (c->cancellation != nullptr) out.stop = c->cancellation->source.get_token();
  out.deadline = deadline_of(c->timeout);
  if (c->progress != nullptr)
    out.progress = [progress = c->progress, context = c->progress_context](const LoadProgress& p) {
      progress(context, std::string(p.stage).c_str(), p.done, p.total);
    };
  return out;
}

moka_model* handle_of(Model loaded) {
  auto m = std::make_unique<moka_model>(moka_model{std::move(loaded), {}, {}, {}});
  m->description = std::make_unique<const moka_description>(m->model.description(), m->model.function());
  m->parameters = m->model.parameters();
  if (const auto& update = m->model.description().update)
    for (const auto& layer : update->layers) m->layer_parameters.push_back(pointers(layer.parameters));
  return m.release();
}

}  // namespace moka::api

namespace {

std::span<const std::byte> bytes_at(const void* data, size_t size, const char* what) {
  if (data == nullptr && size > 0) wrong(cat(what, ": expected ", size, " bytes, got NULL"));
  return {static_cast<const std::byte*>(data), size};
}

std::vector<std::byte> copy_bytes(const void* data, size_t size, const char* what) {
  const auto bytes = bytes_at(data, size, what);
  return {bytes.begin(), bytes.end()};
}

/// Collects the parts of a model in memory. `bytes` copies each part or refers to it.
template <class Asset, class Bytes>
Asset asset_of(Bytes bytes, const void* specification, size_t size, const moka_blob* blobs, size_t blob_count) {
  Asset asset;
  asset.specification = bytes(specification, size, "specification");
  if (blob_count > 0) need(blobs, "blobs");
  for (size_t i = 0; i < blob_count; i++)
    asset.blobs[std::string(need_text(blobs[i].name, "name of a blob"))] = bytes(blobs[i].data, blobs[i].size, "blob");
  return asset;
}

}  // namespace

extern "C" {

moka_status moka_model_load(const char* path, const moka_configuration* configuration, moka_model** model) {
  return guarded([&] {
    need(model, "model");
    *model = handle_of(moka::Model::load(std::string(need_text(path, "path")), configuration_of(configuration)));
  });
}

moka_status moka_model_load_memory(const void* specification, size_t size, const moka_blob* blobs, size_t blob_count,
                                   const moka_configuration* configuration, moka_model** model) {
  return guarded([&] {
    need(model, "model");
    auto asset = asset_of<moka::ModelAsset>(copy_bytes, specification, size, blobs, blob_count);
    *model = handle_of(moka::Model::load(std::move(asset), configuration_of(configuration)));
  });
}

moka_status moka_model_load_borrowed(const void* specification, size_t size, const moka_blob* blobs, size_t blob_count,
                                     const moka_configuration* configuration, moka_model** model) {
  return guarded([&] {
    need(model, "model");
    auto asset = asset_of<moka::ModelAssetView>(bytes_at, specification, size, blobs, blob_count);
    *model = handle_of(moka::Model::load(asset, configuration_of(configuration)));
  });
}

moka_status moka_model_load_mil(const char* text, const moka_configuration* configuration, moka_model** model) {
  return guarded([&] {
    need(model, "model");
    *model = handle_of(moka::Model::from_mil(std::string(need_text(text, "text")), configuration_of(configuration)));
  });
}

moka_status moka_model_configured(const moka_model* model, const moka_configuration* configuration,
                                  moka_model** configured) {
  return guarded([&] {
    need(configured, "configured");
    *configured = handle_of(need(model, "model").model.configured(configuration_of(configuration)));
  });
}

void moka_model_free(moka_model* model) { delete model; }

moka_status moka_trace_start(const char* path) {
  return guarded([&] {
    const std::string file(need_text(path, "path"));
    if (auto started = moka::trace::start(file); !started.ok()) moka::api::raise(started.error());
  });
}

moka_status moka_trace_stop(void) {
  return guarded([] { moka::api::unwrap(moka::trace::stop()); });
}

moka_status moka_trace_allow(const char* where) {
  return guarded([&] { moka::api::unwrap(moka::trace::allow(where == nullptr ? "" : where)); });
}

moka_status moka_state_new(const moka_model* model, moka_state** state) {
  return guarded([&] {
    moka_state*& out = need(state, "state");
    out = new moka_state(need(model, "model").model.new_state());
  });
}

moka_status moka_state_copy(const moka_state* state, moka_state** copy) {
  return guarded([&] {
    moka_state*& out = need(copy, "copy");
    out = new moka_state(need(state, "state").state.copy());
  });
}

void moka_state_free(moka_state* state) { delete state; }

size_t moka_state_count(const moka_state* state) { return state == nullptr ? 0 : state->names.size(); }

const char* moka_state_name(const moka_state* state, size_t index) {
  return index < moka_state_count(state) ? state->names[index].c_str() : nullptr;
}

size_t moka_model_parameter_count(const moka_model* model) { return model == nullptr ? 0 : model->parameters.size(); }

const char* moka_model_parameter_name(const moka_model* model, size_t index) {
  return model == nullptr || index >= model->parameters.size() ? nullptr : model->parameters[index].name.c_str();
}

moka_status moka_model_read_parameter(const moka_model* model, const char* name, moka_features* values) {
  return guarded([&] {
    moka_features& to = need(values, "values");
    const std::string key(need_text(name, "name"));
    to.values[key] = need(model, "model").model.parameter(key);
    to.views.erase(key);
  });
}

moka_status moka_model_with_parameters(const moka_model* model, const moka_features* values, moka_model** replaced) {
  return guarded([&] {
    need(replaced, "replaced");
    std::map<std::string, moka::MultiArray> arrays;
    for (const auto& [name, value] : need(values, "values").values) {
      if (!std::holds_alternative<moka::MultiArray>(value)) wrong(cat("parameter '", name, "': expected an array"));
      arrays.emplace(name, std::get<moka::MultiArray>(value));
    }
    *replaced = handle_of(need(model, "model").model.with_parameters(arrays));
  });
}

moka_status moka_state_read(moka_state* state, const char* name, moka_array* array) {
  return guarded([&] {
    moka_state& s = need(state, "state");
    moka_array& out = need(array, "array");
    s.copy = s.state.read(need_text(name, "name"));
    out = c_array(s.copy);
  });
}

moka_status moka_state_write(moka_state* state, const char* name, const moka_array* array) {
  return guarded(
      [&] { need(state, "state").state.write(need_text(name, "name"), borrowed_array(need(array, "array"))); });
}

}  // extern "C"
