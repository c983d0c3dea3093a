// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/convolution.h"
#include "ops/common/ranks.h"

namespace moka::ops {

namespace {

/// Checks that the parameter has one value, or one per output channel.
Status check_channel_values(const OpCall& call, std::string_view param, int64_t channels) {
  const Shape& s = call.shape(param);
  for (int i = 0; i < s.rank(); ++i) {
    if (s[i] != 1 && (i != 0 || !may_equal(s[i], channels)))
      return call.error(param, cat("one value, or one for each of ", channels, " output channels"), cat(s));
  }
  return {};
}

Result<std::vector<Type>> infer_conv_quantized(const OpCall& call) {
  if (const std::string_view kind = MOKA_TRY(call.text("quantization_type")); kind != "linear")
    return call.error("quantization_type", "linear, because no parameter holds a table", cat("'", kind, "'"));
  if (const int64_t bits = MOKA_TRY(call.integer("nbits")); bits != 8)
    return call.error("nbits", "8, because the packing of other widths is not defined", cat(bits));
  if (call.has("bias")) return call.error("bias", "no bias, because the meaning of its integers is not defined", "one");
  const DType dtype = call.dtype("x");
  if (any_unranked(call, {"x", "weight"})) return one(Type::unranked(dtype));
  const Window w = MOKA_TRY(conv_window(call));
  for (const char* p : {"quant_scale", "quant_bias"}) MOKA_TRY(check_channel_values(call, p, call.shape("weight")[0]));
  Shape out{call.shape("x")[0], call.shape("weight")[0]};
  for (int64_t d : w.out) out.push_back(d);
  return one(Type::tensor(dtype, out));
}

Status conv_quantized_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  const TensorView &quantized = call.in("weight"), &scale = call.in("quant_scale"), &shift = call.in("quant_bias");
  const Tensor weight = MOKA_TRY(Tensor::zeros(DType::fp64, quantized.shape));
  const int64_t each = quantized.count() / quantized.shape[0];
  for (int64_t i = 0; i < quantized.count(); ++i) {
    const int64_t channel = i / each;
    const double a = load_f64(scale, scale.count() == 1 ? 0 : channel);
    const double b = load_f64(shift, shift.count() == 1 ? 0 : channel);
    store_f64(weight.view(), i, a * load_f64(quantized, i) + b);
  }
  convolve(call.in("x"), weight.view(), nullptr, MOKA_TRY(conv_window(call)).as_3d(), out[0]);
  return {};
}

}  // namespace

OpDef define_conv_quantized() {
  OpBuilder b("conv_quantized", "conv with 8-bit weights that stand for quant_scale * weight + quant_bias.");
  b.type_var("T", kF16F32)
      .type_var("U", only(DType::uint8))
      .in("x", "T")
      .in("weight", "U")
      .constant("bias", "U")
      .optional()
      .constant("quantization_type", kString)
      .one_of({"linear", "lut"})
      .constant("nbits", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 8))
      .constant("quant_scale", "T")
      .constant("quant_bias", "T");
  return add_window_params(b)
      .infer(infer_conv_quantized)
      .reference(conv_quantized_reference)
      .note(
          "Weights are quant_scale * weight + quant_bias, with one of each or one per output channel. The rest is "
          "as in conv.",
          "coremltools' definition; the shape of the two is open there, and taken as in the format of neural "
          "networks")
      .note(
          "Refused: quantization_type lut (no parameter holds a table), nbits other than 8 (the packing is not "
          "defined), "
          "a bias (declared uint8, but its scale is not defined).",
          "coremltools' definition leaves them open and calls the operation experimental; no converter writes it")
      .build();
}

}  // namespace moka::ops
