// SPDX-License-Identifier: Apache-2.0
#include "compress/network.h"

#include <algorithm>
#include <cstring>

#include "base/half.h"
#include "compress/blocks.h"
#include "compress/constants.h"

namespace moka::compress {
namespace {

using format::Message;

Result<int64_t> integer(const Message& message, std::string_view field, int64_t otherwise = 0) {
  const auto values = MOKA_TRY(message.values(field));
  if (values.empty()) return otherwise;
  const auto value = static_cast<int64_t>(std::get<uint64_t>(values[0]));
  return value == 0 ? otherwise : value;
}

/// Collects the weights of one layer.
class Layer {
 public:
  Layer(std::string name, std::string type, bool quantized, std::vector<NetworkWeight>& to)
      : name_(std::move(name)), type_(std::move(type)), quantized_(quantized), to_(to) {}

  Status add(const Message& params, std::string_view field, Shape shape, int64_t axis = 0,
             const std::string& prefix = {}) {
    if (MOKA_TRY(params.count(field)) == 0) return {};
    NetworkWeight out{MOKA_TRY(params.child(field)), cat(name_, ".", prefix, field), type_, std::move(shape), axis};
    int64_t count = 1;
    for (const int64_t size : out.shape)
      if (size < 1 || __builtin_mul_overflow(count, size, &count))
        return fail(ErrorCode::malformed, "weight '", out.name, "': expected sizes from 1 on, got ", size);
    if (quantized_) {
      if (MOKA_TRY(out.params.count("quantization")) > 0) to_.push_back(std::move(out));
      return {};
    }
    const size_t floats = MOKA_TRY(out.params.packed("floatValue")).size();
    const size_t halves = MOKA_TRY(out.params.packed("float16Value")).size();
    if (floats + halves == 0) return {};
    const auto updatable = MOKA_TRY(out.params.values("isUpdatable"));
    if (!updatable.empty() && std::get<bool>(updatable[0])) return {};
    out.half = floats == 0;
    const size_t got = out.half ? halves / 2 : floats / sizeof(float);
    if (got != static_cast<size_t>(count))
      return fail(ErrorCode::malformed, "weight '", out.name, "': expected ", count, " numbers, got ", got);
    to_.push_back(std::move(out));
    return {};
  }

  Status convolution(const Message& p) {
    const int64_t outputs = MOKA_TRY(integer(p, "outputChannels")), inputs = MOKA_TRY(integer(p, "kernelChannels"));
    const int64_t groups = MOKA_TRY(integer(p, "nGroups", 1));
    constexpr int64_t usual = 3;
    Shape kernel;
    for (const format::Scalar& size : MOKA_TRY(p.values("kernelSize")))
      kernel.push_back(static_cast<int64_t>(std::get<uint64_t>(size)));
    if (kernel.empty()) kernel = {usual, usual};
    if (kernel.size() != 2) return fail(ErrorCode::malformed, "layer '", name_, "': expected 2 sizes of the kernel");
    const auto reversed = MOKA_TRY(p.values("isDeconvolution"));
    if (!reversed.empty() && std::get<bool>(reversed[0]))
      return add(p, "weights", {inputs, outputs / groups, kernel[0], kernel[1]}, 1);
    return add(p, "weights", {outputs, inputs, kernel[0], kernel[1]});
  }

  Status recurrent(const Message& sizes, const Message& weights, const std::string& prefix) {
    const int64_t in = MOKA_TRY(integer(sizes, "inputVectorSize")), out = MOKA_TRY(integer(sizes, "outputVectorSize"));
    for (const std::string& field : MOKA_TRY(weights.names())) {
      if (field.ends_with("eightMatrix")) MOKA_TRY(add(weights, field, {out, in}, 0, prefix));
      if (field.ends_with("ecursionMatrix")) MOKA_TRY(add(weights, field, {out, out}, 0, prefix));
    }
    return {};
  }

  Status matrix(const Message& p, std::string_view rows, std::string_view columns) {
    const int64_t outputs = MOKA_TRY(integer(p, rows)), inputs = MOKA_TRY(integer(p, columns));
    return add(p, "weights", {outputs, inputs});
  }

  Status read(const Message& p) {
    if (type_ == "convolution") return convolution(p);
    if (type_ == "innerProduct") return matrix(p, "outputChannels", "inputChannels");
    if (type_ == "batchedMatmul") return matrix(p, "weightMatrixSecondDimension", "weightMatrixFirstDimension");
    if (type_ == "embedding") return matrix(p, "outputChannels", "inputDim");
    if (type_ == "embeddingND") return matrix(p, "embeddingSize", "vocabSize");
    if (type_ == "simpleRecurrent" || type_ == "gru") return recurrent(p, p, "");
    size_t direction = 0;
    if (type_ == "uniDirectionalLSTM" || type_ == "biDirectionalLSTM")
      for (const Message& weights : MOKA_TRY(p.children("weightParams")))
        MOKA_TRY(recurrent(p, weights, direction++ == 0 ? "" : "backward."));
    return {};
  }

 private:
  std::string name_, type_;
  bool quantized_;
  std::vector<NetworkWeight>& to_;
};

}  // namespace

Result<std::vector<NetworkWeight>> network_weights_of(const Message& specification, bool quantized) {
  std::vector<NetworkWeight> out;
  MOKA_TRY(each(specification, "NeuralNetworkLayer", [&](const Message& layer) -> Status {
    const std::string type = MOKA_TRY(layer.which("layer"));
    if (type.empty()) return {};
    const std::string name = MOKA_TRY(text_of(layer, "name"));
    const Message params = MOKA_TRY(layer.child(type));
    return Layer(name, type, quantized, out).read(params);
  }));
  return out;
}

Result<std::vector<float>> values_of(const NetworkWeight& weight) {
  const Bytes bytes = MOKA_TRY(weight.params.packed(weight.half ? "float16Value" : "floatValue"));
  std::vector<float> out(bytes.size() / (weight.half ? 2 : sizeof(float)));
  if (!weight.half) {
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * sizeof bits, sizeof bits);
    out[i] = half::to_float(bits);
  }
  return out;
}

Site site_of(const NetworkWeight& weight) {
  Site out{weight.name, weight.layer, weight.shape, weight.half, false, 1};
  for (const int64_t size : weight.shape) out.elements *= size;
  return out;
}

Status write(const NetworkWeight& weight, const NetworkEncoding& encoding) {
  constexpr unsigned halves = 16;
  const auto floats = [](const std::vector<float>& values) { return Bytes::copy_of(std::as_bytes(std::span(values))); };
  Message params = weight.params;
  for (const std::string_view field : {"floatValue", "float16Value"}) MOKA_TRY(params.clear(field));
  if (encoding.bits == halves) return params.set_packed("float16Value", encoding.data);
  MOKA_TRY(params.set_packed("rawValue", encoding.data));
  Message quantization = MOKA_TRY(params.edit("quantization"));
  MOKA_TRY(quantization.set("numberOfBits", uint64_t{encoding.bits}));
  if (!encoding.table.empty()) {
    Message table = MOKA_TRY(quantization.edit("lookupTableQuantization"));
    return table.set_packed("floatValue", floats(encoding.table));
  }
  Message linear = MOKA_TRY(quantization.edit("linearQuantization"));
  MOKA_TRY(linear.set_packed("scale", floats(encoding.scale)));
  return linear.set_packed("bias", floats(encoding.bias));
}

Status raise_versions(const Message& specification) {
  constexpr int64_t halves = 2, quantized = 3;
  int64_t needed = 1;
  MOKA_TRY(each(specification, "WeightParams", [&](const Message& params) -> Status {
    if (MOKA_TRY(params.count("quantization")) > 0) needed = std::max(needed, quantized);
    if (!MOKA_TRY(params.packed("float16Value")).empty()) needed = std::max(needed, halves);
    return {};
  }));
  return each(specification, "Model", [&](Message model) -> Status {
    const auto version = MOKA_TRY(model.values("specificationVersion"));
    if (!version.empty() && std::get<int64_t>(version[0]) >= needed) return {};
    return model.set("specificationVersion", needed);
  });
}

}  // namespace moka::compress
