// SPDX-License-Identifier: Apache-2.0
#include "base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace moka {
namespace {

/// Compares single and bulk conversions (which use the processor's instructions) bit by bit. NaNs keep the bits that
/// fit and become quiet.
TEST(Half, EveryPatternIsConvertedTheSameWay) {
  std::vector<uint16_t> halves(1 << 16), back(halves.size());
  for (size_t i = 0; i < halves.size(); i++) halves[i] = static_cast<uint16_t>(i);
  std::vector<float> floats(halves.size());
  half_to_float(halves.data(), floats.data(), halves.size());
  float_to_half(floats.data(), back.data(), floats.size());
  for (uint16_t h : halves) {
    const uint16_t expected = std::isnan(floats[h]) ? h | 0x200 : h;
    ASSERT_EQ(std::bit_cast<uint32_t>(half::to_float(h)), std::bit_cast<uint32_t>(floats[h])) << h;
    ASSERT_EQ(back[h], expected) << h;
    ASSERT_EQ(half::from_float(floats[h]), expected) << h;
  }
}

TEST(Half, FloatsAreRoundedTheSameWay) {
  std::mt19937 random(1);
  std::vector<float> floats(1 << 18);
  for (size_t i = 0; i < floats.size(); i++) {
    const uint32_t bits = random();
    // Half of them of a size that fits.
    floats[i] = i % 2 == 0 ? std::bit_cast<float>(bits)
                           : std::ldexp(static_cast<float>(bits) / 4294967296.0f - 0.5f, static_cast<int>(i % 48) - 28);
  }
  std::vector<uint16_t> halves(floats.size());
  float_to_half(floats.data(), halves.data(), floats.size());
  for (size_t i = 0; i < floats.size(); i++) ASSERT_EQ(half::from_float(floats[i]), halves[i]) << floats[i];
}

}  // namespace
}  // namespace moka
