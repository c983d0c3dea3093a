#include <cstring>
#include <functional>
#include <new>
#include <optional>

#include "api/c_features.h"
#include "api/internal.h"
#include "base/error.h"
#include "moka/model.h"
#include "moka/moka.h"

using moka::cat;
using moka::ErrorKind;
using moka::Exception;

/// A feature description in C form, created once.
struct FeatureInfo {
  std::string type_text;
  std::vector<moka_size_range> ranges;
  moka_feature_info info{};
};

struct moka_model {
  moka::Model model;
  std::vector<FeatureInfo> features[3];  ///< indexed by moka_role
};

struct moka_state {
  moka::State state;
  moka::MultiArray copy;
};

namespace {

thread_local std::string last_error;

moka_status failed(moka_status status, const char* message) noexcept {
  try {
    last_error = message;
  } catch (...) {
    last_error.clear();
  }
  return status;
}

/// Runs `fn` and converts an exception into a status and a message.
template <class Fn>
moka_status guarded(Fn&& fn) noexcept {
  try {
    fn();
    return MOKA_OK;
  } catch (const Exception& e) {
    return failed(static_cast<moka_status>(e.kind()), e.what());
  } catch (const std::bad_alloc&) {
    return failed(MOKA_OUT_OF_BUDGET, "no memory is left");
  } catch (const std::exception& e) {
    return failed(MOKA_INTERNAL, e.what());
  } catch (...) {
    return failed(MOKA_INTERNAL, "an exception of unknown type");
  }
}

}  // namespace

namespace moka::api {
moka_status c_status(const std::function<void()>& f) noexcept { return guarded(f); }
}  // namespace moka::api

namespace {

[[noreturn]] void wrong(const std::string& message) { throw Exception(ErrorKind::invalid_argument, message); }

template <class T>
T& need(T* pointer, const char* argument) {
  if (pointer == nullptr) wrong(cat("argument '", argument, "': expected a pointer, got NULL"));
  return *pointer;
}

std::string_view need_text(const char* text, const char* argument) { return &need(text, argument); }

/// Checks an enumerator from C, which may hold any number.
template <class To>
To enumerator(int value, int count, const char* what) {
  if (value < 0 || value >= count) wrong(cat(what, ": expected 0 to ", count - 1, ", got ", value));
  return static_cast<To>(value);
}

moka::DataType data_type(moka_data_type type) {
  return enumerator<moka::DataType>(type, MOKA_BOOLEAN + 1, "element type");
}

moka::MultiArray to_array(const moka_array& a) {
  if (a.rank > 0 && a.shape == nullptr) wrong("array: expected a shape, got NULL");
  if (a.rank > 64) wrong(cat("array: expected few dimensions, got ", a.rank));
  std::vector<int64_t> shape(a.shape, a.shape + a.rank), strides;
  if (a.strides != nullptr) strides.assign(a.strides, a.strides + a.rank);
  moka::MultiArray array(a.data, data_type(a.type), std::move(shape), std::move(strides));
  if (a.data == nullptr && array.count() > 0) wrong("array: expected data, got NULL");
  return array;
}

moka_array from_array(const moka::MultiArray& a) {
  return {const_cast<void*>(a.data()), static_cast<moka_data_type>(a.type()), a.shape().size(), a.shape().data(),
          a.strides().data()};
}

FeatureInfo info_of(const moka::FeatureDescription& d) {
  FeatureInfo f;
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

moka::ModelConfiguration to_configuration(const moka_configuration* c) {
  moka::ModelConfiguration out;
  if (c == nullptr) return out;
  if (c->struct_size != sizeof(moka_configuration))
    wrong(cat("configuration: expected struct_size ", sizeof(moka_configuration), ", got ", c->struct_size));
  out.compute_units = enumerator<moka::ComputeUnits>(c->compute_units, 4, "compute units");
  out.precision = c->exact_precision != 0 ? moka::Precision::exact : moka::Precision::at_least;
  out.threads = c->threads;
  out.optimize = c->optimize != 0;
  out.reuse_buffers = c->reuse_buffers != 0;
  out.memory_budget = c->memory_budget;
  out.loop_limit = c->loop_limit;
  out.cached_shapes = c->cached_shapes;
  if (c->function_name != nullptr) out.function_name = c->function_name;
  if (c->device != nullptr) out.device = c->device;
  if (c->kernel_cache != nullptr) out.kernel_cache = c->kernel_cache;
  if (c->cache != nullptr) out.cache = c->cache;
  if (c->processors != nullptr) out.processors.assign(c->processors, c->processors + c->processor_count);
  if (c->pins != nullptr) out.pins = moka::parse_pins(c->pins);
  out.strict = c->strict != 0;
  if (c->rates != nullptr) out.rates = c->rates;
  if (c->identity != nullptr || c->passphrase != nullptr)
    out.key = [c](const moka::KeyRequest& request) -> std::string {
      const char* key = request.passphrase ? c->passphrase : c->identity;
      return key == nullptr ? "" : key;
    };
  out.measure_kernels = enumerator<moka::MeasureKernels>(c->measure_kernels, 3, "kernels to measure");
  return out;
}

void hand_out(moka::Model loaded, moka_model** to) {
  auto m = std::make_unique<moka_model>(moka_model{std::move(loaded), {}});
  const moka::FunctionDescription& f = m->model.function();
  const std::vector<moka::FeatureDescription>* lists[] = {&f.inputs, &f.outputs, &f.states};
  for (int role = 0; role < 3; role++)
    for (const auto& d : *lists[role]) m->features[role].push_back(info_of(d));
  *to = m.release();
}

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

void set(moka_features* features, const char* name, moka::FeatureValue value) {
  moka_features& f = need(features, "features");
  std::string_view key = need_text(name, "name");
  f.values[key] = std::move(value);
  if (auto it = f.views.find(key); it != f.views.end()) f.views.erase(it);
}

template <class T>
const T& get(const moka_features* features, const char* name, const char* expected) {
  const moka::FeatureValue& v = need(features, "features").values.at(need_text(name, "name"));
  if (const T* found = std::get_if<T>(&v)) return *found;
  wrong(cat("feature '", name, "': expected ", expected, ", got ", moka::describe(v)));
}

View& fresh_view(const moka_features* features, const char* name) {
  View& view = features->views[name];
  view = {};
  return view;
}

}  // namespace

moka::MultiArray moka::api::borrowed_array(const moka_array& a) { return ::to_array(a); }

extern "C" {

const char* moka_version(void) { return MOKA_VERSION; }

const char* moka_status_name(moka_status status) {
  switch (status) {
    case MOKA_OK: return "ok";
    case MOKA_INVALID_ARGUMENT: return "invalid argument";
    case MOKA_MALFORMED: return "malformed model";
    case MOKA_UNSUPPORTED: return "unsupported";
    case MOKA_NOT_FOUND: return "not found";
    case MOKA_IO: return "input/output";
    case MOKA_OUT_OF_BUDGET: return "out of memory budget";
    case MOKA_DATA: return "bad value";
    case MOKA_INTERNAL: return "internal error";
    case MOKA_DEVICE_LOST: return "device lost";
  }
  return "unknown";
}

const char* moka_last_error(void) { return last_error.c_str(); }

moka_status moka_model_load(const char* path, const moka_configuration* configuration, moka_model** model) {
  return guarded([&] {
    need(model, "model");
    hand_out(moka::Model::load(std::string(need_text(path, "path")), to_configuration(configuration)), model);
  });
}

moka_status moka_model_load_memory(const void* specification, size_t size, const moka_blob* blobs, size_t blob_count,
                                   const moka_configuration* configuration, moka_model** model) {
  return guarded([&] {
    need(model, "model");
    auto asset = asset_of<moka::ModelAsset>(copy_bytes, specification, size, blobs, blob_count);
    hand_out(moka::Model::load(std::move(asset), to_configuration(configuration)), model);
  });
}

moka_status moka_model_load_borrowed(const void* specification, size_t size, const moka_blob* blobs, size_t blob_count,
                                     const moka_configuration* configuration, moka_model** model) {
  return guarded([&] {
    need(model, "model");
    auto asset = asset_of<moka::ModelAssetView>(bytes_at, specification, size, blobs, blob_count);
    hand_out(moka::Model::load(asset, to_configuration(configuration)), model);
  });
}

moka_status moka_model_load_mil(const char* text, const moka_configuration* configuration, moka_model** model) {
  return guarded([&] {
    need(model, "model");
    hand_out(moka::Model::from_mil(std::string(need_text(text, "text")), to_configuration(configuration)), model);
  });
}

void moka_model_free(moka_model* model) { delete model; }

size_t moka_model_feature_count(const moka_model* model, moka_role role) {
  return model == nullptr || role < MOKA_INPUT || role > MOKA_STATE ? 0 : model->features[role].size();
}

moka_status moka_model_feature(const moka_model* model, moka_role role, size_t index, moka_feature_info* info) {
  return guarded([&] {
    const auto& list = need(model, "model").features[enumerator<int>(role, 3, "role")];
    if (index >= list.size()) wrong(cat("feature: expected an index below ", list.size(), ", got ", index));
    moka_feature_info& out = need(info, "info");
    out = list[index].info;
    // Set after the vector is complete, because growing a vector of FeatureInfo moves its strings.
    out.type_text = list[index].type_text.c_str();
    out.range_count = list[index].ranges.size();
    out.ranges = list[index].ranges.data();
  });
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

moka_status moka_features_new(moka_features** features) {
  return guarded([&] { need(features, "features") = new moka_features; });
}

void moka_features_free(moka_features* features) { delete features; }

void moka_features_clear(moka_features* features) {
  if (features == nullptr) return;
  features->values = {};
  features->views.clear();
}

moka_status moka_features_set_array(moka_features* features, const char* name, const moka_array* array) {
  return guarded([&] {
    const moka::MultiArray given = to_array(need(array, "array"));
    set(features, name, need(features, "features").copies ? given.converted(given.type()) : given);
  });
}

moka_status moka_features_set_image(moka_features* features, const char* name, const moka_image* image) {
  return guarded([&] {
    const moka_image& i = need(image, "image");
    auto format = enumerator<moka::PixelFormat>(i.format, MOKA_GRAY_FLOAT32 + 1, "pixel format");
    const moka::Image given(i.pixels, i.width, i.height, format, i.row_bytes);
    if (!need(features, "features").copies) return set(features, name, given);
    moka::Image copy(i.width, i.height, format);
    for (int64_t y = 0; y < i.height; y++)
      std::memcpy(copy.pixels.get() + y * copy.row_bytes, given.pixels.get() + y * given.row_bytes,
                  static_cast<size_t>(i.width) * moka::bytes_per_pixel(format));
    set(features, name, std::move(copy));
  });
}

moka_status moka_features_set_int64(moka_features* features, const char* name, int64_t value) {
  return guarded([&] { set(features, name, value); });
}

moka_status moka_features_set_double(moka_features* features, const char* name, double value) {
  return guarded([&] { set(features, name, value); });
}

moka_status moka_features_set_string(moka_features* features, const char* name, const char* value) {
  return guarded([&] { set(features, name, std::string(need_text(value, "value"))); });
}

moka_status moka_features_set_dictionary(moka_features* features, const char* name, const moka_dictionary* dictionary) {
  return guarded([&] {
    const moka_dictionary& d = need(dictionary, "dictionary");
    moka::Dictionary out;
    out.string_keys = d.int64_keys == nullptr;
    if (d.count > 0 && (d.string_keys == nullptr) == (d.int64_keys == nullptr))
      wrong("dictionary: expected one of two arrays of keys");
    if (d.count > 0) need(d.values, "values");
    for (size_t i = 0; i < d.count; i++) {
      if (out.string_keys)
        out.strings[std::string(need_text(d.string_keys[i], "key"))] = d.values[i];
      else
        out.ints[d.int64_keys[i]] = d.values[i];
    }
    set(features, name, std::move(out));
  });
}

moka_status moka_features_set_sequence(moka_features* features, const char* name, const moka_sequence* sequence) {
  return guarded([&] {
    const moka_sequence& s = need(sequence, "sequence");
    if (s.count > 0 && (s.strings == nullptr) == (s.int64s == nullptr)) wrong("sequence: expected strings or integers");
    if (s.int64s != nullptr) return set(features, name, moka::Int64Sequence(s.int64s, s.int64s + s.count));
    moka::StringSequence out;
    for (size_t i = 0; i < s.count; i++) out.emplace_back(need_text(s.strings[i], "string of a sequence"));
    set(features, name, std::move(out));
  });
}

moka_status moka_features_set_random(moka_features* features, const moka_model* model, uint64_t seed) {
  return guarded([&] {
    moka_features& f = need(features, "features");
    for (auto& [name, value] : moka::random_inputs(need(model, "model").model.function(), seed)) {
      f.values[name] = value;
      f.views.erase(name);
    }
  });
}

size_t moka_features_count(const moka_features* features) { return features == nullptr ? 0 : features->values.size(); }

const char* moka_features_name(const moka_features* features, size_t index) {
  return index < moka_features_count(features)
             ? (features->values.begin() + static_cast<ptrdiff_t>(index))->first.c_str()
             : nullptr;
}

moka_feature_type moka_features_type(const moka_features* features, const char* name) {
  if (features == nullptr || name == nullptr) return MOKA_TYPE_NONE;
  const moka::FeatureValue* v = features->values.find(name);
  if (v == nullptr) return MOKA_TYPE_NONE;
  constexpr moka_feature_type types[] = {MOKA_TYPE_NONE,       MOKA_TYPE_INT64,       MOKA_TYPE_DOUBLE,
                                         MOKA_TYPE_STRING,     MOKA_TYPE_MULTI_ARRAY, MOKA_TYPE_IMAGE,
                                         MOKA_TYPE_DICTIONARY, MOKA_TYPE_SEQUENCE,    MOKA_TYPE_SEQUENCE};
  static_assert(std::size(types) == std::variant_size_v<moka::FeatureValue>);
  return types[v->index()];
}

moka_status moka_features_get_array(const moka_features* features, const char* name, moka_array* array) {
  return guarded([&] { need(array, "array") = from_array(get<moka::MultiArray>(features, name, "a MultiArray")); });
}

moka_status moka_features_get_image(const moka_features* features, const char* name, moka_image* image) {
  return guarded([&] {
    const auto& i = get<moka::Image>(features, name, "an Image");
    need(image, "image") = {i.pixels.get(), i.width, i.height, i.row_bytes, static_cast<moka_pixel_format>(i.format)};
  });
}

moka_status moka_features_get_int64(const moka_features* features, const char* name, int64_t* value) {
  return guarded([&] { need(value, "value") = get<int64_t>(features, name, "Int64"); });
}

moka_status moka_features_get_double(const moka_features* features, const char* name, double* value) {
  return guarded([&] { need(value, "value") = get<double>(features, name, "Double"); });
}

moka_status moka_features_get_string(const moka_features* features, const char* name, const char** value) {
  return guarded([&] { need(value, "value") = get<std::string>(features, name, "String").c_str(); });
}

moka_status moka_features_get_dictionary(const moka_features* features, const char* name, moka_dictionary* dictionary) {
  return guarded([&] {
    const auto& d = get<moka::Dictionary>(features, name, "a Dictionary");
    moka_dictionary& out = need(dictionary, "dictionary");
    View& view = fresh_view(features, name);
    for (const auto& [k, v] : d.strings) {
      view.strings.push_back(k.c_str());
      view.values.push_back(v);
    }
    for (const auto& [k, v] : d.ints) {
      view.ints.push_back(k);
      view.values.push_back(v);
    }
    out = {view.values.size(), d.string_keys ? view.strings.data() : nullptr,
           d.string_keys ? nullptr : view.ints.data(), view.values.data()};
  });
}

moka_status moka_features_get_sequence(const moka_features* features, const char* name, moka_sequence* sequence) {
  return guarded([&] {
    const moka::FeatureValue& value = need(features, "features").values.at(need_text(name, "name"));
    moka_sequence& out = need(sequence, "sequence");
    if (const auto* ints = std::get_if<moka::Int64Sequence>(&value)) {
      out = {ints->size(), nullptr, ints->data()};
      return;
    }
    const auto& strings = get<moka::StringSequence>(features, name, "a Sequence");
    View& view = fresh_view(features, name);
    for (const std::string& s : strings) view.strings.push_back(s.c_str());
    out = {strings.size(), view.strings.data(), nullptr};
  });
}

moka_status moka_model_predict(const moka_model* model, const moka_features* inputs, moka_features* outputs,
                               moka_state* state) {
  return guarded([&] {
    const moka_model& m = need(model, "model");
    const moka_features& in = need(inputs, "inputs");
    moka_features& out = need(outputs, "outputs");
    if (&in == &out) wrong("inputs and outputs: expected different handles");
    out.views.clear();
    m.model.predict(in.values, out.values, {state == nullptr ? nullptr : &state->state});
  });
}

moka_status moka_model_predict_rows(const moka_model* model, const moka_features* columns, moka_features* outputs) {
  return guarded([&] {
    const moka_model& m = need(model, "model");
    const moka_features& in = need(columns, "columns");
    moka_features& out = need(outputs, "outputs");
    if (&in == &out) wrong("columns and outputs: expected different handles");
    moka::Features results = m.model.predict_rows(in.values);
    out.views.clear();
    out.values = std::move(results);
  });
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

moka_status moka_state_read(moka_state* state, const char* name, moka_array* array) {
  return guarded([&] {
    moka_state& s = need(state, "state");
    moka_array& out = need(array, "array");
    s.copy = s.state.read(need_text(name, "name"));
    out = from_array(s.copy);
  });
}

moka_status moka_state_write(moka_state* state, const char* name, const moka_array* array) {
  return guarded([&] { need(state, "state").state.write(need_text(name, "name"), to_array(need(array, "array"))); });
}

}  // extern "C"
