// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <span>
#include <sstream>

#include "api/c_support.h"
#include "api/internal.h"

using namespace moka::api;
using moka::cat;

namespace {

moka_model::Feature info_of(const moka::FeatureDescription& d) {
  moka_model::Feature f;
  f.type_text = d.formatted_type();
  for (const moka::SizeRange& r : d.array.ranges) f.ranges.push_back({r.lower, r.upper});
  moka_feature_info& i = f.info;
  i.name = d.name.c_str();
  i.description = d.description.c_str();
  i.type = static_cast<moka_feature_type>(d.type);
  i.optional = d.optional;
  i.data_type = static_cast<moka_data_type>(d.array.type);
  i.rank = d.array.shape.size();
  i.shape = d.array.shape.data();
  i.width = d.image.width;
  i.height = d.image.height;
  i.is_gray = d.image.color == moka::ColorSpace::grayscale || d.image.color == moka::ColorSpace::grayscale_float16;
  i.string_keys = d.string_keys;
  return f;
}

}  // namespace

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
  auto m = std::make_unique<moka_model>(moka_model{std::move(loaded), {}, {}, {}, {}});
  const FunctionDescription& f = m->model.function();
  const std::vector<FeatureDescription>* lists[] = {&f.inputs, &f.outputs, &f.states};
  for (int role = 0; role < 3; role++)
    for (const auto& d : *lists[role]) m->features[role].push_back(info_of(d));
  m->parameters = m->model.parameters();
  if (const auto& update = m->model.description().update) {
    for (const auto& d : update->training_inputs) m->training_inputs.push_back(info_of(d));
    for (const auto& layer : update->layers) {
      auto& names = m->layer_parameters.emplace_back();
      for (const auto& name : layer.parameters) names.push_back(name.c_str());
    }
  }
  return m.release();
}

void set_info(const std::vector<moka_model::Feature>& features, size_t index, moka_feature_info* info) {
  if (index >= features.size()) wrong(cat("feature: expected an index below ", features.size(), ", got ", index));
  moka_feature_info& out = need(info, "info");
  out = features[index].info;
  // Set after the vector is complete, because growing a vector of moka_model::Feature moves its strings.
  out.type_text = features[index].type_text.c_str();
  out.range_count = features[index].ranges.size();
  out.ranges = features[index].ranges.data();
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

void moka_model_free(moka_model* model) { delete model; }

size_t moka_model_feature_count(const moka_model* model, moka_role role) {
  return model == nullptr || role < MOKA_INPUT || role > MOKA_STATE ? 0 : model->features[role].size();
}

moka_status moka_model_feature(const moka_model* model, moka_role role, size_t index, moka_feature_info* info) {
  return guarded([&] { set_info(need(model, "model").features[enumerator<int>(role, 3, "role")], index, info); });
}

const char* moka_model_text(const moka_model* model, moka_text text) {
  if (model == nullptr) return nullptr;
  const moka::ModelDescription& d = model->model.description();
  const moka::FunctionDescription& f = model->model.function();
  switch (text) {
    case MOKA_MODEL_TYPE: return d.type.c_str();
    case MOKA_FUNCTION_NAME: return f.name.c_str();
    case MOKA_SHORT_DESCRIPTION: return d.short_description.c_str();
    case MOKA_AUTHOR: return d.author.c_str();
    case MOKA_LICENSE: return d.license.c_str();
    case MOKA_MODEL_VERSION: return d.version.c_str();
    case MOKA_PREDICTED_FEATURE_NAME: return f.predicted_feature_name.c_str();
    case MOKA_PREDICTED_PROBABILITIES_NAME: return f.predicted_probabilities_name.c_str();
  }
  return "";
}

const char* moka_model_metadata(const moka_model* model, const char* key) {
  if (model == nullptr || key == nullptr) return nullptr;
  for (const auto& [k, v] : model->model.description().user_defined)
    if (k == key) return v.c_str();
  return nullptr;
}

size_t moka_model_class_label_count(const moka_model* model) {
  return model == nullptr ? 0 : model->model.description().class_labels.size();
}

const char* moka_model_class_label(const moka_model* model, size_t index) {
  return index < moka_model_class_label_count(model) ? model->model.description().class_labels[index].c_str() : nullptr;
}

moka_status moka_trace_start(const char* path) {
  return guarded([&] {
    const std::string file(need_text(path, "path"));
    if (auto started = moka::trace::start(file); !started.ok()) moka::api::raise(started.error());
  });
}

moka_status moka_trace_stop(void) {
  return guarded([] { moka::api::unwrap(moka::trace::stop()); });
}

moka_status moka_state_new(const moka_model* model, moka_state** state) {
  return guarded([&] {
    moka_state*& out = need(state, "state");
    out = new moka_state{need(model, "model").model.new_state(), {}};
  });
}

void moka_state_free(moka_state* state) { delete state; }

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
