// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/common/common.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_moka_fold_bias(const OpCall& call) {
  const Type& scale = call.type("scale");
  if (!scale.is_concrete() || scale.rank() != 1) return call.error("scale", "a vector", cat(scale));
  const int64_t made = scale.shape()[0];
  for (const char* param : {"shift", "bias"})
    if (call.has(param) && (!call.type(param).is_concrete() || call.shape(param).count() != made))
      return call.error(param, cat("a number for each of ", made, " channels"), cat(call.type(param)));
  const std::string_view dtype = MOKA_TRY(call.text("dtype"));
  if (call.has("weight") != call.has("input_shift"))
    return call.error("input_shift", "both or neither of weight and input_shift", "one");
  if (call.has("weight")) {
    const Type& w = call.type("weight");
    const int64_t groups = MOKA_TRY(call.integer("groups"));
    if (!w.is_concrete() || w.rank() < 2 || groups < 1 || w.shape()[0] != made || made % groups != 0 ||
        call.type("input_shift").shape().count() != w.shape()[1] * groups)
      return call.error("weight", cat("weights of ", made, " output channels"), cat(w));
  }
  return one(Type::tensor(dtype == "fp64" ? DType::fp64 : DType::fp32, Shape{made}));
}

Status moka_fold_bias_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &scale = call.in("scale"), &shift = call.in("shift");
  const int64_t made = scale.count();
  std::vector<double> bias(static_cast<size_t>(made), 0.0);
  for (int64_t o = 0; o < made && call.has("bias"); o++) bias[static_cast<size_t>(o)] = load_f64(call.in("bias"), o);
  if (call.has("weight")) {
    const TensorView &w = call.in("weight"), &by_input = call.in("input_shift");
    const int64_t columns = w.shape[1], taps = w.shape.count(2, w.shape.rank());
    const int64_t group = made / MOKA_TRY(call.integer("groups"));
    int64_t at = 0;
    for (int64_t o = 0; o < made; o++)
      for (int64_t i = 0; i < columns; i++) {
        const double s = by_input.as<double>()[o / group * columns + i];
        for (int64_t t = 0; t < taps; t++, at++)
          if (s != 0) bias[static_cast<size_t>(o)] += load_f64(w, at) * s;
      }
  }
  for (int64_t o = 0; o < made; o++)
    store_f64(out[0], o, bias[static_cast<size_t>(o)] * scale.as<double>()[o] + shift.as<double>()[o]);
  return {};
}

}  // namespace

OpDef define_moka_fold_bias() {
  constexpr DTypes kWide = any_of(DType::fp32, DType::fp64);
  return OpBuilder(
             "moka_fold_bias",
             "The bias of a convolution or a linear layer with the scale and the shift per output channel of what "
             "follows it, and with the shift per input channel of what comes before. A pass makes it where "
             "parameters are among them.",
             Opset::ios13)
      .in("scale", only(DType::fp64))
      .in("shift", only(DType::fp64))
      .in("bias", kWide)
      .optional()
      .in("weight", kWide)
      .optional()
      .in("input_shift", only(DType::fp64))
      .optional()
      .constant("groups", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 1))
      .constant("dtype", kString)
      .one_of({"fp32", "fp64"})
      .infer(infer_moka_fold_bias)
      .reference(moka_fold_bias_reference)
      .note("Computed in float64 and rounded once.", "conv and linear")
      .build();
}

}  // namespace moka::ops
