// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "devices/graph_util.h"

/// Nearest neighbors on the CPU: the bits of the reference, whatever the numbers are.
namespace moka::devices_test {
namespace {

using ir::DType;
using ir::Tensor;
using ir::Value;

struct Samples {
  int64_t count, depth, rows, k, classes;
  std::string weighting = "uniform";
};

using Numbers = std::function<double(std::mt19937&)>;

void expect_neighbors_of_reference(const std::string& name, const Samples& s, const Numbers& sample,
                                   const Numbers& asked) {
  std::mt19937 bits(7);
  Tensor samples = *Tensor::zeros(DType::fp32, {s.count, s.depth}), labels = *Tensor::zeros(DType::int64, {s.count}),
         x = *Tensor::zeros(DType::fp64, {s.rows, s.depth});
  for (float& v : samples.mut<float>()) v = static_cast<float>(sample(bits));
  for (double& v : x.mut<double>()) v = asked(bits);
  // Rows that are samples.
  for (int64_t i = 0; i < s.depth; i++)
    x.mut<double>()[static_cast<size_t>(i)] = static_cast<double>(samples.mut<float>()[static_cast<size_t>(i)]);
  for (int64_t i = 0; i < s.count; i++)
    labels.mut<int64_t>()[static_cast<size_t>(i)] = i < s.classes ? i : static_cast<int64_t>(bits()) % s.classes;
  Graph g;
  Value* y = g.op("ml_nearest_neighbors", {{"x", g.input_of(x)},
                                           {"samples", g.constant(samples)},
                                           {"labels", g.constant(labels)},
                                           {"classes", Tensor::scalar_i64(DType::int64, s.classes)},
                                           {"k", Tensor::scalar_i64(DType::int64, s.k)},
                                           {"weighting", g.constant(Tensor::text(s.weighting))},
                                           {"rows", Tensor::boolean(true)}});
  ASSERT_NE(y, nullptr) << name;
  g.function().body().set_outputs({y});
  const auto want = run(g.function(), g.inputs(), false, 1);
  ASSERT_TRUE(want.ok()) << name;
  for (int threads : {1, 3}) {
    const auto got = run(g.function(), g.inputs(), true, threads);
    ASSERT_TRUE(got.ok()) << name;
    EXPECT_EQ(got->kernels, "cpu.ml.neighbors") << name;
    for (int64_t i = 0; i < s.rows * s.classes; i++)
      EXPECT_EQ(got->outputs[0].as<double>()[i], want->outputs[0].as<double>()[i])
          << name << ", row " << i / s.classes << ", class " << i % s.classes << ", threads " << threads;
  }
}

const Numbers kNormal = [](std::mt19937& bits) { return std::normal_distribution<double>()(bits); };

TEST(Neighbors, OfManySizesAreThoseOfTheReference) {
  for (const char* weighting : {"uniform", "inverse_distance"})
    for (int64_t count : {1, 5, 33, 1000})
      for (int64_t depth : {1, 3, 64})
        for (int64_t rows : {1, 17, 130})
          for (int64_t k : {1, 5, 400})
            expect_neighbors_of_reference(cat(count, " samples of ", depth, ", ", rows, " rows, k ", k),
                                          {count, depth, rows, k, std::min<int64_t>(count, 3), weighting}, kNormal,
                                          kNormal);
}

TEST(Neighbors, AtEqualDistancesAreTheFirst) {
  const Numbers whole = [](std::mt19937& bits) { return static_cast<double>(bits() % 2); };
  const Numbers same = [](std::mt19937&) { return 3.0; };
  for (const char* weighting : {"uniform", "inverse_distance"}) {
    expect_neighbors_of_reference("zeros and ones", {2000, 6, 40, 7, 5, weighting}, whole, whole);
    expect_neighbors_of_reference("one point", {2000, 6, 40, 7, 5, weighting}, same, same);
    expect_neighbors_of_reference("one point from others", {2000, 6, 40, 7, 5, weighting}, same, kNormal);
  }
}

TEST(Neighbors, FarFromZeroOrCloseTogether) {
  const auto around = [](double mean, double width) {
    return Numbers([=](std::mt19937& bits) { return mean + width * std::normal_distribution<double>()(bits); });
  };
  for (const double mean : {1e3, 1e6, 1e20, 1e37})
    for (const double width : {1e-7, 1e-3, 1.0})
      expect_neighbors_of_reference(cat("around ", mean, ", width ", width), {1500, 9, 30, 5, 4, "inverse_distance"},
                                    around(mean, mean * width), around(mean, mean * width));
  expect_neighbors_of_reference("tiny numbers", {1500, 9, 30, 5, 4}, around(0, 1e-30), around(0, 1e-30));
  expect_neighbors_of_reference("denormal numbers", {1500, 9, 30, 5, 4}, around(0, 1e-42), around(0, 1e-42));
  expect_neighbors_of_reference("rows far away", {1500, 9, 30, 5, 4}, kNormal, around(1e200, 1e190));
}

TEST(Neighbors, OfNumbersThatAreNotFinite) {
  const auto sometimes = [](double special, uint32_t one_in = 100) {
    return Numbers([=](std::mt19937& bits) {
      const double v = std::normal_distribution<double>()(bits);
      return bits() % one_in == 0 ? special : v;
    });
  };
  for (const double special :
       {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), std::nan(""), 3e38}) {
    expect_neighbors_of_reference(cat("samples with ", special), {1500, 9, 60, 5, 4}, sometimes(special), kNormal);
    expect_neighbors_of_reference(cat("rows with ", special), {1500, 9, 60, 5, 4}, kNormal, sometimes(special));
    expect_neighbors_of_reference(cat("both with ", special), {1500, 9, 60, 5, 4}, sometimes(special),
                                  sometimes(special));
    for (const int64_t count : {5, 40, 700})
      for (const int64_t k : {2, 30, 700})
        expect_neighbors_of_reference(cat(count, " samples with ", special, ", k ", k), {count, 2, 9, k, 4},
                                      sometimes(special, 8), kNormal);
  }
}

}  // namespace
}  // namespace moka::devices_test
