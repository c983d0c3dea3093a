// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/activations.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/gemm.h"
#include "devices/cpu/vector/rows.h"

namespace moka::devices::cpu {

namespace {

using vector::Gemm;
using vector::loops;

constexpr int64_t kMatmulColumns = 192;   // columns per tile: a whole number of panels of either width
constexpr int64_t kMatmulRows = 128;      // most rows at once
constexpr int64_t kDepth = 512;           // depth packed at once: a multiple of Gemm's, so sums have the same order
constexpr int64_t kLeastMatmulRows = 64;  // least rows per tile when rows are divided to give every thread work
constexpr int64_t kFewMatmulRows = 4;     // rows for which packing y costs more than it saves
constexpr int64_t kFewOfRows = 8;         // the same for a transposed y

/// A batch of matrices. Element (i, j) of a matrix is at i * row + j * column from its first element.
struct MatmulOperand {
  int64_t rows = 1, columns = 1, row = 0, column = 0;
  std::vector<int64_t> steps;  ///< floats from matrix to matrix along each batch dimension; 0: broadcast

  MatmulOperand transposed() const { return {columns, rows, column, row, steps}; }
};

/// A vector counts as a row on the left and as a column on the right.
MatmulOperand operand_of(const ir::Shape& s, bool transposed, bool left, const ir::Shape& stack) {
  MatmulOperand o;
  const int r = s.rank();
  o.rows = r == 1 ? (left ? 1 : s[0]) : s[r - 2];
  o.columns = r == 1 ? (left ? s[0] : 1) : s[r - 1];
  o.row = o.columns;
  o.column = 1;
  o.steps.assign(static_cast<size_t>(stack.rank()), 0);
  int64_t step = o.rows * o.columns;
  for (int i = r - 3, j = stack.rank() - 1; i >= 0; i--, j--) {
    if (s[i] != 1) o.steps[static_cast<size_t>(j)] = step;
    step *= s[i];
  }
  return transposed && r > 1 ? o.transposed() : o;
}

struct Product {
  MatmulOperand x, y;
  ir::Shape stack;    ///< the result's batch dimensions
  int64_t parts = 1;  ///< divisions of the rows
  const Gemm* gemm = nullptr;

  int64_t chunks() const { return (y.columns + kMatmulColumns - 1) / kMatmulColumns; }
  int64_t count() const { return stack.count(); }
  bool is_transposed() const { return y.row == 1 && y.column != 1; }
  bool is_few() const { return x.rows <= (is_transposed() ? kFewOfRows : kFewMatmulRows); }
  int64_t panel_floats() const { return is_few() ? 0 : vector::packed_count(*gemm, depth_at_once(), kMatmulColumns); }
  int64_t row_floats() const {
    if (x.column == 1) return 0;
    return is_few() ? x.rows * x.columns : kMatmulRows * depth_at_once();
  }
  int64_t depth_at_once() const { return std::min(kDepth, x.columns); }

  int64_t place(const std::vector<int64_t>& steps, int64_t b) const {
    int64_t at = 0;
    for (int d = stack.rank() - 1; d >= 0; b /= stack[d], d--) at += b % stack[d] * steps[static_cast<size_t>(d)];
    return at;
  }

  void few(const float* a, const float* b, const float* bias, int64_t column, int64_t n, float* c,
           float* scratch) const {
    const int64_t depth = x.columns, made = y.columns;
    if (x.column != 1) {
      loops().transpose(a, x.column, depth, x.rows, scratch, depth);
      a = scratch;
    }
    const int64_t step = x.column == 1 ? x.row : depth;
    if (is_transposed()) {
      vector::Rows rows;
      rows.data = reinterpret_cast<const std::byte*>(b);
      rows.depth = depth;
      rows.step = y.column * static_cast<int64_t>(sizeof(float));
      for (int64_t i = 0; i < x.rows; i += 4)
        vector::row_loops().product(rows, column, column + n, a + i * step, step, std::min<int64_t>(4, x.rows - i),
                                    bias, c + i * made, made);
      return;
    }
    for (int64_t i = 0; i < x.rows; i++) {
      float* to = c + i * made + column;
      if (bias == nullptr)
        std::fill_n(to, n, 0.0f);
      else
        std::copy_n(bias + column, n, to);
      loops().add_rows(b + column, y.row, depth, n, a + i * step, to);
    }
  }

  void many(const float* a, const float* b, const float* bias, int64_t first, int64_t end, int64_t column, int64_t n,
            float* c, float* panels, float* rows) const {
    const int64_t depth = x.columns, made = y.columns;
    for (int64_t k = 0, some; k < depth; k += some) {
      some = std::min(kDepth, depth - k);
      gemm->pack(b + k * y.row + column * y.column, y.row, y.column, some, n, panels, nullptr);
      for (int64_t i = first, height; i < end; i += height) {
        height = std::min(kMatmulRows, end - i);
        const float* from = a + i * x.row + k * x.column;
        int64_t step = x.row;
        if (x.column != 1) {
          loops().transpose(from, x.column, some, height, rows, some);
          from = rows;
          step = some;
        }
        gemm->multiply(from, step, panels, height, n, some, c + i * made + column, made,
                       bias == nullptr || k > 0 ? nullptr : bias + column, k > 0);
      }
    }
  }
};

Match match(const MatchCall& given, Product p, std::string_view px, std::string_view py, std::string_view name) {
  const int bias = given.call.arg_index("bias"), addend = given.call.arg_index("addend");
  // A single column is computed as a row of the transposed product.
  if (p.y.columns == 1 && p.x.rows > 1 && bias < 0) {
    p = {p.y.transposed(), p.x.transposed(), p.stack};
    std::swap(px, py);
  }
  const double flops = 2.0 * static_cast<double>(p.count() * p.x.rows * p.y.columns) * static_cast<double>(p.x.columns);
  const MatchCall m = with_threads_for(given, flops);
  p.gemm = &vector::gemm_for(p.y.columns);
  if (m.threads > 1 && !p.is_few())
    p.parts = std::clamp<int64_t>((4 * m.threads + p.count() * p.chunks() - 1) / (p.count() * p.chunks()), 1,
                                  std::max<int64_t>(1, p.x.rows / kLeastMatmulRows));
  const int64_t thread_floats = (p.panel_floats() + p.row_floats() + 15) / 16 * 16;
  const int ix = m.call.arg_index(px), iy = m.call.arg_index(py);
  KernelChoice c;
  c.kernel = name;
  c.tiles = p.count() * p.chunks() * p.parts;
  c.epilogues = m.epilogue.size();
  c.thread_scratch = static_cast<size_t>(thread_floats) * sizeof(float);
  c.cost = cost_of(m, flops, traffic(m));
  c.facts = [p](kernel::Facts& facts) {
    facts.add("matrices", p.count())
        .add("blocks", p.parts, " of rows, ", p.chunks(), " of up to ", kMatmulColumns, " columns")
        .add("packing", p.is_few() ? "none, few rows" : "the right side, in each prediction");
  };
  c.run = [=, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    float* const panels = args.own<float>();
    float* const rows = panels + p.panel_floats();
    const float *b = data_of(args, bias), *more = data_of(args, addend);
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t part = t % p.parts, chunk = t / p.parts % p.chunks(), stack = t / p.parts / p.chunks();
      const int64_t first = p.x.rows * part / p.parts, end = p.x.rows * (part + 1) / p.parts;
      const int64_t column = chunk * kMatmulColumns, n = std::min(kMatmulColumns, p.y.columns - column);
      const float *x = data_of(args, ix) + p.place(p.x.steps, stack),
                  *y = data_of(args, iy) + p.place(p.y.steps, stack);
      const int64_t at = stack * p.x.rows * p.y.columns;
      float* to = args.out[0].as<float>() + at;
      if (p.is_few())
        p.few(x, y, b, column, n, to, rows);
      else
        p.many(x, y, b, first, end, column, n, to, panels, rows);
      for (int64_t i = first; i < end; i++) {
        const int64_t row = i * p.y.columns + column;
        if (more != nullptr) loops().binary(vector::Binary::add, to + row, 1, more + at + row, 1, to + row, n);
        apply_all(after, to + row, n);
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_tiled_linear(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  const ir::Shape& w = m.call.shape("weight");
  const ir::Shape x{m.outputs[0].shape().count() / w[0], w[1]}, one;
  return match(m, {operand_of(x, false, true, one), operand_of(w, true, false, one), one}, "x", "weight",
               "cpu.linear.packing");
}

Match match_tiled_matmul(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "y", "bias"}); !why.empty()) return Match::no(why);
  auto tx = m.call.flag("transpose_x"), ty = m.call.flag("transpose_y");
  if (!tx.ok() || !ty.ok()) return Match::no("transposition that is not constant");
  ir::Shape x = m.call.shape("x");
  const ir::Shape& y = m.call.shape("y");
  // A batch of matrices times one matrix is one tall matrix times that matrix.
  if (x.rank() > 2 && y.rank() <= 2 && !*tx) x = {x.count() / x[x.rank() - 1], x[x.rank() - 1]};
  const int rank = std::max({x.rank(), y.rank(), 2}) - 2;
  ir::Shape stack;
  for (int i = 0; i < rank; i++) {
    const int in_x = i - rank + x.rank() - 2, in_y = i - rank + y.rank() - 2;
    stack.push_back(std::max(in_x < 0 ? 1 : x[in_x], in_y < 0 ? 1 : y[in_y]));
  }
  return match(m, {operand_of(x, *tx, true, stack), operand_of(y, *ty, false, stack), stack}, "x", "y",
               "cpu.matmul.packing");
}

}  // namespace

KernelFamily family_matmul() {
  static const KernelDef defs[] = {
      {.name = "cpu.linear.packing", .ops = {"linear"}, .match = match_tiled_linear, .addend = true},
      {.name = "cpu.matmul.packing", .ops = {"matmul"}, .match = match_tiled_matmul, .addend = true}};
  return {150, defs};
}

}  // namespace moka::devices::cpu
