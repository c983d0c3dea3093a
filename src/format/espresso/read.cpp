// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>

#include "format/espresso/network.h"
#include "format/json_text.h"
#include "format/mlmodelc/stream.h"

namespace moka::format::espresso {
namespace {

using nlohmann::json;

constexpr int max_depth = 64;
constexpr size_t max_json = size_t{256} << 20;  // bytes

Result<json> parse_json(const Bytes& file, std::string_view what) {
  std::string_view text = file.text();
  if (text.starts_with("pbze")) return fail(ErrorCode::unsupported, what, " is compressed (pbze); plain JSON is read");
  if (text.size() > max_json)
    return fail(ErrorCode::unsupported, what, " has ", text.size(), " bytes, more than ", max_json);
  return parse_json_object(file, what, max_depth);
}

/// `fallback` where the key is absent.
Result<float> number(const json& object, const char* key, float fallback, std::string_view where) {
  auto it = object.find(key);
  if (it == object.end()) return fallback;
  if (!it->is_number())
    return fail(ErrorCode::malformed, where, ": '", key, "' is of type ", it->type_name(), ", expected a number");
  return it->get<float>();
}

Result<ImageTransform> transform(const json& object, std::string_view where) {
  if (!object.is_object()) return fail(ErrorCode::malformed, where, " is not an object");
  ImageTransform t;
  t.scale = MOKA_TRY(number(object, "scale", 1, where));
  t.red = MOKA_TRY(number(object, "bias_r", 0, where));
  t.green = MOKA_TRY(number(object, "bias_g", 0, where));
  t.blue = MOKA_TRY(number(object, "bias_b", 0, where));
  t.gray = MOKA_TRY(number(object, "bias_a", 0, where));
  t.bgr = MOKA_TRY(number(object, "is_network_bgr", 0, where)) != 0;
  if (MOKA_TRY(number(object, "center_mean", 0, where)) != 0)
    return fail(ErrorCode::unsupported, where, ": a mean image ('center_mean')");
  return t;
}

Result<int64_t> dimension(const json& value, std::string_view blob, const std::string& axis) {
  if (!value.is_number_integer() || value < 0 || value > std::numeric_limits<int32_t>::max())
    return fail(ErrorCode::malformed, "model.espresso.shape: '", axis, "' of blob '", blob, "' is ", value.dump(),
                ", expected a size");
  return value.get<int64_t>();
}

Result<BlobShape> blob_shape(const std::string& blob, const json& object) {
  if (!object.is_object())
    return fail(ErrorCode::malformed, "model.espresso.shape: blob '", blob, "' is not an object");
  static constexpr std::string_view names[axis_count] = {"w", "h", "k", "n", "seq"};
  BlobShape out;
  for (const auto& [key, value] : object.items()) {
    for (int axis = 0; axis < axis_count; ++axis)
      if (key == names[axis]) out.size[axis] = MOKA_TRY(dimension(value, blob, key));
    if (key == "_rank") {
      out.rank = static_cast<int>(MOKA_TRY(dimension(value, blob, key)));
      if (out.rank > axis_count)
        return fail(ErrorCode::unsupported, "model.espresso.shape: blob '", blob, "' has rank ", out.rank,
                    "; 5 is the largest that the file can hold");
    }
  }
  return out;
}

}  // namespace

Result<Network> parse_net(const Bytes& file) {
  json root = MOKA_TRY(parse_json(file, "model.espresso.net"));
  Network out;
  auto storage = root.find("storage");
  if (storage != root.end() && storage->is_string()) out.storage = storage->get<std::string>();
  auto version = root.find("format_version");
  if (version != root.end() && (!version->is_number_integer() || *version < 200 || *version > 300))
    return fail(ErrorCode::unsupported, "model.espresso.net: format_version ", version->dump(), "; 200 to 300 is read");
  if (auto transforms = root.find("transform_params"); transforms != root.end() && transforms->is_object())
    for (const auto& [name, object] : transforms->items())
      out.transforms[name] =
          MOKA_TRY(transform(object, cat("model.espresso.net: transform_params of input '", name, "'")));
  auto layers = root.find("layers");
  if (layers == root.end() || !layers->is_array())
    return fail(ErrorCode::malformed, "model.espresso.net has no array 'layers'");
  out.layers.reserve(layers->size());
  for (json& layer : *layers) out.layers.push_back(std::move(layer));
  return out;
}

Result<std::map<std::string, BlobShape>> parse_shapes(const Bytes& file) {
  json root = MOKA_TRY(parse_json(file, "model.espresso.shape"));
  auto shapes = root.find("layer_shapes");
  if (shapes == root.end() || !shapes->is_object())
    return fail(ErrorCode::malformed, "model.espresso.shape has no object 'layer_shapes'");
  std::map<std::string, BlobShape> out;
  for (const auto& [name, object] : shapes->items()) out[name] = MOKA_TRY(blob_shape(name, object));
  return out;
}

Result<std::map<uint64_t, Bytes>> parse_weights(const Bytes& file) {
  Stream in(file, "model.espresso.weights");
  const uint64_t n = MOKA_TRY(in.count("table of blobs", 2 * sizeof(uint64_t)));
  std::vector<std::pair<uint64_t, uint64_t>> table;
  table.reserve(n);
  for (uint64_t i = 0; i < n; ++i) {
    auto id = MOKA_TRY(in.number<uint64_t>("number of a blob"));
    table.emplace_back(id, MOKA_TRY(in.number<uint64_t>("size of a blob")));
  }
  std::map<uint64_t, Bytes> out;
  for (const auto& [id, size] : table) {
    Bytes bytes = MOKA_TRY(in.bytes(cat("blob ", id), size));
    if (!out.emplace(id, std::move(bytes)).second)
      return fail(ErrorCode::malformed, "model.espresso.weights: blob ", id, " is there twice");
  }
  return out;
}

Result<std::map<std::string, ImageTransform>> parse_transforms(const Bytes& file) {
  Stream in(file, "model/coremldata.bin");
  std::map<std::string, ImageTransform> out;
  for (int map = 0; map < 8; ++map) {
    const uint64_t n = MOKA_TRY(in.count("map of inputs", sizeof(uint64_t) + sizeof(float)));
    for (uint64_t i = 0; i < n; ++i) {
      std::string name = MOKA_TRY(in.string("name of an input"));
      const float value = MOKA_TRY(in.number<float>("number of an input"));
      ImageTransform& t = out[name];
      switch (map) {
        case 1: t.bgr = value != 0; break;
        case 2: t.grayscale = value != 0; break;
        case 3: t.blue = value; break;
        case 4: t.green = value; break;
        case 5: t.red = value; break;
        case 6: t.gray = value; break;
        case 7: t.scale = value; break;
        default: break;
      }
    }
  }
  return out;
}

std::vector<uint64_t> parse_optionals(const Bytes& file) {
  std::vector<uint64_t> out(file.size() / sizeof(uint64_t));
  if (!out.empty()) std::memcpy(out.data(), file.data(), out.size() * sizeof(uint64_t));
  return out;
}

}  // namespace moka::format::espresso
