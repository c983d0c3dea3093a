// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/error.h"
#include "base/half.h"
#include "devices/cpu/isa.h"

namespace moka::devices::cpu::vector {
namespace {

std::vector<const Gemm*> gemm_sets() {
  std::vector<const Gemm*> all;
  for (bool wide : {false, true}) {
    all.push_back(&gemm_base(wide));
#if defined(__x86_64__)
    if (isa() >= Isa::avx2) all.push_back(&gemm_avx2(wide));
    if (isa() >= Isa::avx512) all.push_back(&gemm_avx512(wide));
#endif
  }
  return all;
}

struct Product {
  int64_t rows, columns, depth;
  int64_t a_step = depth + 3, c_step = columns + 5;
  std::vector<float> a, b, c, bias, packed, squares;

  Product(int64_t rows, int64_t columns, int64_t depth) : rows(rows), columns(columns), depth(depth) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> draw(-1, 1);
    for (auto [v, n] : {std::pair{&a, rows * a_step}, {&b, depth * columns}, {&c, rows * c_step}, {&bias, columns}}) {
      v->resize(static_cast<size_t>(n));
      for (float& x : *v) x = draw(random);
    }
  }

  void pack(const Gemm& g, bool transposed) {
    packed.assign(static_cast<size_t>(packed_count(g, depth, columns)), std::nanf(""));
    squares.assign(static_cast<size_t>(packed_count(g, 1, columns)), std::nanf(""));
    g.pack(b.data(), transposed ? 1 : columns, transposed ? depth : 1, depth, columns, packed.data(), squares.data());
  }
  double truth(int64_t i, int64_t j, bool transposed) const {
    double sum = 0;
    for (int64_t k = 0; k < depth; k++)
      sum += static_cast<double>(a[static_cast<size_t>(i * a_step + k)]) *
             static_cast<double>(b[static_cast<size_t>(transposed ? j * depth + k : k * columns + j)]);
    return sum;
  }
};

/// The error of a sum of n products of numbers up to 1 is below n * n / 2 roundings, and mostly about the root of n.
TEST(Gemm, EveryTail) {
  for (const Gemm* g : gemm_sets())
    for (int64_t rows : {1, 2, 3, 5, 6, 7, 9, 13, 14, 15, 28, 43})
      for (int64_t columns : {1, 3, 4, 8, 15, 16, 17, 31, 32, 33, 65, 96, 131, 200})
        for (int64_t depth : {1, 2, 29, 256, 257, 600})
          for (bool transposed : {false, true}) {
            if (transposed && depth > 29) continue;
            SCOPED_TRACE(cat(g->lanes, " lanes: ", rows, " x ", columns, " x ", depth));
            Product p(rows, columns, depth);
            p.pack(*g, transposed);
            const std::vector<float> before = p.c;
            for (auto [add, biased] : {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
              p.c = before;
              g->multiply(p.a.data(), p.a_step, p.packed.data(), rows, columns, depth, p.c.data(), p.c_step,
                          biased ? p.bias.data() : nullptr, add);
              double off = 0;
              for (int64_t i = 0; i < rows; i++)
                for (int64_t j = 0; j < p.c_step; j++) {
                  const auto at = static_cast<size_t>(i * p.c_step + j);
                  if (j >= columns) {
                    ASSERT_EQ(p.c[at], before[at]) << "after row " << i;
                    continue;
                  }
                  const double want = p.truth(i, j, transposed) + (add ? static_cast<double>(before[at]) : 0) +
                                      (biased ? static_cast<double>(p.bias[static_cast<size_t>(j)]) : 0);
                  off = std::max(off, std::fabs(static_cast<double>(p.c[at]) - want));
                }
              ASSERT_LE(off, 6e-8 * 2 * static_cast<double>(depth + 8));
            }
          }
}

TEST(Gemm, PanelsOfEveryDepth) {
  for (const Gemm* g : gemm_sets())
    for (int64_t depth : {1, 2, 15, 16, 17, 29, 63, 64, 65, 79, 80, 100, 257})
      for (int64_t columns : {1, 3, 8, 15, 16, 17, 33, 50, 65})
        for (bool transposed : {false, true}) {
          SCOPED_TRACE(cat(g->lanes, " lanes: ", depth, " x ", columns, transposed ? ", transposed" : ""));
          Product p(1, columns, depth);
          p.pack(*g, transposed);
          for (int64_t j = 0; j < static_cast<int64_t>(p.squares.size()); j++) {
            const int64_t first = j / g->panel * g->panel, left = static_cast<int64_t>(p.squares.size()) - first;
            double squares = 0;
            for (int64_t k = 0; k < depth; k++) {
              const float want =
                  j >= columns ? 0 : p.b[static_cast<size_t>(transposed ? j * depth + k : k * columns + j)];
              ASSERT_EQ(p.packed[static_cast<size_t>(first * depth + k * std::min(left, g->panel) + j - first)], want);
              squares += static_cast<double>(want) * static_cast<double>(want);
            }
            ASSERT_NEAR(static_cast<double>(p.squares[static_cast<size_t>(j)]), squares, 1e-5 * squares);
          }
        }
}

TEST(Gemm, DividedCallsGiveTheSameBits) {
  for (const Gemm* g : gemm_sets()) {
    Product p(43, 300, 600);
    p.pack(*g, false);
    g->multiply(p.a.data(), p.a_step, p.packed.data(), p.rows, p.columns, p.depth, p.c.data(), p.c_step, nullptr,
                false);
    std::vector<float> parts(p.c.size());
    for (auto [row, end] : {std::pair<int64_t, int64_t>{0, 1}, {1, 3}, {3, 17}, {17, p.rows}}) {
      const int64_t some = end - row <= 2 ? p.columns : g->panel;
      for (int64_t j = 0; j < p.columns; j += some)
        g->multiply(p.a.data() + row * p.a_step, p.a_step, p.packed.data() + j * p.depth, end - row,
                    std::min(some, p.columns - j), p.depth, parts.data() + row * p.c_step + j, p.c_step, nullptr,
                    false);
    }
    for (int64_t i = 0; i < p.rows; i++)
      for (int64_t j = 0; j < p.columns; j++) {
        const auto at = static_cast<size_t>(i * p.c_step + j);
        ASSERT_EQ(p.c[at], parts[at]) << g->lanes << " lanes, " << i << ", " << j;
      }
  }
}

/// Panels of float16 give the bits of panels of floats.
TEST(Gemm, Halves) {
  for (const Gemm* g : gemm_sets()) {
    if (g->multiply_halves == nullptr) continue;
    for (int64_t rows : {1, 4, 6, 8, 9, 14, 15, 43})
      for (int64_t columns : {1, 8, 16, 33, 96, 131})
        for (int64_t depth : {1, 29, 256, 513, 1100}) {
          SCOPED_TRACE(cat(g->lanes, " lanes: ", rows, " x ", columns, " x ", depth));
          Product p(rows, columns, depth);
          for (float& v : p.b) v = half(v);
          p.pack(*g, false);
          std::vector<uint16_t> halves(p.packed.size());
          for (size_t i = 0; i < halves.size(); i++) halves[i] = half::from_float(p.packed[i]);
          std::vector<float> widened(static_cast<size_t>(g->widened()), std::nanf(""));
          const std::vector<float> before = p.c;
          for (const bool add : {false, true}) {
            std::vector<float> c = p.c = before;
            g->multiply(p.a.data(), p.a_step, p.packed.data(), rows, columns, depth, p.c.data(), p.c_step,
                        p.bias.data(), add);
            g->multiply_halves(p.a.data(), p.a_step, halves.data(), rows, columns, depth, c.data(), p.c_step,
                               p.bias.data(), add, widened.data());
            ASSERT_EQ(c, p.c);
          }
        }
  }
}

/// Infinities and NaN stay in their row and column.
TEST(Gemm, OddNumbers) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const Gemm* g : gemm_sets()) {
    Product p(9, 21, 40);
    p.a[static_cast<size_t>(4 * p.a_step + 7)] = inf;
    p.b[static_cast<size_t>(11 * p.columns + 20)] = std::nanf("");
    p.pack(*g, false);
    g->multiply(p.a.data(), p.a_step, p.packed.data(), p.rows, p.columns, p.depth, p.c.data(), p.c_step, nullptr,
                false);
    for (int64_t i = 0; i < p.rows; i++)
      for (int64_t j = 0; j < p.columns; j++) {
        const float made = p.c[static_cast<size_t>(i * p.c_step + j)];
        if (j == 20)
          EXPECT_TRUE(std::isnan(made));
        else if (i == 4)
          EXPECT_EQ(made, std::copysign(inf, p.b[static_cast<size_t>(7 * p.columns + j)]));
        else
          EXPECT_TRUE(std::isfinite(made));
      }
  }
}

}  // namespace
}  // namespace moka::devices::cpu::vector
