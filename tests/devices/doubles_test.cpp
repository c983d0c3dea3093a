// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/doubles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "devices/cpu/isa.h"
#include "devices/graph_util.h"

/// Sums of doubles for classic models, compared with plain loops.
namespace moka::devices::cpu::vector {
namespace {

struct DoublesSet {
  const char* name;
  const DoubleLoops *loops, *exact;
};

std::vector<DoublesSet> doubles_sets() {
  std::vector<DoublesSet> all{{"base", &double_loops_base(), &exact_double_loops_base()}};
#if defined(__x86_64__)
  if (isa() >= Isa::avx2) all.push_back({"avx2", &double_loops_avx2(), &exact_double_loops_avx2()});
  if (isa() >= Isa::avx512) all.push_back({"avx512", &double_loops_avx512(), &exact_double_loops_avx512()});
#endif
  return all;
}

std::vector<double> random(int64_t count, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<double> normal;
  std::vector<double> v(static_cast<size_t>(count));
  for (double& x : v) x = normal(bits);
  return v;
}

TEST(Doubles, DotsOfFewColumnsReadNothingBesideTheirRow) {
  for (const DoublesSet& set : doubles_sets())
    for (int64_t depth : {1, 3, 7, 8, 9, 20})
      for (int64_t columns : {1, 2, 3, 4, 7})
        for (int64_t rows : {1, 5, 8, 17}) {
          std::vector<double> x = random(rows * depth, 1);
          const std::vector<double> w = random(columns * depth, 2);
          const int64_t strange = rows / 2;
          x[static_cast<size_t>(strange * depth)] = std::numeric_limits<double>::quiet_NaN();
          const std::vector<double> offset = random(columns, 9);
          std::vector<double> y(static_cast<size_t>(rows * columns));
          set.loops->dots(x.data(), rows, depth, w.data(), columns, offset.data(), y.data());
          for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < columns; i++) {
              double sum = offset[static_cast<size_t>(i)];
              for (int64_t k = 0; k < depth; k++)
                sum += x[static_cast<size_t>(r * depth + k)] * w[static_cast<size_t>(i * depth + k)];
              const double got = y[static_cast<size_t>(r * columns + i)];
              if (r == strange)
                EXPECT_TRUE(std::isnan(got)) << set.name;
              else
                EXPECT_NEAR(got, sum, 1e-13) << set.name << ", row " << r << " of " << rows << ", depth " << depth;
            }
        }
}

TEST(Doubles, ExactDistancesAndProductsAreThoseOfPlainLoops) {
  constexpr int64_t kDepth = 20;
  for (int64_t vectors : {1, 3, 8, 10, 21, 32, 70})
    for (int64_t rows : {1, 4, 7, 8, 21}) {
      const std::vector<double> x = random(rows * kDepth, 3), offset = random(vectors, 9);
      std::vector<double> w = random(groups_of(vectors) * kColumns * kDepth, 4);
      for (const DoublesSet& set : doubles_sets()) {
        // A number that no result has follows the results.
        std::vector<double> distance(static_cast<size_t>(rows * vectors + 1), -1e9), product(distance), moved(distance);
        set.exact->distances(x.data(), rows, kDepth, w.data(), vectors, distance.data());
        set.exact->products(x.data(), rows, kDepth, w.data(), vectors, nullptr, product.data());
        set.exact->products(x.data(), rows, kDepth, w.data(), vectors, offset.data(), moved.data());
        EXPECT_EQ(distance.back() + product.back() + moved.back(), -3e9) << set.name << ", vectors " << vectors;
        for (int64_t i = 0; i < rows * vectors; i++) {
          const int64_t c = i % vectors;
          double squares = 0, sum = 0;
          for (int64_t k = 0; k < kDepth; k++) {
            const double v = w[static_cast<size_t>((c / kColumns * kDepth + k) * kColumns + c % kColumns)];
            const double from = x[static_cast<size_t>(i / vectors * kDepth + k)], d = from - v;
            squares += d * d;
            sum += from * v;
          }
          const auto at = static_cast<size_t>(i);
          EXPECT_EQ(distance[at], squares) << set.name << ", vector " << c << " of " << vectors;
          EXPECT_EQ(product[at], sum) << set.name << ", vector " << c << " of " << vectors;
          EXPECT_EQ(moved[at], sum + offset[static_cast<size_t>(c)]) << set.name << ", vector " << c;
        }
      }
    }
}

TEST(Doubles, ExactDistancesToListedRowsAreThoseOfPlainLoops) {
  for (int64_t depth : {1, 5, 64}) {
    const std::vector<double> x = random(depth, 5), numbers = random(30 * depth, 6);
    const std::vector<float> w(numbers.begin(), numbers.end());
    for (int64_t count : {0, 1, 7, 8, 21}) {
      std::vector<int64_t> at(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; i++) at[static_cast<size_t>(i)] = i * 7 % 30;
      for (const DoublesSet& set : doubles_sets()) {
        std::vector<double> y(static_cast<size_t>(count + 1), -1e9);
        set.exact->distances_to(x.data(), depth, w.data(), at.data(), count, y.data());
        EXPECT_EQ(y.back(), -1e9) << set.name;
        for (int64_t i = 0; i < count; i++) {
          const float* row = w.data() + at[static_cast<size_t>(i)] * depth;
          double squares = 0;
          for (int64_t k = 0; k < depth; k++) {
            const double d = x[static_cast<size_t>(k)] - static_cast<double>(row[k]);
            squares += d * d;
          }
          EXPECT_EQ(y[static_cast<size_t>(i)], squares) << set.name << ", row " << i << " of " << count;
        }
      }
    }
  }
}

TEST(Doubles, NextBelowFindsTheFirstPosition) {
  for (const DoublesSet& set : doubles_sets())
    for (int64_t count : {0, 1, 7, 40, 200}) {
      std::vector<float> x(static_cast<size_t>(count), 2.0F);
      if (count > 0) x[0] = std::nanf("");
      EXPECT_EQ(set.loops->next_below(x.data(), 0, count, 2.0F), count) << set.name;
      for (int64_t at = 0; at < count; at += 3) {
        x[static_cast<size_t>(at)] = 1.5F;
        for (int64_t first : {at, at / 2}) {
          const int64_t got = set.loops->next_below(x.data(), first, count, 2.0F);
          EXPECT_EQ(got, (first + 2) / 3 * 3) << set.name << ", from " << first << " of " << count;
        }
      }
    }
}

TEST(Doubles, ExponentialsAreThoseOfTheLibrary) {
  std::vector<double> x = random(1001, 10);
  for (double& v : x) v *= 200;
  for (double v : {0.0, -0.0, 1e-300, 709.0, -706.0, 0.34657359027997264, -0.34657359027997264}) x.push_back(v);
  for (double v = 708.5; v < 709.78; v += 0.01) x.push_back(v);
  x.push_back(std::log(std::numeric_limits<double>::max()));
  for (const DoublesSet& set : doubles_sets())
    for (const DoubleLoops* loops : {set.loops, set.exact}) {
      std::vector<double> y = x;
      loops->exponentials(y.data(), static_cast<int64_t>(y.size()), 1);
      for (size_t i = 0; i < x.size(); i++) {
        const double want = std::exp(x[i]);
        if (want > 1e-307) {
          EXPECT_NEAR(y[i], want, 1e-15 * want) << set.name << ", x " << x[i];
        }
      }
      double special[] = {
          800,          -800,  std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
          std::nan(""), 709.79};
      loops->exponentials(special, 6, 1);
      EXPECT_EQ(special[5], std::numeric_limits<double>::infinity()) << set.name;
      EXPECT_EQ(special[0], std::numeric_limits<double>::infinity()) << set.name;
      EXPECT_EQ(special[1], 0) << set.name;
      EXPECT_EQ(special[2], std::numeric_limits<double>::infinity()) << set.name;
      EXPECT_EQ(special[3], 0) << set.name;
      EXPECT_TRUE(std::isnan(special[4])) << set.name;
    }
}

TEST(Doubles, LargestOfEachRowIsTheFirstOfEquals) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  std::mt19937 bits(11);
  for (const DoublesSet& set : doubles_sets())
    for (int64_t columns : {1, 2, 3, 10, 70})
      for (int64_t rows : {1, 3, 8, 29}) {
        std::vector<double> x(static_cast<size_t>(rows * columns));
        const double some[] = {nan, -inf, -1, 0, 2, inf};
        for (double& v : x) v = some[bits() % std::size(some)];
        std::vector<int64_t> got(static_cast<size_t>(rows + 1), -7);
        set.loops->largest(x.data(), rows, columns, got.data());
        EXPECT_EQ(got.back(), -7) << set.name;
        for (int64_t r = 0; r < rows; r++) {
          const double* row = x.data() + r * columns;
          int64_t want = 0;
          for (int64_t i = 1; i < columns; i++)
            if (row[i] > row[want] || (std::isnan(row[want]) && !std::isnan(row[i]))) want = i;
          EXPECT_EQ(got[static_cast<size_t>(r)], want) << set.name << ", row " << r << " of " << columns;
        }
      }
}

TEST(Doubles, LogisticsAndNormalizedRows) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  std::vector<double> x = random(37, 5);
  for (double v : {inf, -inf, nan, 800.0, -800.0, 0.0}) x.push_back(v);
  for (const DoublesSet& set : doubles_sets()) {
    std::vector<double> y(x.size());
    set.loops->logistics(x.data(), y.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); i++) {
      if (std::isnan(x[i])) {
        EXPECT_TRUE(std::isnan(y[i])) << set.name;
        continue;
      }
      const double want = 1 / (1 + std::exp(-x[i]));
      EXPECT_NEAR(y[i], want, 4e-14 * want) << set.name << ", x " << x[i];
    }
    for (int64_t columns : {1, 2, 3, 10, 150, 700}) {
      constexpr int64_t kRows = 300;
      std::vector<double> p = random(kRows * columns, 6), q(p.size());
      for (double& v : p) v = std::abs(v);
      for (int64_t i = 0; i < columns; i++) {
        p[static_cast<size_t>(250 * columns + i)] = 0;
        p[static_cast<size_t>(100 * columns + i)] *= 1e-303;
        p[static_cast<size_t>(20 * columns + i)] *= 1e290;
      }
      set.loops->normalize(p.data(), q.data(), kRows, columns);
      for (int64_t r = 0; r < kRows; r++) {
        double sum = 0;
        for (int64_t i = 0; i < columns; i++) sum += p[static_cast<size_t>(r * columns + i)];
        for (int64_t i = 0; i < columns; i++) {
          const auto at = static_cast<size_t>(r * columns + i);
          EXPECT_EQ(q[at], sum > 0 ? p[at] / sum : 1.0 / static_cast<double>(columns)) << set.name << ", row " << r;
        }
      }
    }
  }
}

/// One row of a classifier: several tiles of support vectors give the bits of the reference.
TEST(Doubles, SupportVectorsOfOneRowAreDividedAndExact) {
  constexpr int64_t kDepth = 20, kVectors = 1900;
  for (const char* kernel : {"rbf", "poly", "linear", "sigmoid"}) {
    const auto doubles = [](const ir::Shape& shape, unsigned seed) {
      ir::Tensor t = *ir::Tensor::zeros(ir::DType::fp64, shape);
      const std::vector<double> v = random(shape.count(), seed);
      std::copy(v.begin(), v.end(), t.view().as<double>());
      return t;
    };
    devices_test::Graph g;
    ir::Tensor begin = *ir::Tensor::zeros(ir::DType::int64, {kVectors + 1});
    ir::Tensor columns = *ir::Tensor::zeros(ir::DType::int64, {kVectors * kDepth});
    for (int64_t i = 0; i <= kVectors; i++) begin.view().as<int64_t>()[i] = i * kDepth;
    for (int64_t i = 0; i < kVectors * kDepth; i++) columns.view().as<int64_t>()[i] = i % kDepth;
    const auto number = [&](double v) {
      ir::Tensor t = *ir::Tensor::zeros(ir::DType::fp64, {});
      t.view().as<double>()[0] = v;
      return g.constant(t);
    };
    ir::Value* y = g.op("ml_svm_kernel", {{"x", g.input_of(doubles({kDepth}, 7))},
                                          {"row_begin", g.constant(begin)},
                                          {"columns", g.constant(columns)},
                                          {"values", g.constant(doubles({kVectors * kDepth}, 8))},
                                          {"kernel", g.constant(ir::Tensor::text(kernel))},
                                          {"gamma", number(0.05)},
                                          {"c", number(0.5)},
                                          {"degree", g.constant(ir::Tensor::scalar_i64(ir::DType::int32, 3))},
                                          {"exact", g.constant(ir::Tensor::boolean(true))}});
    ASSERT_NE(y, nullptr);
    g.function().body().set_outputs({y});
    const auto want = devices_test::run(g.function(), g.inputs(), false, 1);
    const auto got = devices_test::run(g.function(), g.inputs(), true, 2);
    ASSERT_TRUE(want.ok() && got.ok());
    EXPECT_EQ(got->kernels, "cpu.ml.svm");
    EXPECT_GT(plan::kernel_of(got->plan->sequence.steps.front())->choice->tiles, 1);
    for (int64_t i = 0; i < kVectors; i++)
      EXPECT_EQ(got->outputs[0].as<double>()[i], want->outputs[0].as<double>()[i]) << kernel << ", vector " << i;
  }
}

}  // namespace
}  // namespace moka::devices::cpu::vector
