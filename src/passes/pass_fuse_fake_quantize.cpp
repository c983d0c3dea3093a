// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "passes/pass.h"
#include "passes/rewrite.h"

/// Replaces a quantize and the dequantize after it, both with one scale, by one function of floats (fake quantization).
/// From it planner and kernels know that all values are integers times the scale. Only in float32, because in other
/// types the quotient would be rounded.
namespace moka::passes {

namespace {

using namespace ir;

struct Quantization {
  double scale = 0, zero = 0;
  bool operator==(const Quantization&) const = default;
};

/// The parameters of a quantize or dequantize with one scale and zero point for all elements.
std::optional<Quantization> quantization_of(const Op& op) {
  const auto scale = number_of(op, "scale");
  const auto zero = op.input("zero_point") == nullptr ? 0.0 : number_of(op, "zero_point");
  if (!scale || !zero || !(*scale > 0) || !std::isfinite(*scale)) return std::nullopt;
  return Quantization{*scale, *zero};
}

bool is_float32_tensor(const Value& v) { return v.type.is_tensor() && v.type.dtype() == DType::fp32; }

/// The same function of `x`, if it is already computed before `op` in its block.
Value* found(const Value& x, const Op& op, const Quantization& quantization, std::string_view dtype) {
  for (const Op* user : x.users()) {
    if (user->type_name() != "moka_fake_quantize" || user->parent() != op.parent()) continue;
    if (number_of(*user, "scale") != quantization.scale || number_of(*user, "zero_point") != quantization.zero)
      continue;
    // Operations are visited in order, so what exists already comes before `op`.
    if (text_of(*user, "dtype") == dtype) return user->output();
  }
  return nullptr;
}

Status fuse(PassContext& c, Op& op) {
  const Op* quantize = op.input("input")->producer();
  if (quantize == nullptr || quantize->type_name() != "quantize") return {};
  Value* x = quantize->input("input");
  const auto quantization = quantization_of(op);
  if (!quantization || quantization_of(*quantize) != quantization || !is_float32_tensor(*x) ||
      !is_float32_tensor(*op.output()))
    return {};
  const std::string_view dtype = text_of(*quantize, "output_dtype");
  Value* y = found(*x, op, *quantization, dtype);
  if (y == nullptr) {
    Builder before = Builder::before(c.table, op);
    y = MOKA_TRY(before.op("moka_fake_quantize",
                           {{"x", x},
                            {"scale", static_cast<float>(quantization->scale)},
                            {"zero_point", static_cast<int32_t>(quantization->zero)},
                            {"dtype", std::string(dtype)}},
                           op.name));
    take_name(*y, *op.output());
  }
  c.remark(cat(quantize->name, " and ", op.name, " into one function"));
  replace_and_erase(op, y);
  return {};
}

Status fuse_fake_quantize(PassContext& c) {
  Status status;
  for_each_op(c.function.body(), [&](Op& op) {
    if (status.ok() && op.type_name() == "dequantize" && op.epilogue.empty()) status = fuse(c, op);
  });
  return status;
}

}  // namespace

Pass pass_fuse_fake_quantize() { return {"fuse_fake_quantize", fuse_fake_quantize}; }

}  // namespace moka::passes
