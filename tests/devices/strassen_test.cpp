// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/strassen.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "devices/cpu/isa.h"
#include "devices/cpu/vector/gemm.h"
#include "devices/graph_util.h"

namespace moka::devices_test {
namespace {

using namespace ir;
using namespace devices::cpu;
using vector::Gemm;
using vector::Strassen;

struct StrassenSet {
  const Gemm* gemm;
  const Strassen* strassen;
};

std::vector<StrassenSet> strassen_sets() {
  std::vector<StrassenSet> all{{&vector::gemm_base(), &vector::strassen_base()}};
#if defined(__x86_64__)
  if (isa() >= Isa::avx2) all.push_back({&vector::gemm_avx2(), &vector::strassen_avx2()});
  if (isa() >= Isa::avx512) all.push_back({&vector::gemm_avx512(), &vector::strassen_avx512()});
#endif
  return all;
}

/// Two panels of a product with `rows` rows. The halves share the middle row if the number is odd.
void expect_product(const StrassenSet& set, int64_t rows, int64_t quarter, bool add, bool biased) {
  SCOPED_TRACE(cat(set.strassen->panel, " columns: ", rows, " rows, ", 2 * quarter, " deep", add ? ", add" : "",
                   biased ? ", bias" : ""));
  const int64_t panel = set.strassen->panel, depth = 2 * quarter, columns = 2 * panel, half = (rows + 1) / 2,
                lower = rows - half, a_step = depth + 3, c_step = columns + 5;
  ASSERT_EQ(panel, set.gemm->panel);
  std::mt19937 random(7);
  std::uniform_real_distribution<float> draw(-1, 1);
  auto numbers = [&](int64_t n) {
    std::vector<float> v(static_cast<size_t>(n));
    for (float& x : v) x = draw(random);
    return v;
  };
  const auto a = numbers(rows * a_step), b = numbers(depth * columns), bias = numbers(columns),
             before = numbers(rows * c_step);
  std::vector<float> packed(static_cast<size_t>(depth * columns)), c = before;
  set.gemm->pack(b.data(), columns, 1, depth, columns, packed.data(), nullptr);
  std::vector<float> s(static_cast<size_t>(4 * half * quarter)), t(static_cast<size_t>(4 * quarter * panel)),
      unread(static_cast<size_t>(columns));
  for (int64_t i = 0; i < half; i++) {
    const float *upper = a.data() + i * a_step, *below = upper + lower * a_step;
    float squares[2] = {1, 2};
    set.strassen->left(upper, below, quarter, quarter, s.data() + i * quarter, half * quarter, squares);
    double want[2] = {1, 2};
    for (int64_t k = 0; k < depth; k++) {
      want[0] += static_cast<double>(upper[k]) * static_cast<double>(upper[k]);
      want[1] += static_cast<double>(below[k]) * static_cast<double>(below[k]);
    }
    for (int r : {0, 1}) ASSERT_NEAR(static_cast<double>(squares[r]), want[r], 1e-5 * want[r]);
  }
  vector::StrassenPart p{};
  p.rows = half;
  p.depth = quarter;
  p.a = a.data();
  p.a_step = a_step;
  p.a_lower = lower * a_step;
  p.s = s.data();
  p.b = packed.data();
  p.b_right = panel * depth;
  p.t = t.data();
  p.c = c.data();
  p.c_step = c_step;
  p.c_lower = lower * c_step;
  p.add = add;
  p.bias = biased ? bias.data() : nullptr;
  p.instead = half == lower ? nullptr : unread.data();
  p.ahead = packed.data();
  set.strassen->multiply(p);
  double off = 0;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < c_step; j++) {
      const auto at = static_cast<size_t>(i * c_step + j);
      if (j >= columns) {
        ASSERT_EQ(c[at], before[at]) << "after row " << i;
        continue;
      }
      double want = (add ? static_cast<double>(before[at]) : 0) +
                    (biased ? static_cast<double>(bias[static_cast<size_t>(j)]) : 0);
      for (int64_t k = 0; k < depth; k++)
        want += static_cast<double>(a[static_cast<size_t>(i * a_step + k)]) *
                static_cast<double>(b[static_cast<size_t>(k * columns + j)]);
      off = std::max(off, std::fabs(static_cast<double>(c[at]) - want));
    }
  // Sums have up to three times as many products, of numbers up to three times as large, as in gemm_test.
  EXPECT_LE(off, 6e-8 * 8 * static_cast<double>(depth + 8));
}

TEST(Strassen, EveryTail) {
  for (const StrassenSet& set : strassen_sets())
    for (int64_t rows : {64, 65, 66, 83, 85, 86, 99, 113, 128, 197})
      for (int64_t quarter : {1, 2, 15, 16, 17, 100})
        for (int flags = 0; flags < 4; flags++) expect_product(set, rows, quarter, (flags & 1) != 0, (flags & 2) != 0);
}

struct ProductCase {
  int64_t rows, depth, made;
};

/// Compares each element with the sum in double, within `tolerance` relative to the norms of its own row and column.
void expect_products(const Tensor& x, const Tensor& w, const Tensor& got, double tolerance) {
  const int64_t depth = w.shape()[1], made = w.shape()[0], rows = x.count() / depth;
  auto norm = [&](const Tensor& of, int64_t row) {
    double sum = 0;
    for (int64_t k = 0; k < depth; k++)
      sum += std::pow(static_cast<double>(of.as<float>()[static_cast<size_t>(row * depth + k)]), 2);
    return std::sqrt(sum);
  };
  std::vector<double> columns;
  for (int64_t j = 0; j < made; j++) columns.push_back(norm(w, j));
  for (int64_t i = 0; i < rows; i++) {
    const double row = norm(x, i);
    for (int64_t j = 0; j < made; j++) {
      double want = 0;
      for (int64_t k = 0; k < depth; k++)
        want += static_cast<double>(x.as<float>()[static_cast<size_t>(i * depth + k)]) *
                static_cast<double>(w.as<float>()[static_cast<size_t>(j * depth + k)]);
      const auto made_here = static_cast<double>(got.as<float>()[static_cast<size_t>(i * made + j)]);
      if (!std::isfinite(want)) {
        ASSERT_FALSE(std::isfinite(made_here)) << i << ", " << j;
        continue;
      }
      ASSERT_LE(std::fabs(made_here - want), tolerance * row * columns[static_cast<size_t>(j)]) << i << ", " << j;
    }
  }
}

/// Products with bias, addend and epilogues. Every second time the result takes the addend's memory.
TEST(Strassen, Operations) {
  for (const ProductCase& c :
       {ProductCase{64, 4, 96}, {65, 384, 200}, {131, 770, 1003}, {257, 2048, 96}, {300, 130, 384}, {513, 64, 150}})
    for (std::string_view op : {"linear", "matmul"}) {
      SCOPED_TRACE(cat(op, " ", c.rows, " x ", c.depth, " x ", c.made));
      Graph g;
      Value* x = g.input({1, c.rows, c.depth});
      Value* residual = g.op("relu", {{"x", g.input({1, c.rows, c.made})}});
      std::vector<NamedArg> args{{"x", x}, {"addend", residual}, {"bias", g.random({c.made})}};
      if (op == "linear")
        args.emplace_back("weight", g.random({c.made, c.depth}, -0.1f, 0.1f));
      else
        args.emplace_back("y", g.random({c.depth, c.made}, -0.1f, 0.1f));
      Value* y = g.op(op, std::move(args));
      y->producer()->epilogue = {{"gelu"}, {"clip", -0.5f, 0.5f}};
      expect_same_by(cat("cpu.", op, ".strassen"), g, y);
    }
}

/// Neither NaN nor the rounding errors of a much larger row or column may spread to others.
TEST(Strassen, UnlikeRowsAndColumns) {
  const float inf = std::numeric_limits<float>::infinity();
  for (int64_t rows : {130, 131})
    for (int64_t strange : {0, 3, 12, 60}) {
      SCOPED_TRACE(cat(rows, " rows, ", strange, " strange"));
      Graph g;
      const int64_t depth = 256, made = 256;
      Tensor in = g.random({rows, depth}), w = g.random({made, depth});
      auto scale = [&](Tensor& t, int64_t row, float by) {
        for (int64_t k = 0; k < depth; k++) t.mut<float>()[static_cast<size_t>(row * depth + k)] *= by;
      };
      const float by[] = {0, 1e-6f, 1e5f, inf, 1e25f, std::nanf("")};
      for (int64_t i = 0; i < strange; i++) scale(in, i * 2, by[i % 6]);
      scale(w, 7, 0);
      scale(w, 120, 1e4f);
      Value* y = g.op("linear", {{"x", g.input_of(in)}, {"weight", w}});
      const auto got = run_by("cpu.linear.strassen", g, y);
      ASSERT_EQ(got.outputs.size(), 1u);
      expect_products(in, w, got.outputs[0], 2e-6);
    }
}

TEST(Strassen, ThreadsGiveTheSameBits) {
  for (const ProductCase& c : {ProductCase{197, 384, 768}, {131, 1536, 600}, {600, 384, 1000}}) {
    SCOPED_TRACE(cat(c.rows, " x ", c.depth, " x ", c.made));
    Graph g;
    Value* x = g.input({c.rows, c.depth});
    Value* y = g.op("linear", {{"x", x}, {"weight", g.random({c.made, c.depth})}, {"bias", g.random({c.made})}});
    expect_same_bits(g, y, "cpu.linear.strassen", "linear");
  }
}

}  // namespace
}  // namespace moka::devices_test
