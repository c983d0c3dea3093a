// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "ir/gradient.h"
#include "ops/common/addend.h"
#include "ops/common/common.h"
#include "ops/common/product.h"
#include "ops/common/ranks.h"
#include "ops/common/runs.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_linear(const OpCall& call) {
  const DType dtype = call.dtype("x");
  if (any_unranked(call, {"x", "weight"})) return one(Type::unranked(dtype));
  Shape out = call.shape("x");
  const Shape& weight = call.shape("weight");
  if (out.rank() < 1) return call.error("x", "rank 1 or more", cat("rank ", out.rank()));
  if (weight.rank() != 2) return call.error("weight", "rank 2, [out, in]", cat(weight));
  if (!may_equal(out[out.rank() - 1], weight[1])) {
    return call.error("weight", cat("[out, ", out[out.rank() - 1], "], with the last dimension of x"), cat(weight));
  }
  if (call.has("bias") && call.type("bias").is_ranked()) {
    const Shape& bias = call.shape("bias");
    if (bias.rank() != 1 || !may_equal(bias[0], weight[0]))
      return call.error("bias", cat("shape [", weight[0], "]"), cat(bias));
  }
  out[out.rank() - 1] = weight[0];
  return one(Type::tensor(dtype, out));
}

template <class Acc>
void run_linear(const OpCall& call, const TensorView& y) {
  const TensorView& x = call.in("x");
  const TensorView& weight = call.in("weight");
  const TensorView* bias = call.has("bias") ? &call.in("bias") : nullptr;
  const int64_t made = weight.shape[0], depth = weight.shape[1], rows = x.shape.count(0, x.shape.rank() - 1);
  auto add_bias = [&](int64_t i, int64_t n, Acc* c) {
    if (bias == nullptr) return;
    Acc b;
    load_run(*bias, i, 1, 1, &b);
    for (int64_t q = 0; q < n; ++q) {
      if constexpr (std::is_integral_v<Acc>) {
        c[q] = static_cast<Acc>(static_cast<uint64_t>(c[q]) + static_cast<uint64_t>(b));
      } else {
        c[q] += b;
      }
    }
  };
  blocked_product<Acc>(
      made, rows, depth, [&](int64_t i, int64_t k, int64_t n, Acc* to) { load_run(weight, i * depth + k, 1, n, to); },
      [&](int64_t k, int64_t j, int64_t n, Acc* to) { load_run(x, j * depth + k, depth, n, to); },
      [&](int64_t i, int64_t j, int64_t n, Acc* c) {
        add_bias(i, n, c);
        store_run(y, j * made + i, made, n, c);
      });
}

Status linear_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  if (is_integer(out[0].dtype) && is_integer(call.dtype("weight"))) {
    run_linear<int64_t>(call, out[0]);
  } else {
    run_linear<double>(call, out[0]);
  }
  return {};
}

void linear_gradient(Gradient& g) {
  const Term weight = g.in("weight"), x = g.x();
  const int64_t made = weight.shape()[0], depth = weight.shape()[1], rows = x.shape().count(0, x.rank() - 1);
  const Term dy = g.reshape(g.dy(), {rows, made});
  if (g.wants("x")) g.set("x", g.reshape(g.product(dy, false, weight, false), x.shape()));
  if (g.wants("weight")) g.set("weight", g.product(dy, true, g.reshape(x, {rows, depth}), false));
  if (g.wants("bias")) g.set("bias", g.sum(dy, {0}, false));
}

}  // namespace

OpDef define_linear() {
  constexpr DTypes domain = any_of(DType::fp16, DType::fp32, DType::int32);
  return with_addend(
      OpBuilder("linear", "x times the transpose of weight, plus bias: the last dimension of x becomes weight's first.")
          .type_var("T", domain)
          .in("x", "T")
          .constant("weight", "T")
          .constant("bias", "T")
          .optional()
          .infer(infer_linear)
          .reference(linear_reference)
          .traits(Trait::costly)
          .at(Opset::ios17,
              [](OpVersion& v) {
                v.set_domain("U", domain);
                v.edit("weight").type_var = "U";
                v.edit("bias").type_var = "U";
              })
          .note("Integers are summed in 64 bits and wrap.", "numpy.matmul")
          .gradient(linear_gradient)
          .build());
}

}  // namespace moka::ops
