// SPDX-License-Identifier: Apache-2.0
#include "base/pixels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace moka {
namespace {

TEST(Pixels, FloatsAreRoundedToTheEvenByteAndSaturate) {
  std::vector<float> floats{-0.0f,
                            std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::denorm_min(),
                            std::numeric_limits<float>::max(),
                            std::nextafter(0.5f, 1.0f),
                            std::nextafter(254.5f, 0.0f)};
  for (int i = -2048; i < 4096; i++) floats.push_back(static_cast<float>(i) / 8);
  for (size_t first = 0; first < 20; first++) {
    const size_t n = floats.size() - first;
    std::vector<uint8_t> bytes(n + 1, 77);
    float_to_byte(floats.data() + first, bytes.data(), n);
    for (size_t i = 0; i < n; i++) {
      const float v = floats[first + i];
      ASSERT_EQ(bytes[i], std::isnan(v) ? 0 : std::lrint(std::clamp(v, 0.0f, 255.0f))) << v;
    }
    EXPECT_EQ(bytes[n], 77);
  }
}

}  // namespace
}  // namespace moka
