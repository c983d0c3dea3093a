// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/common/attention.h"
#include "ops/common/common.h"
#include "ops/common/gradients.h"
#include "ops/common/ranks.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

constexpr int64_t kTooLarge = int64_t{1} << 31;

/// Checks that steps stay within the tensor.
Status check_steps(const OpCall& call, std::string_view param, std::string_view steps_param, const Ints& sizes) {
  const Ints steps = MOKA_TRY(call.ints(steps_param));
  if (steps.size() != 5) return call.error(steps_param, "5 entries", cat(steps.size()));
  for (int64_t s : steps)
    if (s < 0) return call.error(steps_param, "entries of at least 0", cat(s));
  // Rows must not overlap, so that a tensor of few elements cannot have many rows or columns.
  for (int i : {2, 3})
    if (sizes[i] > 1 && steps[i + 1] == 0) return call.error(steps_param, "rows and columns apart", "a step of 0");
  const Type& type = call.type(param);
  if (!type.is_concrete()) return {};
  int64_t left = type.shape().count() - 1 - steps[0];
  for (int i = 0; i < 4 && left >= 0; i++) left -= (sizes[i] - 1) * steps[i + 1];
  if (left < 0) return call.error(steps_param, cat("steps that stay within ", type.shape()), "more");
  return {};
}

Result<std::vector<Type>> infer_moka_attention(const OpCall& call) {
  const Ints sizes = MOKA_TRY(call.ints("sizes"));
  if (sizes.size() != 6) return call.error("sizes", "6 entries", cat(sizes.size()));
  for (int64_t s : sizes)
    if (s < 1 || s >= kTooLarge) return call.error("sizes", "entries from 1 to 2^31 - 1", cat(s));
  const int64_t batch = sizes[0], heads = sizes[1], rows = sizes[2], keys = sizes[3], width = sizes[4], made = sizes[5];
  MOKA_TRY(check_steps(call, "query", "query_steps", {batch, heads, rows, width}));
  MOKA_TRY(check_steps(call, "key", "key_steps", {batch, heads, keys, width}));
  MOKA_TRY(check_steps(call, "value", "value_steps", {batch, heads, keys, made}));
  if (call.has("attn_mask") && call.type("attn_mask").is_ranked()) {
    const Shape& mask = call.shape("attn_mask");
    const Shape scores{batch, heads, rows, keys};
    bool fits = mask.rank() >= 1 && mask.rank() <= 4;
    for (int i = 0; fits && i < mask.rank(); ++i)
      fits = mask[i] == 1 || may_equal(mask[i], scores[4 - mask.rank() + i]);
    if (!fits) return call.error("attn_mask", cat("a shape that broadcasts to ", scores), cat(mask));
  }
  const bool rows_first = MOKA_TRY(call.flag("rows_first"));
  MOKA_TRY(call.number("hidden"));
  return tensor_result(call, call.dtype("query"),
                       rows_first ? Shape{batch, rows, heads, made} : Shape{batch, heads, rows, made});
}

Status moka_attention_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView* mask = call.has("attn_mask") ? &call.in("attn_mask") : nullptr;
  const AttentionHeads heads = MOKA_TRY(heads_of_views(call));
  for (int64_t i = 0; i < heads.count(); ++i)
    attend(heads.at(i), call.in("query"), call.in("key"), call.in("value"), mask, out[0]);
  return {};
}

/// The matrices [batch, heads, rows, columns] of a parameter, which may be anywhere in its tensor.
class HeadsOf {
 public:
  HeadsOf(Gradient& g, std::string_view param, const Shape& shape)
      : g_(g), param_(param), shape_(shape), flat_{g.in(param).shape().count()} {
    const Ints steps = g.ints(cat(param, "_steps"));
    if (g.has_failed()) return;
    const auto place = [&](int64_t i) {
      int64_t at = steps[0];
      for (int axis = 3; axis >= 0; i /= shape_[axis], --axis) at += i % shape_[axis] * steps[axis + 1];
      return at;
    };
    places_ = int32s(g, shape_, place);
    is_whole_ = shape_.count() == flat_[0];
    for (int64_t i = 0; is_whole_ && i < flat_[0]; ++i) is_whole_ = load_i64(places_.view(), i) == i;
  }

  Term read() const {
    if (is_whole_) return g_.reshape(g_.in(param_), shape_);
    return g_.call("gather", {{"x", g_.reshape(g_.in(param_), flat_).value()}, {"indices", places_}, {"axis", 0}});
  }
  void set(Term gradient) const {
    if (!g_.wants(param_)) return;
    Term all = gradient;
    if (!is_whole_)
      all = g_.call("scatter", {{"data", g_.fill(flat_, 0).value()},
                                {"indices", places_},
                                {"updates", gradient.value()},
                                {"axis", 0},
                                {"mode", "add"}});
    g_.set(param_, g_.reshape(all, g_.in(param_).shape()));
  }

 private:
  Gradient& g_;
  std::string param_;
  Shape shape_, flat_;
  Tensor places_;
  bool is_whole_ = false;
};

void moka_attention_gradient(Gradient& g) {
  const Ints sizes = g.ints("sizes");
  const bool rows_first = g.flag("rows_first");
  if (g.has_failed()) return;
  const int64_t batch = sizes[0], heads = sizes[1], rows = sizes[2], keys = sizes[3], width = sizes[4], made = sizes[5];
  const HeadsOf query(g, "query", {batch, heads, rows, width}), key(g, "key", {batch, heads, keys, width}),
      value(g, "value", {batch, heads, keys, made});
  const double scale = g.number("scale");
  const Term q = query.read(), k = key.read(), v = value.read();
  Term scores = g.product(q, false, k, true) * scale;
  const bool has_mask = g.has("attn_mask"),
             selects = has_mask && g.op().input("attn_mask")->type.dtype() == DType::boolean;
  if (has_mask) scores = selects ? select(g.in("attn_mask"), scores, g.number("hidden")) : scores + g.in("attn_mask");
  const Term p = g.call("softmax", {{"x", scores.value()}, {"axis", -1}});
  const Term dy = rows_first ? g.transpose(g.dy(), {0, 2, 1, 3}) : g.dy();
  const Term shares = g.product(dy, false, v, true) * p;
  Term ds = shares - p * g.sum(shares, {-1}, true);
  // A finite score of a hidden key has a share in the result, but does not depend on the key.
  if (selects) ds = select(g.in("attn_mask"), ds, 0);
  query.set(g.product(ds, false, k, false) * scale);
  key.set(g.product(ds, true, q, false) * scale);
  value.set(g.product(p, true, dy, false));
  if (g.wants("attn_mask")) g.set("attn_mask", ds);
}

}  // namespace

OpDef define_moka_attention() {
  return OpBuilder(
             "moka_attention",
             "softmax(query key^T * scale + mask) value for many heads, which may be anywhere in their tensors. sizes: "
             "batch, heads, rows of the query, rows of the key, columns of both, columns of the value. Steps: the "
             "position of the first element, then the distances between batches, heads, rows and columns. The mask "
             "broadcasts to [batch, heads, rows, keys]. The result is [batch, rows, heads, columns] with rows_first, "
             "else [batch, heads, rows, columns]. Keys and values may be less precise than the query. Passes make it "
             "of "
             "the operations that converters write.")
      .type_var("T", kF16F32)
      .type_var("K", kF16F32)
      .type_var("V", kF16F32)
      .type_var("M", any_of(DType::boolean, DType::fp16, DType::fp32))
      .in("query", "T")
      .in("key", "K")
      .in("value", "V")
      .in("attn_mask", "M")
      .optional()
      .constant("sizes", kI32)
      .constant("query_steps", kI32)
      .constant("key_steps", kI32)
      .constant("value_steps", kI32)
      .constant("scale", only(DType::fp32))
      .constant("rows_first", kBool)
      .constant("hidden", only(DType::fp32))
      .or_else(Tensor::scalar(DType::fp32, -std::numeric_limits<double>::infinity()))
      .infer(infer_moka_attention)
      .reference(moka_attention_reference)
      .traits(Trait::costly)
      .gradient(moka_attention_gradient)
      .build();
}

}  // namespace moka::ops
