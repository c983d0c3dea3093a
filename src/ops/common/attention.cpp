// SPDX-License-Identifier: Apache-2.0
#include "ops/common/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/common/product.h"
#include "ops/common/runs.h"

namespace moka::ops {

using namespace ir;

namespace {

/// Element strides of `s`, aligned to the right of `rank` dimensions; 0 where it is broadcast.
std::array<int64_t, kMaxRank> steps_to(const Shape& s, int rank) {
  std::array<int64_t, kMaxRank> to{};
  const auto strides = s.strides();
  for (int i = 0; i < s.rank(); ++i) {
    if (s[i] != 1) to[static_cast<size_t>(rank - s.rank() + i)] = strides[static_cast<size_t>(i)];
  }
  return to;
}

/// Softmax of one row in place.
void softmax(double* row, int64_t n) {
  double top = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < n; ++i) top = row[i] > top || std::isnan(row[i]) ? row[i] : top;
  for (int64_t i = 0; i < n; ++i) sum += row[i] = std::exp(row[i] - top);
  for (int64_t i = 0; i < n; ++i) row[i] /= sum;
}

}  // namespace

AttentionHead AttentionHeads::at(int64_t i) const {
  AttentionHead head = shared;
  MatrixSteps* const matrices[] = {&head.query, &head.key, &head.value, &head.mask, &head.out};
  for (int d = sizes.rank() - 1; d >= 0; --d) {
    for (size_t m = 0; m < 5; ++m) matrices[m]->first += i % sizes[d] * steps[m][static_cast<size_t>(d)];
    i /= sizes[d];
  }
  return head;
}

AttentionHeads heads_of_products(const OpCall& call, const Shape& out) {
  const Shape &q = call.shape("query"), &k = call.shape("key"), &v = call.shape("value");
  const int r = q.rank();
  const int64_t rows = q[r - 2], width = q[r - 1], keys = k[r - 2], made = v[r - 1];
  AttentionHeads heads;
  heads.sizes = Shape(out.dims().first(static_cast<size_t>(r - 2)));
  heads.steps = {steps_to(q, r), steps_to(k, r), steps_to(v, r), {}, steps_to(out, r)};
  if (call.has("attn_mask")) heads.steps[3] = steps_to(call.shape("attn_mask"), r);
  heads.shared = {rows, keys, width, made, 1 / std::sqrt(static_cast<double>(width))};
  heads.shared.query = heads.shared.key = {0, width, 1};
  heads.shared.value = heads.shared.out = {0, made, 1};
  heads.shared.mask = {0, heads.steps[3][static_cast<size_t>(r - 2)], heads.steps[3][static_cast<size_t>(r - 1)]};
  return heads;
}

Result<AttentionHeads> heads_of_views(const OpCall& call) {
  const Ints sizes = MOKA_TRY(call.ints("sizes"));
  AttentionHeads heads;
  heads.sizes = {sizes[0], sizes[1]};
  AttentionHead& head = heads.shared;
  head = {sizes[2], sizes[3], sizes[4], sizes[5], MOKA_TRY(call.number("scale"))};
  head.hidden = MOKA_TRY(call.number("hidden"));
  MatrixSteps* const matrices[] = {&head.query, &head.key, &head.value};
  constexpr std::string_view kSteps[] = {"query_steps", "key_steps", "value_steps"};
  for (size_t i = 0; i < 3; ++i) {
    const Ints s = MOKA_TRY(call.ints(kSteps[i]));
    *matrices[i] = {s[0], s[3], s[4]};
    heads.steps[i] = {s[1], s[2]};
  }
  if (call.has("attn_mask")) {
    const auto s = steps_to(call.shape("attn_mask"), 4);
    head.mask = {0, s[2], s[3]};
    heads.steps[3] = {s[0], s[1]};
  }
  const bool rows_first = MOKA_TRY(call.flag("rows_first"));
  head.out = {0, rows_first ? sizes[1] * head.made : head.made, 1};
  heads.steps[4] = {sizes[1] * head.rows * head.made, rows_first ? head.made : head.rows * head.made};
  return heads;
}

void attend(const AttentionHead& h, const ir::TensorView& query, const ir::TensorView& key, const ir::TensorView& value,
            const ir::TensorView* mask, const ir::TensorView& out) {
  constexpr int64_t kBlock = 64;
  std::vector<double> scores(static_cast<size_t>(std::min(h.rows, kBlock) * h.keys));
  const MatrixSteps &q = h.query, &k = h.key, &v = h.value, &m = h.mask, &y = h.out;
  for (int64_t row = 0; row < h.rows; row += kBlock) {
    const int64_t some = std::min(kBlock, h.rows - row);
    blocked_product<double>(
        some, h.keys, h.width,
        [&](int64_t i, int64_t e, int64_t n, double* to) {
          load_run(query, q.first + (row + i) * q.row + e * q.column, q.column, n, to);
        },
        [&](int64_t e, int64_t j, int64_t n, double* to) {
          load_run(key, k.first + j * k.row + e * k.column, k.row, n, to);
        },
        [&](int64_t i, int64_t j, int64_t n, double* c) {
          double* to = scores.data() + i * h.keys + j;
          for (int64_t s = 0; s < n; ++s) to[s] = c[s] * h.scale;
          if (mask == nullptr) return;
          for (int64_t s = 0; s < n; ++s) {
            const double bias = ir::load_f64(*mask, m.first + (row + i) * m.row + (j + s) * m.column);
            if (mask->dtype == ir::DType::boolean) {
              if (bias == 0) to[s] = h.hidden;
            } else {
              to[s] += bias;
            }
          }
        });
    for (int64_t i = 0; i < some; ++i) softmax(scores.data() + i * h.keys, h.keys);
    blocked_product<double>(
        some, h.made, h.keys,
        [&](int64_t i, int64_t s, int64_t n, double* to) { std::copy_n(scores.data() + i * h.keys + s, n, to); },
        [&](int64_t s, int64_t j, int64_t n, double* to) {
          load_run(value, v.first + s * v.row + j * v.column, v.column, n, to);
        },
        [&](int64_t i, int64_t j, int64_t n, double* c) {
          store_run(out, y.first + (row + i) * y.row + j * y.column, y.column, n, c);
        });
  }
}

}  // namespace moka::ops
