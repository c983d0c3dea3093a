// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <vector>

#include "api/c_support.h"
#include "base/error.h"
#include "boundary/path.h"
#include "moka/custom.h"
#include "moka/plugin.h"

namespace {

using moka::ArrayView;
using moka::cat;
using moka::ErrorKind;
using moka::Exception;
using moka::LayerInfo;
using moka::MultiArray;

moka_array to_c(const ArrayView& a) {
  return {a.data, static_cast<moka_data_type>(a.type), a.shape.size(), a.shape.data(), nullptr};
}

moka_array to_c(const MultiArray& a) {
  moka_array out = moka::api::c_array(a);
  out.strides = nullptr;
  return out;
}

moka_shape to_c(const std::vector<int64_t>& shape) {
  moka_shape out{};
  out.rank = shape.size();
  std::copy_n(shape.begin(), std::min<size_t>(shape.size(), MOKA_MAX_RANK), out.sizes);
  return out;
}

std::vector<moka_shape> to_c(const std::vector<std::vector<int64_t>>& shapes) {
  std::vector<moka_shape> out;
  for (const auto& s : shapes) out.push_back(to_c(s));
  return out;
}

/// The texts and arrays belong to `parameters`.
std::vector<moka_parameter> to_c(const std::map<std::string, moka::ParameterValue>& parameters) {
  std::vector<moka_parameter> out;
  for (const auto& [name, value] : parameters) {
    moka_parameter p{};
    p.name = name.c_str();
    if (const auto* b = std::get_if<bool>(&value)) {
      p.type = MOKA_TYPE_INT64;
      p.int64 = *b ? 1 : 0;
      p.number = *b ? 1 : 0;
    } else if (const auto* i = std::get_if<int64_t>(&value)) {
      p.type = MOKA_TYPE_INT64;
      p.int64 = *i;
      p.number = static_cast<double>(*i);
    } else if (const auto* d = std::get_if<double>(&value)) {
      p.type = MOKA_TYPE_DOUBLE;
      p.number = *d;
    } else if (const auto* s = std::get_if<std::string>(&value)) {
      p.type = MOKA_TYPE_STRING;
      p.string = s->c_str();
    } else if (const auto* a = std::get_if<MultiArray>(&value)) {
      p.type = MOKA_TYPE_MULTI_ARRAY;
      p.array = to_c(*a);
    } else {
      throw Exception(ErrorKind::unsupported, cat("parameter '", name, "': a list of texts"));
    }
    out.push_back(p);
  }
  return out;
}

void check(const char* said) {
  if (said != nullptr) throw Exception(ErrorKind::data, said);
}

class CLayer final : public moka::CustomLayer {
 public:
  CLayer(const moka_layer_type& type, void* context, const LayerInfo& info) : type_(type), outputs_(info.outputs) {
    layer_ = context;
    if (type_.create == nullptr) return;
    const std::vector<moka_parameter> parameters = to_c(info.parameters);
    const moka_layer_info said{info.name.c_str(), info.class_name.c_str(), info.description.c_str(),
                               parameters.size(), parameters.data(),       info.inputs,
                               info.outputs};
    layer_ = nullptr;
    check(type_.create(context, &said, &layer_));
    made_ = true;
  }
  CLayer(const CLayer&) = delete;
  ~CLayer() override {
    if (made_ && type_.destroy != nullptr) type_.destroy(layer_);
  }

  void set_weights(const std::vector<MultiArray>& weights) override {
    weights_ = weights;  // keeps the memory and the shapes
    if (type_.set_weights == nullptr) return;
    std::vector<moka_array> arrays;
    for (const MultiArray& w : weights_) arrays.push_back(to_c(w));
    check(type_.set_weights(layer_, arrays.size(), arrays.data()));
  }

  std::vector<std::vector<int64_t>> output_shapes(const std::vector<std::vector<int64_t>>& inputs) const override {
    if (type_.output_shapes == nullptr) return CustomLayer::output_shapes(inputs);
    const std::vector<moka_shape> in = to_c(inputs);
    std::vector<moka_shape> out(outputs_);
    check(type_.output_shapes(layer_, in.size(), in.data(), out.size(), out.data()));
    std::vector<std::vector<int64_t>> shapes;
    for (const moka_shape& s : out) {
      if (s.rank > MOKA_MAX_RANK) throw Exception(ErrorKind::data, cat("a shape of rank ", s.rank));
      shapes.emplace_back(s.sizes, s.sizes + s.rank);
    }
    return shapes;
  }

  bool elementwise() const override { return type_.elementwise != 0; }

  moka::LayerPlan plan(const std::vector<std::vector<int64_t>>& inputs, int threads) const override {
    moka::LayerPlan p;
    if (type_.tiles == nullptr) return p;
    const std::vector<moka_shape> in = to_c(inputs);
    p.tiles = type_.tiles(layer_, in.size(), in.data(), threads);
    return p;
  }

  std::optional<moka::LayerShader> shader(const std::vector<std::vector<int64_t>>& inputs) const override {
    if (type_.shader == nullptr) return std::nullopt;
    const std::vector<moka_shape> in = to_c(inputs);
    moka_layer_shader said{};
    said.struct_size = sizeof said;
    for (uint32_t& n : said.groups) n = 1;
    check(type_.shader(layer_, in.size(), in.data(), &said));
    if (said.code_count == 0) return std::nullopt;
    moka::LayerShader out;
    for (size_t i = 0; i < said.code_count; i++) {
      const moka_shader_code& code = said.code[i];
      if (code.kind == nullptr || code.bytes == nullptr)
        throw Exception(ErrorKind::data, cat("shader: code ", i, " without a kind or bytes"));
      out.code.push_back({code.kind, std::string(static_cast<const char*>(code.bytes), code.size)});
    }
    if (said.constant_count > 0) out.constants.assign(said.constants, said.constants + said.constant_count);
    const auto* parameters = static_cast<const std::byte*>(said.parameters);
    if (said.parameter_bytes > 0) out.parameters.assign(parameters, parameters + said.parameter_bytes);
    std::copy(std::begin(said.groups), std::end(said.groups), out.groups.begin());
    for (size_t i = 0; i < said.buffer_count; i++) {
      const MultiArray borrowed = moka::api::borrowed_array(said.buffers[i]);
      out.buffers.push_back(borrowed.converted(borrowed.type()));
    }
    out.seconds = said.seconds;
    return out;
  }

  void evaluate(const moka::LayerCall& call) const override {
    constexpr size_t kFew = 8;
    moka_array few[2 * kFew];
    std::vector<moka_array> many;
    const size_t count = call.inputs.size() + call.outputs.size();
    if (count > std::size(few)) many.resize(count);
    moka_array* arrays = count > std::size(few) ? many.data() : few;
    size_t n = 0;
    for (const ArrayView& a : call.inputs) arrays[n++] = to_c(a);
    for (const ArrayView& a : call.outputs) arrays[n++] = to_c(a);
    const moka_layer_call c{sizeof c,   call.inputs.size(), call.outputs.size(), arrays, arrays + call.inputs.size(),
                            call.begin, call.end,           call.thread};
    check(type_.evaluate(layer_, &c));
  }

 private:
  moka_layer_type type_;
  size_t outputs_;
  void* layer_ = nullptr;
  bool made_ = false;
  std::vector<MultiArray> weights_;
};

std::vector<const char*> names_of(const std::vector<moka::FeatureDescription>& features) {
  std::vector<const char*> out;
  for (const auto& f : features) out.push_back(f.name.c_str());
  return out;
}

class CModel final : public moka::CustomModel {
 public:
  CModel(const moka_model_code& code, void* context, const moka::CustomModelInfo& info) : code_(code), model_(context) {
    if (code_.create == nullptr) return;
    const std::vector<moka_parameter> parameters = to_c(info.parameters);
    const std::vector<const char*> inputs = names_of(info.function.inputs), outputs = names_of(info.function.outputs);
    const moka_model_info said{
        info.name.c_str(), info.description.c_str(), parameters.size(), parameters.data(), inputs.size(),
        inputs.data(),     outputs.size(),           outputs.data()};
    model_ = nullptr;
    check(code_.create(context, &said, &model_));
    made_ = true;
  }
  CModel(const CModel&) = delete;
  ~CModel() override {
    if (made_ && code_.destroy != nullptr) code_.destroy(model_);
  }

  moka::Features predict(const moka::Features& inputs) const override {
    moka_features in{inputs, {}}, out;
    out.copies = true;
    check(code_.predict(model_, &in, &out));
    return std::move(out.values);
  }

 private:
  moka_model_code code_;
  void* model_ = nullptr;
  bool made_ = false;
};

moka_model_code checked(const char* name, const moka_model_code* code) {
  if (name == nullptr || code == nullptr)
    throw Exception(ErrorKind::invalid_argument, "registering a model: expected a name and its code, got NULL");
  moka_model_code known{};
  if (code->struct_size < sizeof known)
    throw Exception(ErrorKind::invalid_argument, cat("registering '", name, "': struct_size: expected at least ",
                                                     sizeof known, ", got ", code->struct_size));
  std::memcpy(&known, code, sizeof known);
  if (known.predict == nullptr)
    throw Exception(ErrorKind::invalid_argument, cat("registering '", name, "': expected predict, got NULL"));
  return known;
}

/// A copy of what the caller knows of the structure.
moka_layer_type checked(const char* name, const moka_layer_type* type) {
  if (name == nullptr || type == nullptr)
    throw Exception(ErrorKind::invalid_argument, "registering a layer: expected a name and a type, got NULL");
  moka_layer_type known{};
  if (type->struct_size < offsetof(moka_layer_type, tiles))
    throw Exception(ErrorKind::invalid_argument, cat("registering '", name, "': struct_size: expected at least ",
                                                     offsetof(moka_layer_type, tiles), ", got ", type->struct_size));
  std::memcpy(&known, type, std::min(type->struct_size, sizeof known));
  if (known.evaluate == nullptr)
    throw Exception(ErrorKind::invalid_argument, cat("registering '", name, "': expected evaluate, got NULL"));
  return known;
}

moka::LayerFactory factory_of(const moka_layer_type& type, void* context) {
  return [type, context](const LayerInfo& info) { return std::make_unique<CLayer>(type, context, info); };
}

}  // namespace

using moka::api::guarded;

namespace moka {

void load_plugin(const std::filesystem::path& plugin) {
  const std::string& path = boundary::native(plugin);
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    throw Exception(ErrorKind::not_found, cat("plug-in '", path, "': ", why != nullptr ? why : "it cannot be loaded"));
  }
  auto* start = reinterpret_cast<moka_status (*)(const moka_host*)>(::dlsym(library, "moka_plugin"));
  if (start == nullptr)
    throw Exception(ErrorKind::unsupported, cat("plug-in '", path, "': expected a function moka_plugin, got none"));
  static const moka_host host{sizeof host,
                              moka_register_layer,
                              moka_register_operation,
                              moka_last_error,
                              moka_register_model,
                              moka_features_type,
                              moka_features_get_array,
                              moka_features_get_int64,
                              moka_features_get_double,
                              moka_features_get_string,
                              moka_features_get_dictionary,
                              moka_features_get_sequence,
                              moka_features_get_image,
                              moka_features_set_array,
                              moka_features_set_int64,
                              moka_features_set_double,
                              moka_features_set_string,
                              moka_features_set_dictionary,
                              moka_features_set_sequence,
                              moka_features_set_image};
  const std::string before = moka_last_error();
  const moka_status status = start(&host);
  if (status == MOKA_OK) return;
  const std::string why = before == moka_last_error() ? "" : cat(": ", moka_last_error());
  throw Exception(ErrorKind::data, cat("plug-in '", path, "': moka_plugin returned ", moka_status_name(status), why));
}

}  // namespace moka

moka_status moka_register_layer(const char* class_name, const moka_layer_type* type, void* context) {
  return guarded([&] { moka::register_layer(class_name, factory_of(checked(class_name, type), context)); });
}

moka_status moka_register_operation(const char* name, const moka_layer_type* type, void* context) {
  return guarded([&] { moka::register_operation(name, factory_of(checked(name, type), context)); });
}

moka_status moka_unregister_layer(const char* class_name) {
  return guarded([&] {
    if (class_name == nullptr || !moka::unregister_layer(class_name))
      throw Exception(ErrorKind::not_found, cat("no layer '", class_name == nullptr ? "" : class_name, "'"));
  });
}

moka_status moka_unregister_operation(const char* name) {
  return guarded([&] {
    if (name == nullptr || !moka::unregister_operation(name))
      throw Exception(ErrorKind::not_found, cat("no operation '", name == nullptr ? "" : name, "'"));
  });
}

moka_status moka_register_model(const char* name, const moka_model_code* code, void* context) {
  return guarded([&] {
    const moka_model_code known = checked(name, code);
    moka::register_model(name, [known, context](const moka::CustomModelInfo& info) {
      return std::make_unique<CModel>(known, context, info);
    });
  });
}

moka_status moka_register_model_file(const char* name, const char* path) {
  return guarded([&] {
    if (name == nullptr || path == nullptr)
      throw Exception(ErrorKind::invalid_argument, "registering a model: expected a name and a path, got NULL");
    moka::register_model_file(name, path);
  });
}

moka_status moka_unregister_model(const char* name) {
  return guarded([&] {
    if (name == nullptr || !moka::unregister_model(name))
      throw Exception(ErrorKind::not_found, cat("no model '", name == nullptr ? "" : name, "'"));
  });
}

moka_status moka_set_linked_model_folders(const char* const* folders, size_t count) {
  return guarded([&] {
    std::vector<std::filesystem::path> list;
    for (size_t i = 0; i < count; ++i) {
      if (folders == nullptr || folders[i] == nullptr)
        throw Exception(ErrorKind::invalid_argument, cat("folder ", i, ": expected a path, got NULL"));
      list.emplace_back(folders[i]);
    }
    moka::set_linked_model_folders(list);
  });
}

moka_status moka_load_plugin(const char* path) {
  return guarded([&] {
    if (path == nullptr) throw Exception(ErrorKind::invalid_argument, "a plug-in: expected a path, got NULL");
    moka::load_plugin(path);
  });
}
