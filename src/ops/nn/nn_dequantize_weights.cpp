// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/nn_weights.h"

namespace moka::ops {

namespace {

struct PackedCodes {
  Shape shape;
  int bits = 8;
  int axis = 0;
};

Result<PackedCodes> packed_codes(const OpCall& call) {
  PackedCodes p;
  Ints dims = MOKA_TRY(call.ints("shape"));
  p.shape = MOKA_TRY(Shape::make(dims.span()));
  for (int64_t d : p.shape)
    if (d < 0) return call.error("shape", "sizes", cat(p.shape));
  int64_t n = MOKA_TRY(p.shape.checked_count());
  int64_t bits = MOKA_TRY(call.integer("bits"));
  if (bits < 1 || bits > 8) return call.error("bits", "1 to 8", cat(bits));
  p.bits = static_cast<int>(bits);
  if (n > (int64_t{1} << 58)) return call.error("shape", "fewer elements", cat(p.shape));
  if (call.dtype("data") == DType::int8 && bits != 8) return call.error("bits", "8 for int8 data", cat(bits));
  int64_t bytes = (n * bits + 7) / 8;
  if (call.rank("data") != 1 || call.shape("data")[0] != bytes)
    return call.error("data", cat(bytes, " bytes"), cat(call.type("data")));
  p.axis = MOKA_TRY(axis_of(call, "axis", std::max(p.shape.rank(), 1)));
  int64_t channels = p.shape.rank() == 0 ? 1 : p.shape[p.axis];
  for (const char* name : {"scale", "bias"}) {
    if (!call.has(name)) continue;
    if (call.rank(name) != 1 || (call.shape(name)[0] != 1 && call.shape(name)[0] != channels))
      return call.error(name, cat("1 or ", channels, " values"), cat(call.type(name)));
  }
  if (call.has("lut") == call.has("scale")) return call.error("expected either lut or scale");
  if (call.has("lut") && (call.rank("lut") != 1 || call.shape("lut")[0] != int64_t{1} << bits))
    return call.error("lut", cat(1 << bits, " values"), cat(call.type("lut")));
  return p;
}

std::span<const float> floats(const OpCall& call, std::string_view name) {
  if (!call.has(name)) return {};
  const TensorView& t = call.in(name);
  return {t.as<const float>(), static_cast<size_t>(t.count())};
}

Result<std::vector<Type>> infer_nn_dequantize_weights(const OpCall& call) {
  return one(Type::tensor(DType::fp32, MOKA_TRY(packed_codes(call)).shape));
}

Status nn_dequantize_weights_reference(const OpCall& call, std::span<const TensorView> out) {
  PackedCodes p = MOKA_TRY(packed_codes(call));
  QuantizedWeights w;
  w.data = call.in("data").as<const uint8_t>();
  w.is_signed = call.in("data").dtype == DType::int8;
  w.bits = p.bits;
  w.count = p.shape.count();
  if (p.shape.rank() > 0) {
    w.channels = p.shape[p.axis];
    w.inner = p.shape.count(p.axis + 1, p.shape.rank());
  }
  w.scale = floats(call, "scale");
  w.bias = floats(call, "bias");
  w.lut = floats(call, "lut");
  dequantize(w, out[0].as<float>());
  return {};
}

}  // namespace

OpDef define_nn_dequantize_weights() {
  return OpBuilder("nn_dequantize_weights",
                   "Expands a neural network's quantized weight: integers q, packed from the highest bit down, become "
                   "table[q] or "
                   "scale * q + bias, with one scale and bias for all or per channel.")
      .constant("data", any_of(DType::uint8, DType::int8))
      .constant("shape", kI32)
      .constant("bits", kI32)
      .constant("axis", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 0))
      .constant("scale", only(DType::fp32))
      .optional()
      .constant("bias", only(DType::fp32))
      .optional()
      .constant("lut", only(DType::fp32))
      .optional()
      .infer(infer_nn_dequantize_weights)
      .reference(nn_dequantize_weights_reference)
      .traits(Trait::constexpr_weight)
      .note("Integers are packed from the highest bit of each byte down.",
            "NeuralNetwork.proto; coremltools' quantization utilities")
      .build();
}

}  // namespace moka::ops
