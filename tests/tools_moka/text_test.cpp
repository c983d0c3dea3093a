// SPDX-License-Identifier: Apache-2.0
#include "text.h"

#include <gtest/gtest.h>

#include "io/utf8.h"

namespace moka::cli {
namespace {

TEST(Text, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.00 kB");
  EXPECT_EQ(format_bytes(17'300'000), "17.3 MB");
  EXPECT_EQ(format_bytes(999'999), "1.00 MB");
}

TEST(Text, Seconds) {
  EXPECT_EQ(format_seconds(0), "0 ns");
  EXPECT_EQ(format_seconds(840e-9), "840 ns");
  EXPECT_EQ(format_seconds(12.34e-6), "12.3 µs");
  EXPECT_EQ(format_seconds(0.9999), "1.00 s");
  EXPECT_EQ(format_seconds(123), "123 s");
}

TEST(Text, Numbers) {
  EXPECT_EQ(format_number(3), "3");
  EXPECT_EQ(format_number(-0.0), "0");
  EXPECT_EQ(format_number(0.1), "0.1");
  EXPECT_EQ(format_number(1e300), "1e+300");
  EXPECT_EQ(format_count(-1234567), "-1,234,567");
  EXPECT_EQ(format_count(123), "123");
  EXPECT_EQ(plural(1, "weight"), "1 weight");
  EXPECT_EQ(plural(2000, "weight"), "2,000 weights");
}

TEST(Text, MilTypes) {
  EXPECT_EQ(short_type("tensor<fp16, [1, 3, 8]>"), "fp16 1 x 3 x 8");
  EXPECT_EQ(short_type("tensor<fp32, []>"), "fp32");
  EXPECT_EQ(short_type("list<tensor<fp32, [1]>, 4>"), "list<tensor<fp32, [1]>, 4>");
  EXPECT_EQ(parse_tensor_type("tensor<int8, [4, 5]>").count, 20);
  EXPECT_EQ(parse_tensor_type("tensor<int8, [4, 5]>").element, "int8");
  EXPECT_EQ(parse_tensor_type("tensor<fp32, [?, 5]>").count, 0);
  EXPECT_EQ(parse_tensor_type("tensor<fp32, [9223372036854775807, 5]>").count, 0);
  EXPECT_EQ(parse_tensor_type("string").element, "string");
}

TEST(Text, Bars) {
  EXPECT_EQ(bar(0, 10), "");
  EXPECT_EQ(bar(1, 2), "██");
  EXPECT_EQ(bar(0.5, 3), "█▌");
  EXPECT_EQ(bar(7, 2), "██");
  EXPECT_EQ(bar(1e-9, 10), "");
}

TEST(Text, Shortened) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdef", 5), "abcd…");
  EXPECT_EQ(shortened("日本語の名前", 7), "日本語…");
  EXPECT_EQ(middle_shortened("abcdefghij", 7), "ab…ghij");
  EXPECT_LE(io::display_width(middle_shortened("日本語の名前日本語の名前", 9)), 9u);
}

TEST(Text, Nearest) {
  const std::vector<std::string> names{"wake", "estimatedSleep", "coffee"};
  EXPECT_EQ(nearest("wak", names), "wake");
  EXPECT_EQ(nearest("EstimatedSlep", names), "estimatedSleep");
  EXPECT_EQ(nearest("picture", names), std::nullopt);
  EXPECT_EQ(nearest("x", std::vector<std::string>{"y"}), std::nullopt);
}

TEST(Text, QuotedList) {
  const std::vector<std::string> names{"a", "b", "c"};
  EXPECT_EQ(quoted_list(names), "'a', 'b', 'c'");
  EXPECT_EQ(quoted_list(names, 1), "'a' and 2 more");
}

// numpy.percentile([1, 2, 4, 8], [0, 50, 90, 100]) with its default, linear interpolation.
TEST(Text, Percentiles) {
  const std::vector<double> samples{1, 2, 4, 8};
  EXPECT_DOUBLE_EQ(percentile(samples, 0), 1);
  EXPECT_DOUBLE_EQ(percentile(samples, 0.5), 3);
  EXPECT_DOUBLE_EQ(percentile(samples, 0.9), 6.8);
  EXPECT_DOUBLE_EQ(percentile(samples, 1), 8);
}

TEST(Text, ParsesWholeNumbersOnly) {
  EXPECT_EQ(parse_number("1e3"), 1000);
  EXPECT_EQ(parse_number("+2.5"), 2.5);
  EXPECT_EQ(parse_number("2x"), std::nullopt);
  EXPECT_EQ(parse_number("1e-400"), 0);
  EXPECT_EQ(parse_number("-1e400"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(parse_number("1e400x"), std::nullopt);
  EXPECT_EQ(parse_number(""), std::nullopt);
  EXPECT_EQ(parse_integer("-7"), -7);
  EXPECT_EQ(parse_integer("7.0"), std::nullopt);
  EXPECT_EQ(parse_integer("99999999999999999999"), std::nullopt);
}

}  // namespace
}  // namespace moka::cli
