// SPDX-License-Identifier: Apache-2.0
#include "check/ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "moka/error.h"
#include "moka/input_sizes.h"

namespace moka::cli {
namespace {

std::vector<double> numbers_of(const Features& features, const std::string& name) {
  const auto& array = std::get<MultiArray>(features.at(name));
  std::vector<double> out;
  for (int64_t i = 0; i < array.count(); ++i) out.push_back(array.at(i));
  return out;
}

Features drawn(DataType type, double low, double high, uint64_t seed = 1) {
  return inputs_within({{"x", MultiArray(type, {20, 50})}}, {{"x", {low, high}}, {"other", {0, 1}}}, seed);
}

TEST(Ranges, IntegersReachBothEnds) {
  for (const DataType type : {DataType::int32, DataType::int8, DataType::uint16}) {
    const auto numbers = numbers_of(drawn(type, 2.5, 6), "x");
    EXPECT_EQ(std::set<double>(numbers.begin(), numbers.end()), (std::set<double>{3, 4, 5, 6}));
  }
  EXPECT_THROW(drawn(DataType::int32, 0.2, 0.8), Exception);
}

TEST(Ranges, FloatsFillTheRange) {
  for (const DataType type : {DataType::float16, DataType::float32, DataType::float64}) {
    const auto numbers = numbers_of(drawn(type, -4, 12), "x");
    const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
    EXPECT_TRUE(*least >= -4 && *least < -3 && *most > 11 && *most <= 12) << *least << ' ' << *most;
  }
}

TEST(Ranges, SeedsGiveOtherNumbersAndInputsAreIndependent) {
  const auto x = [](uint64_t seed) { return numbers_of(drawn(DataType::float32, 0, 1, seed), "x"); };
  EXPECT_EQ(x(1), x(1));
  EXPECT_NE(x(1), x(2));
  FunctionDescription function;
  for (const char* name : {"x", "y"}) {
    FeatureDescription input;
    input.name = name;
    input.array = {DataType::float32, {1000}, {}, {}};
    function.inputs.push_back(input);
  }
  Features inputs = random_inputs(function, 1);
  const auto first = numbers_of(inputs, "x"), other = numbers_of(inputs, "y");
  inputs = inputs_within(inputs, ranges_of({"y=0:1"}, function), 1);
  EXPECT_EQ(numbers_of(inputs, "x"), first);
  EXPECT_NE(numbers_of(inputs, "y"), first);
  EXPECT_NE(numbers_of(inputs, "y"), other);
}

}  // namespace
}  // namespace moka::cli
