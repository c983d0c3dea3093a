// SPDX-License-Identifier: Apache-2.0
#include "ops/common/attention.h"

#include <cmath>
#include <limits>

#include "base/half.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/gemm.h"
#include "devices/cpu/vector/loops.h"
#include "kernel/parallel.h"

namespace moka::devices::cpu {

namespace {

using ops::AttentionHead;
using ops::MatrixSteps;
using vector::Binary;
using vector::Gemm;
using vector::loops;
using vector::Unary;

constexpr int64_t kKeys = 512;     // keys per block: scores are computed and used up block by block
constexpr int64_t kTile = 24;      // query rows per block
constexpr int64_t kFewKeys = 64;   // fp16 keys widened at a time when they are not packed
constexpr int64_t kFewRows = 4;    // query rows for which packing keys and values costs more than it saves
constexpr int64_t kUnitRows = 64;  // least query rows per thread
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// All keys or all values, in fp32 or fp16.
struct Matrices {
  const std::byte* data = nullptr;
  bool halves = false;
};

/// Some of their rows, in fp32.
struct Matrix {
  const float* data;
  int64_t row, column;
};

Matrix rows_of(const Matrices& all, const MatrixSteps& at, int64_t first, int64_t n, int64_t width, float* scratch) {
  const int64_t begin = at.first + first * at.row;
  if (!all.halves) return {reinterpret_cast<const float*>(all.data) + begin, at.row, at.column};
  const auto* from = reinterpret_cast<const uint16_t*>(all.data) + begin;
  if (at.column == 1 && at.row == width) {
    half_to_float(from, scratch, static_cast<size_t>(n * width));
  } else if (at.row == 1 && at.column != 1) {
    for (int64_t j = 0; j < width; j++) half_to_float(from + j * at.column, scratch + j * n, static_cast<size_t>(n));
    return {scratch, 1, n};
  } else {
    for (int64_t i = 0; i < n; i++, from += at.row)
      if (at.column == 1)
        half_to_float(from, scratch + i * width, static_cast<size_t>(width));
      else
        for (int64_t j = 0; j < width; j++) scratch[i * width + j] = half::to_float(from[j * at.column]);
  }
  return {scratch, width, 1};
}

/// Offsets into a thread's scratch memory, in floats.
struct ScratchOffsets {
  int64_t keys = 0, values = 0, wide = 0, query = 0, scores = 0, tops = 0, sums = 0, end = 0;
};

/// The settings of all heads, and the data.
struct Attention {
  AttentionHead h;
  const Gemm *of_keys = nullptr, *of_values = nullptr;
  int64_t tile = 0;  ///< query rows per block of scores
  ScratchOffsets at;
  bool few = false;
  ir::DType mask_type = ir::DType::none;

  const float* query = nullptr;
  Matrices key, value;
  const void* mask = nullptr;
  float* out = nullptr;

  /// Adds the mask to the scores of query row `row` and keys [first, first + n).
  void add_mask(const AttentionHead& from, int64_t row, int64_t first, float* line, int64_t n) const {
    const int64_t at = from.mask.first + row * h.mask.row + first * h.mask.column;
    const int step = static_cast<int>(h.mask.column);
    const auto hidden = static_cast<float>(h.hidden);
    if (mask_type == ir::DType::boolean)
      loops().select(static_cast<const uint8_t*>(mask) + at, step, line, 1, &hidden, 0, line, n);
    else if (mask_type == ir::DType::fp32)
      loops().binary(Binary::add, line, 1, static_cast<const float*>(mask) + at, step, line, n);
  }

  /// Copies query rows, multiplied by the scale.
  void load_query(const AttentionHead& from, int64_t row, int64_t rows, float* to) const {
    const auto scale = static_cast<float>(h.scale);
    for (int64_t i = 0; i < rows; i++, to += h.width) {
      const float* q = query + from.query.first + (row + i) * h.query.row;
      if (h.query.column == 1)
        loops().unary(Unary::linear, q, to, h.width, scale, 0);
      else
        for (int64_t j = 0; j < h.width; j++) to[j] = q[j * h.query.column] * scale;
    }
  }

  /// One step of online softmax: turns the scores of another block of keys into weights relative to the largest score
  /// so far, `top`. When `top` grows, the sum and the result so far are scaled down to match.
  void add_block(float* line, int64_t n, float& top, float& sum, float* so_far) const {
    const float before = top, added = loops().softmax_block(line, n, &top);
    if (top != before && sum != 0) {
      const float factor = std::exp(before - top);
      sum *= factor;
      loops().unary(Unary::linear, so_far, so_far, h.made, factor, 0);
    }
    sum += added;
  }

  void run_few(const AttentionHead& from, int64_t row, int64_t end, float* scratch) const {
    float *q = scratch + at.query, *line = scratch + at.scores, *wide = scratch + at.wide;
    for (; row < end; row++) {
      load_query(from, row, 1, q);
      const int64_t block = key.halves || value.halves ? kFewKeys : h.keys;
      for (int64_t k = 0, n; k < h.keys; k += n) {
        n = std::min(block, h.keys - k);
        const Matrix m = rows_of(key, from.key, k, n, h.width, wide);
        if (m.column == 1) {
          loops().dot_rows(m.data, m.row, n, h.width, q, line + k);
        } else {
          std::fill_n(line + k, n, 0.0f);
          loops().add_rows(m.data, m.column, h.width, n, q, line + k);
        }
      }
      add_mask(from, row, 0, line, h.keys);
      float* y = out + from.out.first + row * h.out.row;
      float top = -kInfinity, sum = 0;
      add_block(line, h.keys, top, sum, y);
      std::fill_n(y, h.made, 0.0f);
      for (int64_t k = 0, n; k < h.keys; k += n) {
        n = std::min(block, h.keys - k);
        const Matrix m = rows_of(value, from.value, k, n, h.made, wide);
        loops().add_rows(m.data, m.row, n, h.made, line + k, y);
      }
      loops().unary(Unary::linear, y, y, h.made, 1 / sum, 0);
    }
  }

  void run(const AttentionHead& from, int64_t first, int64_t end, float* scratch) const {
    if (few) return run_few(from, first, end, scratch);
    float *keys = scratch + at.keys, *values = scratch + at.values, *q = scratch + at.query, *wide = scratch + at.wide,
          *scores = scratch + at.scores, *tops = scratch + at.tops, *sums = scratch + at.sums;
    std::fill_n(tops, end - first, -kInfinity);
    std::fill_n(sums, end - first, 0.0f);
    for (int64_t k = 0; k < h.keys; k += kKeys) {
      const int64_t n = std::min(kKeys, h.keys - k);
      const Matrix of_key = rows_of(key, from.key, k, n, h.width, wide);
      of_keys->pack(of_key.data, of_key.column, of_key.row, h.width, n, keys, nullptr);
      const Matrix of_value = rows_of(value, from.value, k, n, h.made, wide);
      of_values->pack(of_value.data, of_value.row, of_value.column, n, h.made, values, nullptr);
      for (int64_t row = first; row < end; row += tile) {
        const int64_t some = std::min(tile, end - row);
        float* y = out + from.out.first + row * h.out.row;
        load_query(from, row, some, q);
        of_keys->multiply(q, h.width, keys, some, n, h.width, scores, kKeys, nullptr, false);
        for (int64_t i = 0; i < some; i++) {
          float* line = scores + i * kKeys;
          add_mask(from, row + i, k, line, n);
          add_block(line, n, tops[row - first + i], sums[row - first + i], y + i * h.out.row);
        }
        of_values->multiply(scores, kKeys, values, some, h.made, n, y, h.out.row, nullptr, k > 0);
        if (k + n < h.keys) continue;
        for (int64_t i = 0; i < some; i++, y += h.out.row)
          loops().unary(Unary::linear, y, y, h.made, 1 / sums[row - first + i], 0);
      }
    }
  }
};

Match match_attention(const MatchCall& given) {
  if (std::string why = require_fp32(given, {"query"}); !why.empty()) return Match::no(why);
  const ir::OpCall& call = given.call;
  Attention a;
  for (auto [param, matrices] : {std::pair{"key", &a.key}, {"value", &a.value}}) {
    matrices->halves = call.dtype(param) == ir::DType::fp16;
    if (std::string why = matrices->halves ? "" : require_fp32(given, {param}); !why.empty()) return Match::no(why);
  }
  if (call.has("attn_mask")) a.mask_type = call.dtype("attn_mask");
  if (a.mask_type != ir::DType::none && a.mask_type != ir::DType::fp32 && a.mask_type != ir::DType::boolean)
    return Match::no(cat("a mask of ", a.mask_type));
  ops::AttentionHeads heads;
  if (call.version().def->name == "moka_attention") {
    auto known = ops::heads_of_views(call);
    if (!known.ok()) return Match::no("sizes that are not constant");
    heads = *known;
  } else {
    heads = ops::heads_of_products(call, given.outputs[0].shape());
  }
  a.h = heads.shared;
  const AttentionHead& h = a.h;
  const double flops = 2.0 * static_cast<double>(heads.count()) * static_cast<double>(h.rows * h.keys) *
                       static_cast<double>(h.width + h.made);
  const MatchCall m = with_threads_for(given, flops);
  a.few = h.rows <= kFewRows && h.value.column == 1 && (h.key.column == 1 || h.key.row == 1);

  const auto count = heads.count();
  const int64_t wanted = m.threads == 1 ? 1 : (4 * m.threads + count - 1) / count;
  const int64_t parts = std::clamp<int64_t>(h.rows / kUnitRows, 1, wanted), rows = (h.rows + parts - 1) / parts;
  a.of_keys = &vector::gemm_for(std::min(kKeys, h.keys));
  a.of_values = &vector::gemm_for(h.made);
  a.tile = kTile;
  auto place = [&](int64_t floats) {
    const int64_t first = a.at.end;
    a.at.end += (floats + 15) / 16 * 16;
    return first;
  };
  if (!a.few) {
    a.at.keys = place(vector::packed_count(*a.of_keys, h.width, std::min(kKeys, h.keys)));
    a.at.values = place(vector::packed_count(*a.of_values, std::min(kKeys, h.keys), h.made));
    a.at.tops = place(rows);
    a.at.sums = place(rows);
  }
  if (a.key.halves || a.value.halves) a.at.wide = place((a.few ? kFewKeys : kKeys) * std::max(h.width, h.made));
  a.at.query = place(a.few ? h.width : a.tile * h.width);
  a.at.scores = place(a.few ? h.keys : a.tile * kKeys);

  const auto iq = static_cast<size_t>(call.arg_index("query")), ik = static_cast<size_t>(call.arg_index("key")),
             iv = static_cast<size_t>(call.arg_index("value"));
  const int im = call.arg_index("attn_mask");
  KernelChoice c;
  c.kernel = "cpu.attention";
  c.internally_parallel = true;
  c.thread_scratch = static_cast<size_t>(a.at.end) * sizeof(float);
  c.cost = cost_of(m, flops, traffic(m));
  c.facts = [=](kernel::Facts& facts) {
    facts.add("heads", count)
        .add("units of rows", parts, " of up to ", rows)
        .add("keys at once", a.few ? a.h.keys : std::min(kKeys, a.h.keys))
        .add("tile", a.few ? 1 : a.tile, " rows")
        .add("scores", a.few ? "of a whole row" : "of one block, combined with the next");
  };
  c.run = [=, threads = m.threads](const KernelArgs& args) -> Status {
    Attention with = a;
    with.query = args.in[iq].as<float>();
    with.key.data = static_cast<const std::byte*>(args.in[ik].data);
    with.value.data = static_cast<const std::byte*>(args.in[iv].data);
    with.mask = im < 0 ? nullptr : args.in[static_cast<size_t>(im)].data;
    with.out = args.out[0].as<float>();
    const auto unit = [&](int64_t u, int thread) {
      const int64_t first = u % parts * rows, end = std::min(a.h.rows, first + rows);
      auto* scratch = reinterpret_cast<float*>(args.own(thread));
      if (first < end) with.run(heads.at(u / parts), first, end, scratch);
    };
    kernel::parallel_for(threads, count * parts, unit);
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_attention() {
  static const KernelDef defs[] = {
      {.name = "cpu.attention", .ops = {"scaled_dot_product_attention", "moka_attention"}, .match = match_attention}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
