#include "devices/cpu/vector/gemm.h"

#include "devices/cpu/kernels/activations.h"
#include "devices/cpu/kernels/families.h"

namespace moka::devices::cpu {

namespace {

using vector::Gemm;

constexpr int64_t kChunk = 192;     // columns, at least, that are finished together: whole panels of every kind
constexpr int64_t kRows = 128;      // rows, at most, whose depth is read again for each panel
constexpr int64_t kLeastRows = 48;  // for which panels are read once more so that every thread has a part

/// x [rows, depth] times constant weights, of which element (k, column) is at k * row_step + column * column_step;
/// `bias` is the index of that argument, or negative.
Match product(const MatchCall& given, std::string_view x, std::string_view weights, int64_t made, int64_t depth,
              int64_t row_step, int64_t column_step, int bias, std::string_view name) {
  if (made == 0 || depth == 0) return Match::no("an empty tensor");
  const int64_t rows = given.outputs[0].shape().count() / made;
  const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(made) * static_cast<double>(depth);
  const MatchCall m = with_threads_for(given, flops);
  const Gemm& g = vector::gemm_for(made);
  const auto in = static_cast<size_t>(m.call.arg_index(x));
  const int w = m.call.arg_index(weights), addend = m.call.arg_index("addend");
  const int64_t chunks = (made + kChunk - 1) / kChunk;
  int64_t blocks = (rows + kRows - 1) / kRows;
  if (m.threads > 1) blocks = std::max(blocks, std::min((4 * m.threads + chunks - 1) / chunks, rows / kLeastRows));
  KernelChoice c;
  c.kernel = name;
  c.in_place = addend;
  c.tiles = blocks * chunks;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, flops, traffic(m));
  const auto packed =
      packed_before(c, m, w, cat("panels of ", g.panel, " in ", g.lanes, row_step == 1 ? ", transposed" : ""),
                    vector::packed_count(g, depth, made),
                    [=, &g](const float* value, float* to) { g.pack(value, row_step, column_step, depth, made, to); });
  c.run = [=, &g, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    const auto* panels = packed->data();
    const float* b = bias < 0 ? nullptr : args.in[static_cast<size_t>(bias)].as<float>();
    const float* more = addend < 0 ? nullptr : args.in[static_cast<size_t>(addend)].as<float>();
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t first = rows * (t / chunks) / blocks, end = rows * (t / chunks + 1) / blocks,
                    column = t % chunks * kChunk, n = std::min(kChunk, made - column);
      const float* from = args.in[in].as<float>() + first * depth;
      float* to = args.out[0].as<float>() + first * made + column;
      if (const float* sum = more == nullptr ? to : more + first * made + column; sum != to)
        for (int64_t i = 0; i < end - first; i++) std::copy_n(sum + i * made, n, to + i * made);
      g.multiply(from, depth, panels + column * depth, end - first, n, depth, to, made,
                 b == nullptr ? nullptr : b + column, more != nullptr);
      if (after.empty()) continue;
      for (int64_t i = 0; i < end - first; i++) apply_all(after, to + i * made, n);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_linear(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  if (!m.is_constant("weight")) return Match::no("weights that are not constant");
  const ir::Shape& w = m.call.shape("weight");
  return product(m, "x", "weight", w[0], w[1], 1, w[1], m.call.arg_index("bias"), "cpu.linear.gemm");
}

Match match_matmul(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "y"}); !why.empty()) return Match::no(why);
  auto tx = m.call.flag("transpose_x"), ty = m.call.flag("transpose_y");
  const ir::Shape& y = m.call.shape("y");
  if (!m.is_constant("y") || y.rank() != 2) return Match::no("a y that is no constant matrix");
  if (!tx.ok() || !ty.ok() || *tx) return Match::no("a transposed x");
  if (*ty) return product(m, "x", "y", y[0], y[1], 1, y[1], -1, "cpu.matmul.gemm");
  return product(m, "x", "y", y[1], y[0], y[1], 1, -1, "cpu.matmul.gemm");
}

}  // namespace

std::span<const KernelDef> gemm_kernels() {
  static const KernelDef defs[] = {{"cpu.linear.gemm", {"linear"}, match_linear, true},
                                   {"cpu.matmul.gemm", {"matmul"}, match_matmul, true}};
  return defs;
}

}  // namespace moka::devices::cpu
