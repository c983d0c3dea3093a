// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "devices/loops_sets.h"

namespace moka::devices::cpu::vector {
namespace {

TEST(Loops, QuotientsOfIntegers) {
  std::mt19937 draw(4);
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();
  std::vector<int32_t> a, b;
  for (const int32_t v : {kLeast, kLeast + 1, -7, -1, 0, 1, 7, kMost})
    for (const int32_t w : {kLeast, kLeast + 1, -7, -1, 0, 1, 7, kMost}) a.push_back(v), b.push_back(w);
  for (int i = 0; i < 100000; i++) {
    const auto w = static_cast<int32_t>(draw()) >> (i % 31), times = static_cast<int32_t>(draw()) >> (i % 29);
    b.push_back(w);
    a.push_back(i % 3 == 0 ? static_cast<int32_t>(static_cast<uint32_t>(w) * static_cast<uint32_t>(times))
                           : static_cast<int32_t>(draw()));
  }
  const auto n = static_cast<int64_t>(a.size());
  std::vector<int32_t> quotient(a.size()), rest(a.size());
  for (const LoopsSet& s : loops_sets())
    for (const bool one : {false, true})  // the same divisor for several numbers, or one for each
      for (int64_t i = 0; i < n; i += one ? 7 : n) {
        const int64_t count = one ? std::min<int64_t>(7, n - i) : n;
        s.loops->integers(Integers::floor_div, &a[i], 1, &b[i], one ? 0 : 1, &quotient[i], count);
        s.loops->integers(Integers::mod, &a[i], 1, &b[i], one ? 0 : 1, &rest[i], count);
        for (int64_t k = i; k < i + count; k++) {
          const int64_t v = a[k], w = b[one ? i : k];
          const auto down = w == 0 ? 0 : static_cast<int64_t>(std::floor(static_cast<long double>(v) / w));
          ASSERT_EQ(quotient[k], static_cast<int32_t>(down)) << s.name << " " << v << ", " << w;
          ASSERT_EQ(rest[k], w == 0 ? 0 : v - down * w) << s.name << " " << v << ", " << w;
        }
      }
}

TEST(Loops, FunctionsOfIntegers) {
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();
  const int32_t some[] = {kLeast, kLeast + 1, -70000, -7, -1, 0, 1, 7, 70000, kMost - 1, kMost};
  std::vector<int32_t> a, b;
  for (const int32_t v : some)
    for (const int32_t w : some) a.push_back(v), b.push_back(w);
  const auto wrapped = [](int64_t v) { return static_cast<int32_t>(static_cast<uint32_t>(v & 0xffffffff)); };
  for (const LoopsSet& s : loops_sets())
    for (const auto& [x_step, y_step] : {std::pair(1, 1), {1, 0}, {0, 1}, {0, 0}})
      for (size_t i = 0; i < a.size(); i += 40) {
        const auto n = static_cast<int64_t>(std::min<size_t>(a.size() - i, 77));
        const auto check = [&](Integers f, auto expected) {
          using Out = decltype(expected(int64_t{}, int64_t{}));
          std::vector<Out> y(static_cast<size_t>(n));
          s.loops->integers(f, &a[i], x_step, &b[i], y_step, y.data(), n);
          for (size_t k = 0; k < y.size(); k++) {
            const int64_t v = a[i + (x_step == 0 ? 0 : k)], w = b[i + (y_step == 0 ? 0 : k)];
            ASSERT_EQ(y[k], expected(v, w)) << s.name << " " << static_cast<int>(f) << ": " << v << ", " << w;
          }
        };
        check(Integers::add, [&](int64_t v, int64_t w) { return wrapped(v + w); });
        check(Integers::sub, [&](int64_t v, int64_t w) { return wrapped(v - w); });
        check(Integers::mul, [&](int64_t v, int64_t w) { return wrapped(v * w); });
        check(Integers::max, [](int64_t v, int64_t w) { return static_cast<int32_t>(std::max(v, w)); });
        check(Integers::min, [](int64_t v, int64_t w) { return static_cast<int32_t>(std::min(v, w)); });
        check(Integers::equal, [](int64_t v, int64_t w) { return static_cast<uint8_t>(v == w); });
        check(Integers::not_equal, [](int64_t v, int64_t w) { return static_cast<uint8_t>(v != w); });
        check(Integers::less, [](int64_t v, int64_t w) { return static_cast<uint8_t>(v < w); });
        check(Integers::less_equal, [](int64_t v, int64_t w) { return static_cast<uint8_t>(v <= w); });
        check(Integers::greater, [](int64_t v, int64_t w) { return static_cast<uint8_t>(v > w); });
        check(Integers::greater_equal, [](int64_t v, int64_t w) { return static_cast<uint8_t>(v >= w); });
      }
}

TEST(Loops, FunctionsOfBooleans) {
  std::vector<uint8_t> a, b, y(200);
  for (int i = 0; i < 200; i++) a.push_back(i % 3 == 0 ? 0 : i % 7 == 0 ? 200 : 1), b.push_back(i % 2 == 0 ? 0 : 2);
  for (const LoopsSet& s : loops_sets())
    for (const Booleans f : {Booleans::both, Booleans::either, Booleans::one})
      for (const int step : {0, 1}) {
        s.loops->booleans(f, a.data(), 1, b.data() + 1, step, y.data(), 199);
        for (size_t i = 0; i < 199; i++) {
          const bool v = a[i] != 0, w = b[1 + (step == 0 ? 0 : i)] != 0;
          const bool expected = f == Booleans::both ? v && w : f == Booleans::either ? v || w : v != w;
          ASSERT_EQ(y[i], expected ? 1 : 0) << s.name << " " << i;
        }
      }
}

}  // namespace
}  // namespace moka::devices::cpu::vector
