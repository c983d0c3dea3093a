// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "import/outline/parts.h"

namespace moka::import {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& layer, const char* key) {
  const auto it = layer.find(key);
  return it != layer.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// Blob names are separated by commas.
std::vector<std::string> blobs_of(const Json& layer, const char* key) {
  std::vector<std::string> out;
  const std::string all = text_of(layer, key);
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find(',', at), all.size());
    out.push_back(all.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

/// Sizes of the blobs in the weights file by number. The file has a u64 count, then that many pairs (number, size).
Result<std::map<uint64_t, uint64_t>> blob_sizes(const Bytes& file) {
  const auto number = [&](uint64_t i) {
    uint64_t v;
    std::memcpy(&v, file.data() + 8 * i, sizeof v);
    return v;
  };
  const uint64_t room = file.size() / 8;
  if (room == 0 || number(0) > (room - 1) / 2)
    return fail(ErrorCode::malformed, "the table of weights does not fit into ", file.size(), " bytes");
  std::map<uint64_t, uint64_t> out;
  for (uint64_t i = 0; i < number(0); ++i) out[number(1 + 2 * i)] = number(2 + 2 * i);
  return out;
}

class Reader {
 public:
  Reader(const std::map<uint64_t, uint64_t>& sizes, Outline& out) : sizes_(sizes), out_(out) {}

  void layer(const Json& layer) {
    Outline::Layer l;
    l.name = text_of(layer, "name");
    l.type = text_of(layer, "type");
    l.inputs = blobs_of(layer, "bottom");
    l.outputs = blobs_of(layer, "top");
    l.window = window(layer, l.type);
    const size_t first = out_.weights.size();
    shape_ = shape_of(l.window, l.type);
    for (const auto& [key, value] : layer.items())
      if (key.starts_with("blob_") || key == "constant_blob") weight(l.name, key, value);
    if (const auto named = layer.find("weights"); named != layer.end() && named->is_object())
      for (const auto& [key, value] : named->items()) weight(l.name, key, value);
    for (size_t i = first; i < out_.weights.size(); ++i) l.weights.push_back(i);
    out_.layers.push_back(std::move(l));
  }

 private:
  static int64_t number(const Json& layer, const char* key, int64_t otherwise) {
    const auto it = layer.find(key);
    return it != layer.end() && it->is_number_integer() ? it->get<int64_t>() : otherwise;
  }

  static Outline::Window window(const Json& layer, const std::string& type) {
    Outline::Window w;
    if (type == "inner_product") {
      w.input_channels = number(layer, "nB", 0);
      w.output_channels = number(layer, "nC", 0);
      return w;
    }
    const bool is_convolution = type == "convolution" || type == "deconvolution";
    if (!is_convolution && type != "pool") return w;
    if (is_convolution) {
      w.kernel = {number(layer, "Ny", 0), number(layer, "Nx", 0)};
      w.dilation = {number(layer, "dilation_y", 1), number(layer, "dilation_x", 1)};
      w.groups = std::max<int64_t>(number(layer, "n_groups", 1), 1);
      w.input_channels = number(layer, "K", 0);
      w.output_channels = number(layer, "C", 0);
    } else if (number(layer, "is_global", 0) != 0) {
      w.padding_mode = "global";
      return w;
    } else {
      w.kernel = {number(layer, "size_y", 0), number(layer, "size_x", 0)};
    }
    w.stride = {number(layer, "stride_y", 1), number(layer, "stride_x", 1)};
    const int64_t mode = number(layer, "pad_mode", 0);
    w.padding = {number(layer, "pad_t", 0), number(layer, "pad_b", 0), number(layer, "pad_l", 0),
                 number(layer, "pad_r", 0)};
    const bool padded = mode == 0 && std::any_of(w.padding.begin(), w.padding.end(), [](int64_t n) { return n != 0; });
    w.padding_mode = mode == 1 ? "same" : padded ? "custom" : "valid";
    if (!padded) w.padding.clear();
    return w;
  }

  /// The shape of the layer's largest weight, in the order of the file.
  static std::vector<int64_t> shape_of(const Outline::Window& w, const std::string& type) {
    if (type == "inner_product") return {w.output_channels, w.input_channels};
    if (type != "convolution") return {};
    return {w.output_channels, w.input_channels / w.groups, w.kernel[0], w.kernel[1]};
  }

  void weight(const std::string& layer, const std::string& key, const Json& value) {
    if (!value.is_number_unsigned()) return;
    const auto size = sizes_.find(value.get<uint64_t>());
    Outline::Weight out;
    out.name = cat(layer, ".", key);
    out.path = "model.espresso.weights";
    out.storage = "file";
    out.available = size != sizes_.end();
    out.bytes = out.available ? size->second : 0;
    const bool half = key.ends_with("_f16"), byte = key == "W_U8" || key == "W_S8" || key.find("int8") != key.npos;
    out.type = half   ? array_type("fp16", out.bytes / 2, shape_)
               : byte ? array_type(key == "W_U8" ? "uint8" : "int8", out.bytes, shape_)
                      : array_type("fp32", out.bytes / 4, shape_);
    out_.weights.push_back(std::move(out));
  }

  const std::map<uint64_t, uint64_t>& sizes_;
  Outline& out_;
  std::vector<int64_t> shape_;
};

}  // namespace

void outline_espresso(const format::ModelFile& file, Outline& out) {
  outline_transforms(file.spec(), file, out);
  auto text = file.weights().file("model.espresso.net");
  if (!text.ok()) {
    out.faults.push_back(text.error().to_string());
    return;
  }
  std::map<uint64_t, uint64_t> sizes;
  auto weights = file.weights().file("model.espresso.weights");
  auto table = weights.ok() ? blob_sizes(*weights) : Result<std::map<uint64_t, uint64_t>>(std::move(weights).error());
  if (table.ok())
    sizes = std::move(*table);
  else
    out.faults.push_back(cat("model.espresso.weights: ", table.error().to_string()));
  const std::string_view net = text->text();
  const Json json = Json::parse(net.begin(), net.end(), nullptr, false);
  const auto layers = json.is_object() ? json.find("layers") : json.end();
  if (!json.is_object() || layers == json.end() || !layers->is_array()) {
    out.faults.push_back("model.espresso.net: expected JSON with a list of layers");
    return;
  }
  Reader reader(sizes, out);
  for (const Json& layer : *layers)
    if (layer.is_object()) reader.layer(layer);
}

}  // namespace moka::import
