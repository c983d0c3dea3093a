// SPDX-License-Identifier: Apache-2.0
#include "checking/measure.h"

#include <gtest/gtest.h>

#include <cmath>

namespace moka::checking {
namespace {

MultiArray doubles(std::vector<double> values) {
  MultiArray out(DataType::float64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), out.as<double>().begin());
  return out;
}

TEST(Measure, SignalToNoiseOfAnyMagnitude) {
  for (const double magnitude : {1.0, 1e200, 1e-200}) {
    OutputError error;
    add_error(error, doubles({1.1 * magnitude, 0}), doubles({magnitude, 0}), false);
    EXPECT_NEAR(error.snr(), 20, 1e-9) << magnitude;  // 10 log10(1 / 0.1^2)
  }
  OutputError error;
  add_error(error, doubles({1e-200}), doubles({1e-200}), false);
  EXPECT_EQ(error.snr(), std::numeric_limits<double>::infinity());
  add_error(error, doubles({1.1e200}), doubles({1e200}), false);
  add_error(error, doubles({0}), doubles({0}), false);
  EXPECT_NEAR(error.snr(), 20, 1e-9);
}

TEST(Measure, OppositeNumbersAtTheEndOfTheRange) {
  const double most = std::numeric_limits<double>::max();
  OutputError error;
  add_error(error, doubles({-most}), doubles({most}), false);
  EXPECT_NEAR(error.snr(), -20 * std::log10(2), 1e-9);
}

}  // namespace
}  // namespace moka::checking
