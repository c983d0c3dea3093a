// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "devices/loops_sets.h"

namespace moka::devices::cpu::vector {
namespace {

/// Every 4096th float: all exponents, both signs, subnormal and special values.
std::vector<float> all_floats() {
  std::vector<float> v;
  for (uint64_t b = 0; b < (uint64_t{1} << 32); b += 4093) {
    const auto bits = static_cast<uint32_t>(b);
    float f;
    std::memcpy(&f, &bits, 4);
    v.push_back(f);
  }
  const float inf = std::numeric_limits<float>::infinity();
  for (float f : {0.0f, -0.0f, inf, -inf, std::nanf(""), 1.0f, -1.0f, 88.7228f, 88.7229f, -103.9f, -87.4f})
    v.push_back(f);
  for (float f = -12; f < 12; f += 1.3e-5f) v.push_back(f);
  return v;
}

/// The largest distance in units in the last place of the expected value. NaN and infinities must be exact. Below the
/// smallest normal number, that number is the unit.
void expect_close(Unary f, double (*truth)(double), double ulps) {
  const std::vector<float> x = all_floats();
  std::vector<float> y(x.size());
  for (const LoopsSet& s : loops_sets()) {
    s.loops->unary(f, x.data(), y.data(), static_cast<int64_t>(x.size()), 0, 0);
    double worst = 0;
    float at = 0;
    for (size_t i = 0; i < x.size(); i++) {
      const double t = truth(static_cast<double>(x[i]));
      const auto e = static_cast<float>(t);
      if (std::isnan(e)) {
        ASSERT_TRUE(std::isnan(y[i])) << s.name << " of " << x[i];
        continue;
      }
      if (std::isinf(e) || std::isinf(y[i])) {
        // Rounding may overflow if the expected value is within an ulp of the largest float.
        if (e != y[i]) {
          ASSERT_GT(std::fabs(t), 3.4028e38) << s.name << " of " << x[i] << " gives " << y[i];
        }
        continue;
      }
      const double unit = std::fabs(e) < 1.18e-38f ? 1.18e-38 : std::ldexp(1.0, std::ilogb(e) - 23);
      const double off = std::fabs(static_cast<double>(y[i]) - t) / unit;
      ASSERT_FALSE(std::isnan(off)) << s.name << " of " << x[i];
      if (off > worst) worst = off, at = x[i];
    }
    EXPECT_LE(worst, ulps) << s.name << " at " << at;
  }
}

TEST(Loops, Exp) {
  expect_close(
      Unary::exp, [](double v) { return std::exp(v); }, 2);
}
TEST(Loops, Exp2) {
  expect_close(
      Unary::exp2, [](double v) { return std::exp2(v); }, 2);
}
TEST(Loops, Log) {
  expect_close(
      Unary::log, [](double v) { return std::log(v); }, 2);
}
TEST(Loops, Tanh) {
  expect_close(
      Unary::tanh, [](double v) { return std::tanh(v); }, 3);
}
TEST(Loops, Sin) {
  expect_close(
      Unary::sin, [](double v) { return std::sin(v); }, 2);
}
TEST(Loops, Cos) {
  expect_close(
      Unary::cos, [](double v) { return std::cos(v); }, 2);
}
TEST(Loops, Tan) {
  expect_close(
      Unary::tan, [](double v) { return std::tan(v); }, 4);
}
TEST(Loops, Asin) {
  expect_close(
      Unary::asin, [](double v) { return std::asin(v); }, 3);
}
TEST(Loops, Acos) {
  expect_close(
      Unary::acos, [](double v) { return std::acos(v); }, 3);
}
TEST(Loops, Atan) {
  expect_close(
      Unary::atan, [](double v) { return std::atan(v); }, 3);
}
TEST(Loops, Erf) {
  expect_close(
      Unary::erf, [](double v) { return std::erf(v); }, 3);
}
TEST(Loops, Softplus) {
  expect_close(
      Unary::softplus, [](double v) { return std::log1p(std::exp(-std::fabs(v))) + (v < 0 ? 0 : v); }, 4);
}
TEST(Loops, Sigmoid) {
  expect_close(
      Unary::sigmoid, [](double v) { return 1 / (1 + std::exp(-v)); }, 4);
}
/// Below -88.7, e^-x overflows. The result, which is above -3e-37, is -0.
TEST(Loops, Silu) {
  expect_close(
      Unary::silu, [](double v) { return v < -88.72 ? (v < -3e38 ? v * 0 : -0.0) : v / (1 + std::exp(-v)); }, 4);
}
/// Lengths that leave a remainder after whole vectors.
TEST(Loops, SiluOfFew) {
  std::vector<float> x(40), y(41);
  for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i) * 0.3f - 5;
  for (const LoopsSet& s : loops_sets())
    for (size_t n = 1; n <= x.size(); n++) {
      y.assign(y.size(), 7.0f);
      s.loops->unary(Unary::silu, x.data(), y.data(), static_cast<int64_t>(n), 0, 0);
      for (size_t i = 0; i < n; i++) {
        const double v = static_cast<double>(x[i]);
        ASSERT_NEAR(y[i], v / (1 + std::exp(-v)), 1e-6);
      }
      ASSERT_EQ(y[n], 7.0f);
    }
}
TEST(Loops, Round) {
  expect_close(
      Unary::round, [](double v) { return std::nearbyint(v); }, 0);
}
TEST(Loops, Sqrt) {
  expect_close(
      Unary::sqrt, [](double v) { return std::sqrt(v); }, 0.5);
}

/// Pairs of numbers of all magnitudes, and of similar ones.
TEST(Loops, QuotientsRoundedDown) {
  std::mt19937 draw(3);
  std::vector<float> a, b;
  for (int i = 0; i < 400000; i++) {
    const auto bits = static_cast<uint32_t>(draw());
    float v, w;
    std::memcpy(&v, &bits, 4);
    const auto other = i % 2 == 0 ? static_cast<uint32_t>(draw()) : bits + static_cast<uint32_t>(draw() % 200000000);
    std::memcpy(&w, &other, 4);
    if (i % 8 == 0) v = std::round(std::fmod(v, 1000.0f)), w = std::round(std::fmod(w, 30.0f));
    a.push_back(v);
    b.push_back(w);
  }
  const auto n = static_cast<int64_t>(a.size());
  std::vector<float> quotient(a.size()), rest(a.size());
  for (const LoopsSet& s : loops_sets()) {
    s.loops->binary(Binary::floor_div, a.data(), 1, b.data(), 1, quotient.data(), n);
    s.loops->binary(Binary::mod, a.data(), 1, b.data(), 1, rest.data(), n);
    for (size_t i = 0; i < a.size(); i++) {
      const double v = static_cast<double>(a[i]), w = static_cast<double>(b[i]), r = std::fmod(v, w);
      if (std::isnan(r)) {
        ASSERT_TRUE(std::isnan(rest[i])) << s.name << " of " << v << ", " << w;
        continue;
      }
      const bool moves = r != 0 && (r < 0) != (w < 0);
      ASSERT_EQ(rest[i], moves ? static_cast<float>(r) + b[i] : static_cast<float>(r)) << s.name << v << ", " << w;
      // Larger quotients are rounded as in NumPy.
      if (std::fabs(v / w) >= 4194304) continue;
      ASSERT_EQ(quotient[i], std::floor(v / w)) << s.name << v << ", " << w;
    }
  }
}

TEST(Loops, SumsOfPixels) {
  std::mt19937 random(4);
  std::uniform_real_distribution<float> draw(-1, 1);
  for (const LoopsSet& s : loops_sets())
    for (int lanes : {8, 16})
      for (int64_t pixels : {1, 7, 8, 9, 49, 511, 512, 513, 3000}) {
        std::vector<float> x(static_cast<size_t>(pixels * lanes)), y(static_cast<size_t>(lanes));
        for (float& v : x) v = draw(random);
        s.loops->sum_pixels(x.data(), pixels, lanes, y.data());
        for (size_t lane = 0; lane < y.size(); lane++) {
          double sum = 0;
          for (size_t i = lane; i < x.size(); i += y.size()) sum += static_cast<double>(x[i]);
          ASSERT_NEAR(y[lane], sum, 2e-6 * std::sqrt(static_cast<double>(pixels))) << s.name << " " << pixels;
        }
      }
}

TEST(Loops, SumsOfManyLengths) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> x(5000);
  for (float& v : x) v = draw(random);
  for (const LoopsSet& s : loops_sets())
    for (int64_t n : {1, 2, 63, 64, 65, 1023, 1024, 1025, 5000}) {
      double sum = 0, square = 0, largest = -2;
      for (int64_t i = 0; i < n; i++) {
        const auto v = static_cast<double>(x[static_cast<size_t>(i)]);
        sum += v;
        square += v * v;
        largest = std::max(largest, v);
      }
      EXPECT_NEAR(s.loops->reduce(Reduce::sum, x.data(), n), sum, 1e-4) << s.name << n;
      EXPECT_NEAR(s.loops->reduce(Reduce::sum_square, x.data(), n), square, 1e-3) << s.name << n;
      EXPECT_EQ(s.loops->reduce(Reduce::max, x.data(), n), largest) << s.name << n;
    }
}

TEST(Loops, MaximumKeepsNaN) {
  for (const LoopsSet& s : loops_sets())
    for (size_t at : {0, 5, 70, 129}) {
      std::vector<float> x(130, 1.0f);
      x[at] = std::nanf("");
      EXPECT_TRUE(std::isnan(s.loops->reduce(Reduce::max, x.data(), 130))) << s.name << at;
      EXPECT_TRUE(std::isnan(s.loops->reduce(Reduce::min, x.data(), 130))) << s.name << at;
    }
}

}  // namespace
}  // namespace moka::devices::cpu::vector
