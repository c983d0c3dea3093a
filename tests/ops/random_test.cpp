// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/operation_util.h"

namespace moka::ops {
namespace {

using namespace ir;
using test::call;

constexpr int64_t kDraws = 40000;

Tensor draw(const char* op, std::vector<NamedArg> args, uint64_t stream = 1, int64_t n = kDraws) {
  args.emplace_back("shape", Tensor::i32({n}));
  return call(op, std::move(args), stream);
}

struct Moments {
  double mean = 0, variance = 0, skew = 0, kurtosis = 0;
};

Moments moments(const Tensor& t) {
  Moments m;
  const auto n = static_cast<double>(t.count());
  for (int64_t i = 0; i < t.count(); i++) m.mean += load_f64(t.view(), i) / n;
  for (int64_t i = 0; i < t.count(); i++) {
    const double d = load_f64(t.view(), i) - m.mean;
    m.variance += d * d / n;
    m.skew += d * d * d / n;
    m.kurtosis += d * d * d * d / n;
  }
  m.skew /= std::pow(m.variance, 1.5);
  m.kurtosis /= m.variance * m.variance;
  return m;
}

// Standard errors of the estimates: mean sd/sqrt(n), variance var*sqrt((k-1)/n), skew sqrt(6/n), kurtosis sqrt(24/n)
// for a normal distribution. Five of them are allowed.
TEST(Random, UniformIsUniform) {
  const Tensor t = draw("random_uniform", {{"low", -2.0f}, {"high", 4.0f}, {"seed", 5}});
  const Moments m = moments(t);
  const double n = kDraws;
  EXPECT_NEAR(m.mean, 1, 5 * std::sqrt(3 / n));
  EXPECT_NEAR(m.variance, 3, 5 * 3 * std::sqrt(0.8 / n));
  int bins[12] = {};
  for (float v : t.as<float>()) {
    ASSERT_GE(v, -2);
    ASSERT_LT(v, 4);
    bins[static_cast<int>((v + 2) * 2)]++;
  }
  double chi = 0;
  for (int b : bins) chi += (b - n / 12) * (b - n / 12) / (n / 12);
  EXPECT_LT(chi, 36.0);  // 11 degrees of freedom: exceeded once in 6000
}

TEST(Random, UniformHalfStaysBelowHigh) {
  const Tensor t =
      draw("random_uniform",
           {{"low", Tensor::scalar(DType::fp16, 1)}, {"high", Tensor::scalar(DType::fp16, 1.01)}, {"seed", 5}});
  ASSERT_EQ(t.dtype(), DType::fp16);
  const double high = load_f64(Tensor::scalar(DType::fp16, 1.01).view(), 0);
  for (int64_t i = 0; i < t.count(); i++) {
    ASSERT_GE(load_f64(t.view(), i), 1);
    ASSERT_LT(load_f64(t.view(), i), high);
  }
}

TEST(Random, NormalIsNormal) {
  const Tensor t = draw("random_normal", {{"mean", 3.0f}, {"stddev", 2.0f}, {"seed", 5}}, 1, kDraws + 1);
  const Moments m = moments(t);
  const double n = kDraws;
  EXPECT_NEAR(m.mean, 3, 5 * 2 / std::sqrt(n));
  EXPECT_NEAR(m.variance, 4, 5 * 4 * std::sqrt(2 / n));
  EXPECT_NEAR(m.skew, 0, 5 * std::sqrt(6 / n));
  EXPECT_NEAR(m.kurtosis, 3, 5 * std::sqrt(24 / n));
  int outside = 0;
  for (float v : t.as<float>()) outside += std::fabs(v - 3) > 2 * 1.959964f;
  EXPECT_NEAR(outside / n, 0.05, 5 * std::sqrt(0.05 * 0.95 / n));
}

TEST(Random, NeighborsAreIndependent) {
  const Tensor t = draw("random_normal", {{"seed", 9}});
  double product = 0;
  for (int64_t i = 1; i < t.count(); i++) product += load_f64(t.view(), i - 1) * load_f64(t.view(), i);
  EXPECT_NEAR(product / kDraws, 0, 5 / std::sqrt(double{kDraws}));
}

TEST(Random, BernoulliHasItsProbability) {
  const Tensor t = draw("random_bernoulli", {{"prob", 0.3f}, {"seed", 5}});
  double ones = 0;
  for (float v : t.as<float>()) {
    ASSERT_TRUE(v == 0 || v == 1);
    ones += static_cast<double>(v);
  }
  EXPECT_NEAR(ones / kDraws, 0.3, 5 * std::sqrt(0.21 / kDraws));
}

TEST(Random, CategoricalFollowsWeights) {
  const double expected[] = {0.1, 0.2, 0.0, 0.7};
  const float probabilities[] = {0.1f, 0.2f, 0.0f, 0.7f};
  float logits[4];
  for (int i = 0; i < 4; i++) logits[i] = std::log(probabilities[i]) + 30;
  for (const char* mode : {"probs", "logits"}) {
    const Tensor x =
        Tensor::f32({4}, mode[0] == 'p' ? std::span<const float>(probabilities) : std::span<const float>(logits));
    const Tensor t = call("random_categorical", {{"x", x}, {"mode", mode}, {"size", int{kDraws}}, {"seed", 5}}, 1);
    double counts[4] = {};
    for (float v : t.as<float>()) counts[static_cast<int>(v)]++;
    for (int i = 0; i < 4; i++) {
      EXPECT_NEAR(counts[i] / kDraws, expected[i], 5 * std::sqrt(expected[i] * (1 - expected[i]) / kDraws))
          << mode << i;
    }
  }
}

/// The largest distance of the empirical distribution from `cdf`. It exceeds 1.63 / sqrt(n) in one of a hundred
/// samples.
template <class Cdf>
double kolmogorov_smirnov(const Tensor& t, Cdf cdf) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.count(); i++) v.push_back(load_f64(t.view(), i));
  std::sort(v.begin(), v.end());
  const auto n = static_cast<double>(v.size());
  double distance = 0;
  // Equal draws, as float16 has them, are one step of the empirical distribution.
  for (size_t i = 0; i < v.size();) {
    size_t end = i;
    while (end < v.size() && v[end] == v[i]) end++;
    distance = std::max(distance, std::fabs(cdf(v[i]) - static_cast<double>(end) / n));
    i = end;
  }
  return distance;
}

constexpr DType kDrawn[] = {DType::fp16, DType::fp32};

class RandomOf : public testing::TestWithParam<DType> {
 protected:
  static Tensor number(double v) { return Tensor::scalar(GetParam(), v); }
};

TEST_P(RandomOf, UniformFollowsItsDistribution) {
  const Tensor t = draw("random_uniform", {{"low", number(-2)}, {"high", number(6)}, {"seed", 11}});
  ASSERT_EQ(t.dtype(), GetParam());
  // Draws are rounded to multiples of up to 1/256, so each represents the numbers around it.
  const double step = GetParam() == DType::fp16 ? 4.0 / 1024 : 0;
  EXPECT_LT(kolmogorov_smirnov(t, [&](double v) { return std::min(1.0, (v + step / 2 + 2) / 8); }),
            1.63 / std::sqrt(kDraws) + step / 8);
}

TEST_P(RandomOf, NormalFollowsItsDistribution) {
  const Tensor t = draw("random_normal", {{"mean", number(0.5)}, {"stddev", number(2)}, {"seed", 11}});
  ASSERT_EQ(t.dtype(), GetParam());
  const Moments m = moments(t);
  EXPECT_NEAR(m.mean, 0.5, 5 * 2 / std::sqrt(double{kDraws}));
  EXPECT_NEAR(m.variance, 4, 5 * 4 * std::sqrt(2.0 / kDraws));
  const double half_step = GetParam() == DType::fp16 ? 2.0 / 1024 : 0;
  EXPECT_LT(kolmogorov_smirnov(t, [&](double v) { return std::erfc(-(v + half_step - 0.5) / 2 / std::sqrt(2.0)) / 2; }),
            1.63 / std::sqrt(kDraws) + half_step);
}

TEST_P(RandomOf, BernoulliFollowsItsDistribution) {
  for (double prob : {0.0, 0.125, 0.5, 1.0}) {
    const Tensor t = draw("random_bernoulli", {{"prob", number(prob)}, {"seed", 11}});
    ASSERT_EQ(t.dtype(), GetParam());
    EXPECT_NEAR(moments(t).mean, prob, 5 * std::sqrt(prob * (1 - prob) / kDraws) + 1e-9) << prob;
  }
}

TEST_P(RandomOf, CategoricalFollowsItsDistribution) {
  const double weights[] = {1, 2, 4, 1};
  for (const char* mode : {"probs", "logits"}) {
    const Tensor x = *Tensor::zeros(GetParam(), {4});
    for (int64_t i = 0; i < 4; i++)
      store_f64(x.view(), i, mode[0] == 'p' ? weights[i] / 8 : std::log2(weights[i]) * 0.693147);
    const Tensor t = call("random_categorical", {{"x", x}, {"mode", mode}, {"size", int{kDraws}}, {"seed", 11}});
    ASSERT_EQ(t.dtype(), GetParam());
    double counts[4] = {}, chi = 0;
    for (int64_t i = 0; i < t.count(); i++) counts[static_cast<int>(load_f64(t.view(), i))]++;
    for (int i = 0; i < 4; i++) chi += std::pow(counts[i] - kDraws * weights[i] / 8, 2) / (kDraws * weights[i] / 8);
    EXPECT_LT(chi, 16.3) << mode;  // 3 degrees of freedom: exceeded once in 1000
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RandomOf, testing::ValuesIn(kDrawn),
                         [](const auto& info) { return std::string(to_string(info.param)); });

/// The deviation z that belongs to a drawn probability Phi(mean + scale * sd * z).
double deviation_of(double p, double mean, double deviation) {
  double low = -20, high = 20;
  for (int i = 0; i < 60; i++) {
    const double z = (low + high) / 2;
    (std::erfc(-(mean + deviation * z) / std::sqrt(2.0)) / 2 < p ? low : high) = z;
  }
  return low;
}

TEST(Random, ProbitSampleIsATruncatedNormal) {
  constexpr int64_t kSamples = 20000;
  const auto number = [](double v) { return Tensor::scalar(DType::fp64, v); };
  const auto phi = [](double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; };
  for (double limit : {0.5, 1.5, 30.0}) {
    Tensor z = *Tensor::zeros(DType::fp64, {kSamples});
    for (int64_t i = 0; i < kSamples; i++) {
      const Tensor p = call("ml_probit_sample", {{"mean", number(0.2)},
                                                 {"variance", number(0.25)},
                                                 {"scale", number(1.5)},
                                                 {"truncation", number(limit)},
                                                 {"seed", static_cast<int>(i)}});
      store_f64(z.view(), i, deviation_of(load_f64(p.view(), 0), 0.2, 0.75));
      ASSERT_LE(std::fabs(load_f64(z.view(), i)), limit + 1e-9);
    }
    const double below = phi(-limit), all = phi(limit) - below;
    EXPECT_LT(kolmogorov_smirnov(z, [&](double v) { return (phi(v) - below) / all; }),
              1.63 / std::sqrt(double{kSamples}))
        << limit;
  }
  const Tensor plain = call("ml_probit_sample", {{"mean", number(0.2)}, {"variance", number(0)}, {"seed", 1}});
  EXPECT_NEAR(load_f64(plain.view(), 0), phi(0.2), 1e-15);
}

TEST(Random, SeedRepeatsAndStreamsDiffer) {
  for (const char* op : {"random_uniform", "random_normal", "random_bernoulli"}) {
    EXPECT_EQ(draw(op, {{"seed", 7}}, 1), draw(op, {{"seed", 7}}, 2)) << op;
    EXPECT_FALSE(draw(op, {{"seed", 7}}) == draw(op, {{"seed", 8}})) << op;
    EXPECT_EQ(draw(op, {}, 3), draw(op, {}, 3)) << op;
    EXPECT_FALSE(draw(op, {}, 3) == draw(op, {}, 4)) << op;
    EXPECT_FALSE(draw(op, {{"seed", -1}}, 3) == draw(op, {{"seed", 3}}, 4)) << op;
  }
}

TEST(Random, RefusesBadParameters) {
  EXPECT_TRUE(test::refuses("random_bernoulli", {{"shape", Tensor::i32({2})}, {"prob", 1.5f}}, "prob"));
  EXPECT_TRUE(test::refuses("random_uniform", {{"shape", Tensor::i32({2})}, {"low", 2.0f}, {"high", 1.0f}}, "high"));
  EXPECT_TRUE(test::refuses("random_normal", {{"shape", Tensor::i32({2})}, {"stddev", -1.0f}}, "stddev"));
  EXPECT_TRUE(test::refuses("random_normal", {{"shape", Tensor::i32({2, -3})}}, "shape"));
  EXPECT_TRUE(test::refuses("random_normal", {{"shape", Tensor::i32({1 << 30, 1 << 30, 1 << 30})}}, ""));
  EXPECT_TRUE(test::refuses("random_categorical",
                            {{"x", Tensor::f32({2}, std::vector<float>{0, 0})}, {"mode", "probs"}},
                            "not a distribution"));
  EXPECT_TRUE(
      test::refuses("random_categorical", {{"x", Tensor::f32({2}, std::vector<float>{1, 0})}, {"size", 0}}, "size"));
}

}  // namespace
}  // namespace moka::ops
