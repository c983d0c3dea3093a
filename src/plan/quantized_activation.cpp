// SPDX-License-Identifier: Apache-2.0
#include "plan/quantized_activation.h"

#include "ir/evaluate.h"

namespace moka::plan {

namespace {
/// Within these limits neither an integer times the scale nor its product with 1 / scale overflows or underflows.
constexpr double kLeastScale = 1e-30, kLargestScale = 1e30;
}  // namespace

std::optional<kernel::QuantizedActivation> quantized_activation_of(const ir::Value& value) {
  const ir::Op* op = value.producer();
  while (op != nullptr && op->epilogue.empty() && (op->has_trait(ir::Trait::alias) || op->type_name() == "transpose") &&
         op->input("x") != nullptr)
    op = op->input("x")->producer();
  if (op == nullptr || !op->epilogue.empty() || !op->output()->type.is_tensor() ||
      op->output()->type.dtype() != ir::DType::fp32)
    return std::nullopt;
  const bool rounded = op->type_name() == "moka_fake_quantize";
  if (!rounded && op->type_name() != "dequantize") return std::nullopt;
  ir::StaticCall call(*op);
  const auto scale = call.call().number("scale");
  const auto zero = call.call().has("zero_point") ? call.call().number("zero_point") : Result<double>(0.0);
  if (!scale.ok() || !zero.ok() || !(*scale >= kLeastScale && *scale <= kLargestScale)) return std::nullopt;
  bool is_signed = false;
  if (rounded) {
    const auto dtype = call.call().text("dtype");
    if (!dtype.ok()) return std::nullopt;
    is_signed = *dtype == "int8";
  } else {
    is_signed = op->input("input")->type.dtype() == ir::DType::int8;
  }
  return kernel::QuantizedActivation{static_cast<float>(*scale), (is_signed ? -128 : 0) - static_cast<int>(*zero)};
}

}  // namespace moka::plan
