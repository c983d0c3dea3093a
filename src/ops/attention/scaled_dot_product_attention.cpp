// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/attention.h"
#include "ops/common/common.h"
#include "ops/common/ranks.h"

namespace moka::ops {

namespace {

Shape batch_of(const Shape& s) { return Shape(s.dims().first(static_cast<size_t>(s.rank() - 2))); }

Result<std::vector<Type>> infer_attention(const OpCall& call) {
  const DType dtype = call.dtype("query");
  if (any_unranked(call, {"query", "key", "value", "attn_mask"})) return one(Type::unranked(dtype));
  const Shape& q = call.shape("query");
  const Shape& k = call.shape("key");
  const Shape& v = call.shape("value");
  const int r = q.rank();
  if (r < 3) return call.error("query", "rank 3 or more", cat(q));
  if (k.rank() != r) return call.error("key", cat("rank ", r, " as query"), cat(k));
  if (v.rank() != r) return call.error("value", cat("rank ", r, " as query"), cat(v));
  if (q[r - 1] == 0) return call.error("query", "a last dimension of 1 or more", cat(q));
  if (!may_equal(q[r - 1], k[r - 1])) return call.error("key", cat("last dimension ", q[r - 1], " as query"), cat(k));
  if (!may_equal(k[r - 2], v[r - 2])) return call.error("value", cat(k[r - 2], " rows as key"), cat(v));
  const Result<Shape> pairs = broadcast(batch_of(k), batch_of(v));
  if (!pairs) return call.error("value", cat("batch dimensions that broadcast with those of key, ", k), cat(v));
  const Result<Shape> batch = broadcast(batch_of(q), *pairs);
  if (!batch)
    return call.error("query", cat("batch dimensions that broadcast with those of key and value, ", *pairs), cat(q));
  Shape out = *batch;
  out.push_back(q[r - 2]);
  if (call.has("attn_mask")) {
    const Shape& mask = call.shape("attn_mask");
    const int64_t keys = known_of(k[r - 2], v[r - 2]);
    Shape scores = out;
    scores.push_back(keys);
    bool fits = mask.rank() >= 1 && mask.rank() <= r;
    for (int i = 0; fits && i < mask.rank(); ++i) {
      const int64_t m = mask[i], s = scores[r - mask.rank() + i];
      fits = m == 1 || may_equal(m, s);
    }
    if (!fits) return call.error("attn_mask", cat("a shape that broadcasts to ", scores), cat(mask));
  }
  out.push_back(v[r - 1]);
  return one(Type::tensor(dtype, out));
}

Status attention_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  const TensorView* mask = call.has("attn_mask") ? &call.in("attn_mask") : nullptr;
  const AttentionHeads heads = heads_of_products(call, out[0].shape);
  for (int64_t i = 0; i < heads.count(); ++i)
    attend(heads.at(i), call.in("query"), call.in("key"), call.in("value"), mask, out[0]);
  return {};
}

void scaled_dot_product_attention_gradient(Gradient& g) {
  const Term q = g.in("query"), k = g.in("key"), v = g.in("value");
  const double scale = 1 / std::sqrt(static_cast<double>(q.shape()[q.rank() - 1]));
  Term scores = g.product(q, false, k, true) * scale;
  if (g.has("attn_mask")) {
    const bool is_float = ir::is_float(g.op().input("attn_mask")->type.dtype());
    scores = is_float ? scores + g.in("attn_mask") : select(g.in("attn_mask"), scores, -INFINITY);
  }
  const Term p = g.call("softmax", {{"x", scores.value()}, {"axis", -1}});
  const Term dp = g.product(g.dy(), false, v, true), shares = dp * p;
  const Term ds = shares - p * g.sum(shares, {-1}, true);
  g.set("query", g.product(ds, false, k, false) * scale);
  g.set("key", g.product(ds, true, q, false) * scale);
  g.set("value", g.product(p, true, g.dy(), false));
  if (g.wants("attn_mask")) g.set("attn_mask", ds);
}

}  // namespace

OpDef define_scaled_dot_product_attention() {
  return OpBuilder(
             "scaled_dot_product_attention",
             "softmax(query key^T / sqrt(width) + mask) value. A boolean mask tells which keys take part. Rows without "
             "any are NaN.",
             Opset::ios18)
      .type_var("T", kF16F32)
      .type_var("M", any_of(DType::boolean, DType::fp16, DType::fp32))
      .in("query", "T")
      .in("key", "T")
      .in("value", "T")
      .in("attn_mask", "M")
      .optional()
      .infer(infer_attention)
      .reference(attention_reference)
      .traits(Trait::costly)
      .note(
          "The scale is 1 / sqrt(last dimension of query); a float mask is added after it, a boolean mask sets scores "
          "to -inf "
          "where it is false.",
          "coremltools' definition")
      .note("A row in which no key takes part is NaN.",
            "coremltools' definition, by which it is the softmax of -inf alone; PyTorch gives zeros since 2.5")
      .note("Batch dimensions broadcast. The mask may have a lower rank; its last dimensions are aligned.",
            "NumPy's rule; coremltools' iOS18 test_transformers.py")
      .note("The result of a row does not depend on the number of batches.", "coremltools issue 2650")
      .gradient(scaled_dot_product_attention_gradient)
      .build();
}

}  // namespace moka::ops
