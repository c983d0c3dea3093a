#include <cmath>

#include "passes/pass.h"
#include "passes/rewrite.h"

/// A quantize and the dequantize behind it, both of one scale, become one function of floats: planners and kernels see
/// from it that all values are integers times a number. In float32 only: elsewhere the quotient would be rounded.
namespace moka::passes {

namespace {

using namespace ir;

struct Codes {
  double scale = 0, zero = 0;
  bool operator==(const Codes&) const = default;
};

/// Of a quantize or dequantize with one scale and zero point for all elements.
std::optional<Codes> codes_of(const Op& op) {
  const auto scale = number_of(op, "scale");
  const auto zero = op.input("zero_point") == nullptr ? 0.0 : number_of(op, "zero_point");
  if (!scale || !zero || !(*scale > 0) || !std::isfinite(*scale)) return std::nullopt;
  return Codes{*scale, *zero};
}

bool is_float32(const Value& v) { return v.type.is_tensor() && v.type.dtype() == DType::fp32; }

/// The same function of `x` ahead of `op` in its block.
Value* found(const Value& x, const Op& op, const Codes& codes, std::string_view dtype) {
  for (const Op* user : x.users()) {
    if (user->type_name() != "moka_round_to_codes" || user->parent() != op.parent()) continue;
    if (number_of(*user, "scale") != codes.scale || number_of(*user, "zero_point") != codes.zero) continue;
    // Operations are visited in order: what is made already stands ahead.
    if (text_of(*user, "dtype") == dtype) return user->output();
  }
  return nullptr;
}

Status fuse(PassContext& c, Op& op) {
  const Op* quantize = op.input("input")->producer();
  if (quantize == nullptr || quantize->type_name() != "quantize") return {};
  Value* x = quantize->input("input");
  const auto codes = codes_of(op);
  if (!codes || codes_of(*quantize) != codes || !is_float32(*x) || !is_float32(*op.output())) return {};
  const std::string_view dtype = text_of(*quantize, "output_dtype");
  Value* y = found(*x, op, *codes, dtype);
  if (y == nullptr) {
    Builder before = Builder::before(c.table, op);
    y = MOKA_TRY(before.op("moka_round_to_codes",
                           {{"x", x},
                            {"scale", static_cast<float>(codes->scale)},
                            {"zero_point", static_cast<int32_t>(codes->zero)},
                            {"dtype", std::string(dtype)}},
                           op.name));
    take_name(*y, *op.output());
  }
  c.remark(cat(quantize->name, " and ", op.name, " into one function"));
  replace_and_erase(op, y);
  return {};
}

Status run(PassContext& c) {
  Status status;
  for_each_op(c.function.body(), [&](Op& op) {
    if (status.ok() && op.type_name() == "dequantize" && op.epilogue.empty()) status = fuse(c, op);
  });
  return status;
}

}  // namespace

Pass pass_fuse_codes() { return {"fuse_codes", run}; }

}  // namespace moka::passes
