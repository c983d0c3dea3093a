// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ir/affine.h"
#include "ops/common/common.h"

namespace moka::ops {

namespace {

constexpr DTypes kScales = any_of(DType::fp16, DType::fp32, DType::fp64);

Result<std::vector<Type>> infer_moka_channel_affine(const OpCall& call) {
  const int64_t channels = MOKA_TRY(call.integer("channels"));
  if (channels < 1) return call.error("channels", "at least 1", cat(channels));
  const std::string_view kind = MOKA_TRY(call.text("kind"));
  const bool is_norm = kind == "batch_norm";
  if (is_norm ? !call.has("mean") || !call.has("variance")
              : !call.has("numbers") || (kind == "affine" && !call.has("beta")))
    return call.error(is_norm ? "mean" : "numbers", "values", "nothing");
  if (call.has("scale") != call.has("shift")) return call.error("shift", "both or neither of scale and shift", "one");
  for (const char* param : {"numbers", "mean", "variance", "gamma", "beta", "scale", "shift"}) {
    if (!call.has(param)) continue;
    const Type& t = call.type(param);
    const bool may_be_one = !is_norm || std::string_view(param).starts_with("s");
    if (!t.is_concrete() || (t.shape().count() != channels && !(may_be_one && t.shape().count() == 1)))
      return call.error(param, cat("a number for each of ", channels, " channels"), cat(t));
  }
  const Type made = Type::tensor(DType::fp64, Shape{channels});
  return std::vector<Type>{made, made};
}

std::vector<double> numbers_of(const OpCall& call, std::string_view param, size_t count, double missing) {
  if (!call.has(param)) return std::vector<double>(count, missing);
  const TensorView& v = call.in(param);
  std::vector<double> out(static_cast<size_t>(v.count()));
  for (size_t i = 0; i < out.size(); i++) out[i] = load_f64(v, static_cast<int64_t>(i));
  return out;
}

Status moka_channel_affine_reference(const OpCall& call, std::span<const TensorView> out) {
  const auto n = static_cast<size_t>(MOKA_TRY(call.integer("channels")));
  const std::string_view kind = MOKA_TRY(call.text("kind"));
  ir::Affine a;
  if (kind == "batch_norm")
    a = affine_of_norm(numbers_of(call, "mean", n, 0), numbers_of(call, "variance", n, 1),
                       numbers_of(call, "gamma", n, 1), numbers_of(call, "beta", n, 0),
                       MOKA_TRY(call.number("epsilon")));
  else if (kind == "affine")
    a = {numbers_of(call, "numbers", 1, 1), numbers_of(call, "beta", 1, 0)};
  else
    a = affine_of_numbers(kind == "sub_from" ? "sub" : kind, numbers_of(call, "numbers", 1, 0), kind == "sub_from");
  if (call.has("scale")) a = ir::Affine{numbers_of(call, "scale", 1, 1), numbers_of(call, "shift", 1, 0)}.then(a);
  for (size_t i = 0; i < n; i++) {
    out[0].as<double>()[i] = ir::Affine::at(a.scale, i);
    out[1].as<double>()[i] = ir::Affine::at(a.shift, i);
  }
  return {};
}

}  // namespace

OpDef define_moka_channel_affine() {
  return OpBuilder("moka_channel_affine",
                   "The scale and the shift per channel of a batch norm or an operation with one number per channel, "
                   "after those of an earlier operation. A pass makes it where parameters are among the numbers.",
                   Opset::ios13)
      .constant("kind", kString)
      .one_of({"batch_norm", "add", "mul", "sub", "sub_from", "real_div", "affine"})
      .constant("channels", kI32)
      .in("numbers", kScales)
      .optional()
      .in("mean", kScales)
      .optional()
      .in("variance", kScales)
      .optional()
      .in("gamma", kScales)
      .optional()
      .in("beta", kScales)
      .optional()
      .constant("epsilon", only(DType::fp64))
      .or_else(Tensor::scalar(DType::fp64, 1e-5))
      .in("scale", only(DType::fp64))
      .optional()
      .in("shift", only(DType::fp64))
      .optional()
      .infer(infer_moka_channel_affine)
      .reference(moka_channel_affine_reference)
      .note(
          "Computed in float64. `sub_from`: the number minus the value. `affine`: `numbers` are scales, `beta` shifts.",
          "batch_norm, add, mul, sub and real_div")
      .build();
}

}  // namespace moka::ops
