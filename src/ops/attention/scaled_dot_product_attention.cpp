#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/common/common.h"
#include "ops/common/product.h"
#include "ops/common/ranks.h"
#include "ops/common/runs.h"

namespace moka::ops {

namespace {

Shape batch_of(const Shape& s) { return Shape(s.dims().first(static_cast<size_t>(s.rank() - 2))); }

/// Element strides of `s`, aligned right to `rank` dimensions; 0 where it repeats.
std::array<int64_t, kMaxRank> steps_to(const Shape& s, int rank) {
  std::array<int64_t, kMaxRank> to{};
  const auto strides = s.strides();
  for (int i = 0; i < s.rank(); ++i) {
    if (s[i] != 1) to[static_cast<size_t>(rank - s.rank() + i)] = strides[static_cast<size_t>(i)];
  }
  return to;
}

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
  Shape out = MOKA_TRY(broadcast(batch_of(q), MOKA_TRY(broadcast(batch_of(k), batch_of(v)))));
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

/// Softmax of one row in place.
void softmax(double* row, int64_t n) {
  double top = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < n; ++i) top = row[i] > top || std::isnan(row[i]) ? row[i] : top;
  for (int64_t i = 0; i < n; ++i) sum += row[i] = std::exp(row[i] - top);
  for (int64_t i = 0; i < n; ++i) row[i] /= sum;
}

Status attention_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  const TensorView& q = call.in("query");
  const TensorView& k = call.in("key");
  const TensorView& v = call.in("value");
  const TensorView* mask = call.has("attn_mask") ? &call.in("attn_mask") : nullptr;
  const TensorView& y = out[0];
  const int r = q.shape.rank();
  const int64_t rows = q.shape[r - 2], width = q.shape[r - 1], keys = k.shape[r - 2], made = v.shape[r - 1];
  const auto qs = steps_to(q.shape, r), ks = steps_to(k.shape, r), vs = steps_to(v.shape, r);
  const auto ms = mask != nullptr ? steps_to(mask->shape, r) : std::array<int64_t, kMaxRank>{};
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  constexpr int64_t kBlock = 64;
  std::vector<double> scores(static_cast<size_t>(std::min(rows, kBlock) * keys));
  const int64_t batches = y.shape.count(0, r - 2);
  for (int64_t b = 0; b < batches; ++b) {
    int64_t rest = b, q0 = 0, k0 = 0, v0 = 0, m0 = 0;
    for (int i = r - 3; i >= 0; --i) {
      const auto d = static_cast<size_t>(i);
      const int64_t at = rest % y.shape[i];
      rest /= y.shape[i];
      q0 += at * qs[d];
      k0 += at * ks[d];
      v0 += at * vs[d];
      m0 += at * ms[d];
    }
    const auto row_dim = static_cast<size_t>(r - 2), key_dim = static_cast<size_t>(r - 1);
    for (int64_t row = 0; row < rows; row += kBlock) {
      const int64_t some = std::min(kBlock, rows - row);
      blocked_product<double>(
          some, keys, width,
          [&](int64_t i, int64_t e, int64_t n, double* to) { load_run(q, q0 + (row + i) * width + e, 1, n, to); },
          [&](int64_t e, int64_t j, int64_t n, double* to) { load_run(k, k0 + j * width + e, width, n, to); },
          [&](int64_t i, int64_t j, int64_t n, double* c) {
            double* to = scores.data() + i * keys + j;
            for (int64_t s = 0; s < n; ++s) to[s] = c[s] * scale;
            if (mask == nullptr) return;
            const int64_t m = m0 + (row + i) * ms[row_dim];
            for (int64_t s = 0; s < n; ++s) {
              const double bias = load_f64(*mask, m + (j + s) * ms[key_dim]);
              if (mask->dtype == DType::boolean) {
                if (bias == 0) to[s] = -std::numeric_limits<double>::infinity();
              } else {
                to[s] += bias;
              }
            }
          });
      for (int64_t i = 0; i < some; ++i) softmax(scores.data() + i * keys, keys);
      blocked_product<double>(
          some, made, keys,
          [&](int64_t i, int64_t s, int64_t n, double* to) { std::copy_n(scores.data() + i * keys + s, n, to); },
          [&](int64_t s, int64_t j, int64_t n, double* to) { load_run(v, v0 + s * made + j, 1, n, to); },
          [&](int64_t i, int64_t j, int64_t n, double* c) { store_run(y, (b * rows + row + i) * made + j, 1, n, c); });
    }
  }
  return {};
}

}  // namespace

OpDef define_scaled_dot_product_attention() {
  return OpBuilder(
             "scaled_dot_product_attention",
             "softmax(query key^T / sqrt(width) + mask) value. A boolean mask says which keys take part; rows without "
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
      .note(
          "The scale is 1 / sqrt(last dimension of query); a float mask is added behind it, a boolean mask puts -inf "
          "where it is false.",
          "coremltools' definition")
      .note("A row in which no key takes part is NaN.",
            "coremltools' definition, whose softmax is of -inf alone; PyTorch gives zeros since 2.5")
      .note("Batch dimensions broadcast; the mask may have a lower rank and is aligned at the end.",
            "NumPy's rule; coremltools' iOS18 test_transformers.py")
      .note("Any number of batches gives the same rows.", "coremltools issue 2650")
      .build();
}

}  // namespace moka::ops
