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

/// Element strides of `s`, aligned right to `rank` dimensions; 0 where it repeats.
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

void each_head_of_products(const OpCall& call, const Shape& out, const HeadFn& fn) {
  const Shape &q = call.shape("query"), &k = call.shape("key"), &v = call.shape("value");
  const bool masked = call.has("attn_mask");
  const int r = q.rank();
  const int64_t rows = q[r - 2], width = q[r - 1], keys = k[r - 2], made = v[r - 1];
  const auto qs = steps_to(q, r), ks = steps_to(k, r), vs = steps_to(v, r);
  const auto ms = masked ? steps_to(call.shape("attn_mask"), r) : std::array<int64_t, kMaxRank>{};
  const auto row_dim = static_cast<size_t>(r - 2), key_dim = static_cast<size_t>(r - 1);
  const int64_t batches = out.count(0, r - 2);
  for (int64_t b = 0; b < batches; ++b) {
    AttentionHead head{rows,          keys,          width,       made, 1 / std::sqrt(static_cast<double>(width)),
                       {0, width, 1}, {0, width, 1}, {0, made, 1}};
    head.mask = {0, ms[row_dim], ms[key_dim]};
    head.out = {b * rows * made, made, 1};
    int64_t rest = b;
    for (int i = r - 3; i >= 0; --i) {
      const auto d = static_cast<size_t>(i);
      const int64_t at = rest % out[i];
      rest /= out[i];
      head.query.first += at * qs[d];
      head.key.first += at * ks[d];
      head.value.first += at * vs[d];
      head.mask.first += at * ms[d];
    }
    fn(head);
  }
}

Status each_head_of_views(const OpCall& call, const HeadFn& fn) {
  const Ints sizes = MOKA_TRY(call.ints("sizes"));
  const int64_t batch = sizes[0], heads = sizes[1];
  AttentionHead head{sizes[2], sizes[3], sizes[4], sizes[5], MOKA_TRY(call.number("scale"))};
  const bool rows_first = MOKA_TRY(call.flag("rows_first"));
  struct {
    MatrixSteps AttentionHead::*matrix;
    int64_t batch = 0, head = 0;
  } operands[] = {{&AttentionHead::query},
                  {&AttentionHead::key},
                  {&AttentionHead::value},
                  {&AttentionHead::mask},
                  {&AttentionHead::out}};
  constexpr std::string_view kSteps[] = {"query_steps", "key_steps", "value_steps"};
  for (size_t i = 0; i < 3; ++i) {
    const Ints s = MOKA_TRY(call.ints(kSteps[i]));
    head.*operands[i].matrix = {s[0], s[3], s[4]};
    operands[i].batch = s[1];
    operands[i].head = s[2];
  }
  if (call.has("attn_mask")) {
    const auto s = steps_to(call.shape("attn_mask"), 4);
    head.mask = {0, s[2], s[3]};
    operands[3].batch = s[0];
    operands[3].head = s[1];
  }
  head.out = {0, rows_first ? heads * head.made : head.made, 1};
  operands[4].batch = heads * head.rows * head.made;
  operands[4].head = rows_first ? head.made : head.rows * head.made;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      AttentionHead at = head;
      for (const auto& o : operands) (at.*o.matrix).first += b * o.batch + h * o.head;
      fn(at);
    }
  return {};
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
              if (bias == 0) to[s] = -std::numeric_limits<double>::infinity();
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
