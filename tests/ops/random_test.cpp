#include <gtest/gtest.h>

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

TEST(Random, NeighboursAreIndependent) {
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
                            {{"x", Tensor::f32({2}, std::vector<float>{0, 0})}, {"mode", "probs"}}, "no distribution"));
  EXPECT_TRUE(
      test::refuses("random_categorical", {{"x", Tensor::f32({2}, std::vector<float>{1, 0})}, {"size", 0}}, "size"));
}

}  // namespace
}  // namespace moka::ops
