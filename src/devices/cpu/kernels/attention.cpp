#include "ops/common/attention.h"

#include <omp.h>

#include <cmath>
#include <limits>

#include "devices/cpu/kernels/families.h"
#include "devices/cpu/vector/gemm.h"
#include "devices/cpu/vector/loops.h"

namespace moka::devices::cpu {

namespace {

using ops::AttentionHead;
using vector::Binary;
using vector::Gemm;
using vector::loops;
using vector::Unary;

constexpr int64_t kKeys = 512;     // whose scores are in memory at once
constexpr int64_t kTile = 24;      // rows of the query whose scores are
constexpr int64_t kFewRows = 4;    // for which packing keys and values takes longer than it spares
constexpr int64_t kUnitRows = 64;  // of the query, at least, for each thread
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A thread's part of the scratch memory, in floats from its beginning.
struct Places {
  int64_t keys = 0, values = 0, query = 0, scores = 0, tops = 0, sums = 0, end = 0;
};

/// What all heads share, and the data.
struct Attention {
  AttentionHead h;
  const Gemm *of_keys = nullptr, *of_values = nullptr;
  int64_t tile = 0;  ///< rows of scores at once
  Places at;
  bool few = false;
  ir::DType mask_type = ir::DType::none;

  const float *query = nullptr, *key = nullptr, *value = nullptr;
  const void* mask = nullptr;
  float* out = nullptr;

  /// Adds the mask to `n` scores of row `row`, keys from `first`.
  void add_mask(const AttentionHead& from, int64_t row, int64_t first, float* line, int64_t n) const {
    const int64_t at = from.mask.first + row * h.mask.row + first * h.mask.column;
    const int step = static_cast<int>(h.mask.column);
    const auto hidden = static_cast<float>(h.hidden);
    if (mask_type == ir::DType::boolean)
      loops().select(static_cast<const uint8_t*>(mask) + at, step, line, 1, &hidden, 0, line, n);
    else if (mask_type == ir::DType::fp32)
      loops().binary(Binary::add, line, 1, static_cast<const float*>(mask) + at, step, line, n);
  }

  /// Rows of the query times the scale.
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

  /// Makes scores of more keys weights; `so_far` weights of row `i` were relative to another maximum.
  void weigh(float* line, int64_t n, float& top, float& sum, float* so_far) const {
    const float before = top, added = loops().weigh(line, n, &top);
    if (top != before && sum != 0) {
      const float factor = std::exp(before - top);
      sum *= factor;
      loops().unary(Unary::linear, so_far, so_far, h.made, factor, 0);
    }
    sum += added;
  }

  void run_few(const AttentionHead& from, int64_t row, int64_t end, float* scratch) const {
    float *q = scratch + at.query, *line = scratch + at.scores;
    const float *k = key + from.key.first, *v = value + from.value.first;
    for (; row < end; row++) {
      load_query(from, row, 1, q);
      if (h.key.column == 1) {
        loops().dot_rows(k, h.key.row, h.keys, h.width, q, line);
      } else {
        std::fill_n(line, h.keys, 0.0f);
        loops().add_rows(k, h.key.column, h.width, h.keys, q, line);
      }
      add_mask(from, row, 0, line, h.keys);
      float* y = out + from.out.first + row * h.out.row;
      float top = -kInfinity, sum = 0;
      weigh(line, h.keys, top, sum, y);
      std::fill_n(y, h.made, 0.0f);
      loops().add_rows(v, h.value.row, h.keys, h.made, line, y);
      loops().unary(Unary::linear, y, y, h.made, 1 / sum, 0);
    }
  }

  void run(const AttentionHead& from, int64_t first, int64_t end, float* scratch) const {
    if (few) return run_few(from, first, end, scratch);
    float *keys = scratch + at.keys, *values = scratch + at.values, *q = scratch + at.query,
          *scores = scratch + at.scores, *tops = scratch + at.tops, *sums = scratch + at.sums;
    std::fill_n(tops, end - first, -kInfinity);
    std::fill_n(sums, end - first, 0.0f);
    for (int64_t k = 0; k < h.keys; k += kKeys) {
      const int64_t n = std::min(kKeys, h.keys - k);
      of_keys->pack(key + from.key.first + k * h.key.row, h.key.column, h.key.row, h.width, n, keys);
      of_values->pack(value + from.value.first + k * h.value.row, h.value.row, h.value.column, n, h.made, values);
      for (int64_t row = first; row < end; row += tile) {
        const int64_t some = std::min(tile, end - row);
        float* y = out + from.out.first + row * h.out.row;
        load_query(from, row, some, q);
        of_keys->multiply(q, h.width, keys, some, n, h.width, scores, kKeys, false);
        for (int64_t i = 0; i < some; i++) {
          float* line = scores + i * kKeys;
          add_mask(from, row + i, k, line, n);
          weigh(line, n, tops[row - first + i], sums[row - first + i], y + i * h.out.row);
        }
        of_values->multiply(scores, kKeys, values, some, h.made, n, y, h.out.row, k > 0);
        if (k + n < h.keys) continue;
        for (int64_t i = 0; i < some; i++, y += h.out.row)
          loops().unary(Unary::linear, y, y, h.made, 1 / sums[row - first + i], 0);
      }
    }
  }
};

Match match_attention(const MatchCall& given) {
  if (std::string why = require_fp32(given, {"query", "key", "value"}); !why.empty()) return Match::no(why);
  const ir::OpCall& call = given.call;
  Attention a;
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
  a.at.query = place(a.few ? h.width : a.tile * h.width);
  a.at.scores = place(a.few ? h.keys : a.tile * kKeys);

  const auto iq = static_cast<size_t>(call.arg_index("query")), ik = static_cast<size_t>(call.arg_index("key")),
             iv = static_cast<size_t>(call.arg_index("value"));
  const int im = call.arg_index("attn_mask");
  KernelChoice c;
  c.kernel = "cpu.attention";
  c.own_threads = true;
  c.scratch = static_cast<size_t>(m.threads) * static_cast<size_t>(a.at.end) * sizeof(float);
  c.cost = cost_of(m, flops, traffic(m));
  c.run = [=, threads = m.threads](const KernelArgs& args) -> Status {
    Attention with = a;
    with.query = args.in[iq].as<float>();
    with.key = args.in[ik].as<float>();
    with.value = args.in[iv].as<float>();
    with.mask = im < 0 ? nullptr : args.in[static_cast<size_t>(im)].data;
    with.out = args.out[0].as<float>();
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1)
    for (int64_t u = 0; u < count * parts; u++) {
      const int64_t first = u % parts * rows, end = std::min(a.h.rows, first + rows);
      float* scratch = reinterpret_cast<float*>(args.scratch) + (threads > 1 ? omp_get_thread_num() : 0) * a.at.end;
      if (first < end) with.run(heads.at(u / parts), first, end, scratch);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

std::span<const KernelDef> attention_kernels() {
  static const KernelDef defs[] = {
      {"cpu.attention", {"scaled_dot_product_attention", "moka_attention"}, match_attention}};
  return defs;
}

}  // namespace moka::devices::cpu
