// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "compress/constants.h"
#include "compress/decompress_parts.h"
#include "compress/network.h"
#include "ops/common/nn_weights.h"

namespace moka::compress {
namespace {

using format::Message;

Result<std::vector<float>> floats_of(const Message& message, std::string_view field) {
  const Bytes bytes = MOKA_TRY(message.packed(field));
  std::vector<float> out(bytes.size() / sizeof(float));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  return out;
}

Result<uint64_t> bits_of(const Message& quantization) {
  const auto bits = MOKA_TRY(quantization.values("numberOfBits"));
  return bits.empty() ? uint64_t{0} : std::get<uint64_t>(bits[0]);
}

Result<std::vector<float>> expanded(const NetworkWeight& weight, int64_t count) {
  const Message quantization = MOKA_TRY(weight.params.child("quantization"));
  const uint64_t bits = MOKA_TRY(bits_of(quantization));
  const Bytes raw = MOKA_TRY(weight.params.packed("rawValue"));
  constexpr uint64_t most = 8;
  if (bits < 1 || bits > most)
    return fail(ErrorCode::malformed, "weight '", weight.name, "': expected 1 to 8 bits, got ", bits);
  if (raw.empty())
    return fail(ErrorCode::unsupported, "weight '", weight.name,
                "': its layer also rounds activations (int8DynamicQuantize), and floats would change its answers");
  if (raw.size() != (static_cast<uint64_t>(count) * bits + 7) / 8)
    return fail(ErrorCode::malformed, "weight '", weight.name, "': expected ", count, " numbers of ", bits,
                " bits, got ", raw.size(), " bytes");
  std::vector<float> scale, bias, table;
  const std::string kind = MOKA_TRY(quantization.which("QuantizationType"));
  if (kind == "lookupTableQuantization") {
    table = MOKA_TRY(floats_of(MOKA_TRY(quantization.child(kind)), "floatValue"));
  } else if (kind == "linearQuantization") {
    const Message linear = MOKA_TRY(quantization.child(kind));
    scale = MOKA_TRY(floats_of(linear, "scale"));
    bias = MOKA_TRY(floats_of(linear, "bias"));
  }
  const auto axis = static_cast<size_t>(weight.channel_axis);
  const int64_t inner =
      count_of(Shape(weight.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, weight.shape.end()));
  const int64_t channels = weight.shape[axis];
  const auto fits = [&](const std::vector<float>& values) {
    return values.size() <= 1 || values.size() == static_cast<size_t>(channels);
  };
  if (kind.empty() || !fits(scale) || !fits(bias) || (!table.empty() && table.size() != size_t{1} << bits) ||
      (table.empty() && scale.empty()))
    return fail(ErrorCode::malformed, "weight '", weight.name, "': its table, scales or biases do not fit ", bits,
                " bits and ", channels, " channels");
  std::vector<float> out(static_cast<size_t>(count));
  ops::dequantize({reinterpret_cast<const uint8_t*>(raw.data()), false, static_cast<int>(bits), count, channels, inner,
                   scale, bias, table},
                  out.data());
  return out;
}

}  // namespace

Result<std::vector<Decompressed>> decompress_networks(const Message& specification, bool write) {
  std::vector<Decompressed> out;
  for (const NetworkWeight& weight : MOKA_TRY(network_weights_of(specification, true))) {
    const int64_t count = count_of(weight.shape);
    out.push_back({weight.name, weight.layer, weight.shape});
    out.back().bytes_before = MOKA_TRY(weight.params.packed("rawValue")).size();
    out.back().bytes_after = static_cast<size_t>(count) * sizeof(float);
    if (!write) continue;
    const std::vector<float> values = MOKA_TRY(expanded(weight, count));
    Message params = weight.params;
    MOKA_TRY(params.clear("rawValue"));
    MOKA_TRY(params.clear("quantization"));
    MOKA_TRY(params.set_packed("floatValue", Bytes::copy_of(std::as_bytes(std::span(values)))));
  }
  if (!write) return out;
  MOKA_TRY(each(specification, "NeuralNetworkLayer", [](const Message& layer) -> Status {
    return each(layer, "WeightParams", [&](const Message& params) -> Status {
      if (MOKA_TRY(params.count("quantization")) == 0) return {};
      return fail(ErrorCode::unsupported, "layer '", MOKA_TRY(text_of(layer, "name")), "' (",
                  MOKA_TRY(layer.which("layer")),
                  "): expected only weights that 'moka compress' writes, got another one that is quantized");
    });
  }));
  return out;
}

}  // namespace moka::compress
