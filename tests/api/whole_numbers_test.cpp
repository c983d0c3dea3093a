// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "api/api_util.h"

/// Integer inputs take whole numbers of other types that fit, and name the first one that does not.
namespace moka::test {
namespace {

Model of_ids() {
  return Model::from_mil(
      program("tensor<int32, [2, 3]> ids", "tensor<int32, [2, 3]> y = add(x = ids, y = int32(1));", "y"));
}

template <class T>
MultiArray array(DataType type, const std::vector<T>& numbers) {
  MultiArray out(type, {2, static_cast<int64_t>(numbers.size()) / 2});
  std::copy(numbers.begin(), numbers.end(), out.as<T>().begin());
  return out;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& e) {
    EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
    return e.what();
  }
  return "no error";
}
std::string refusal(const FeatureValue& ids) {
  return refusal([&] { of_ids().predict({{"ids", ids}}); });
}

TEST(WholeNumbers, OfOtherTypesConvert) {
  const std::vector<double> expected{1, 0, 8, 2147483648.0 - 1, -2147483647, 3};
  const std::vector<double> doubles{0, -1, 7, 2147483646, -2147483648.0, 2};
  const std::vector<int64_t> longs{0, -1, 7, 2147483646, -2147483648LL, 2};
  for (const MultiArray& ids : {array(DataType::float64, doubles), array(DataType::int64, longs)})
    EXPECT_EQ(values(of_ids().predict({{"ids", ids}}).array("y")), expected);
  EXPECT_EQ(values(of_ids().predict({{"ids", array<float>(DataType::float32, {1, 2, 3, -4, 5, 6})}}).array("y")),
            (std::vector<double>{2, 3, 4, -3, 6, 7}));
}

TEST(WholeNumbers, ThatDoNotFitAreNamed) {
  const std::string expected = "input 'ids': expected whole numbers of type int32, got ";
  EXPECT_EQ(refusal(array<double>(DataType::float64, {0, 1, 2, 3, 3.7, 4.5})), expected + "3.7 at [1, 1]");
  EXPECT_EQ(refusal(array<float>(DataType::float32, {0, 1, -2.5f, 3, 4, 5})), expected + "-2.5 at [0, 2]");
  EXPECT_EQ(refusal(array<int64_t>(DataType::int64, {int64_t{1} << 40, 0, 0, 0, 0, 0})),
            expected + "1099511627776 at [0, 0]");
  EXPECT_EQ(refusal(array<uint32_t>(DataType::uint32, {0, 0, 0, 0, 0, 2147483648u})),
            expected + "2147483648 at [1, 2]");
  EXPECT_EQ(refusal(array<uint64_t>(DataType::uint64, {0, UINT64_MAX, 0, 0, 0, 0})),
            expected + "18446744073709551615 at [0, 1]");
  EXPECT_EQ(refusal(array<double>(DataType::float64, {0, 0, 0, -2147483649.0, 0, 0})),
            expected + "-2147483649 at [1, 0]");
  EXPECT_NE(refusal(array<float>(DataType::float32, {0, NAN, 0, 0, 0, 0})).find("nan at [0, 1]"), std::string::npos);
  EXPECT_NE(refusal(array<double>(DataType::float64, {0, 0, 0, 0, 0, HUGE_VAL})).find("inf at [1, 2]"),
            std::string::npos);
}

TEST(WholeNumbers, OfAnyStridesAreLookedAt) {
  // The transposed view of [[0, 1], [2, 3], [4, 5.5]].
  std::vector<double> numbers{0, 1, 2, 3, 4, 5.5};
  EXPECT_EQ(refusal(MultiArray(numbers.data(), DataType::float64, {2, 3}, {1, 2})),
            "input 'ids': expected whole numbers of type int32, got 5.5 at [1, 2]");
  numbers[5] = 5;
  const Features y = of_ids().predict({{"ids", MultiArray(numbers.data(), DataType::float64, {2, 3}, {1, 2})}});
  EXPECT_EQ(values(y.array("y")), (std::vector<double>{1, 3, 5, 2, 4, 6}));
}

TEST(WholeNumbers, AsPlainNumbers) {
  const Model m =
      Model::from_mil(program("tensor<int32, [1]> n", "tensor<int32, [1]> y = add(x = n, y = int32(1));", "y"));
  const auto answer = [&](FeatureValue n) { return values(m.predict({{"n", std::move(n)}}).array("y")); };
  EXPECT_EQ(answer(7.0), std::vector<double>{8});
  EXPECT_EQ(answer(int64_t{-3}), std::vector<double>{-2});
  EXPECT_EQ(refusal([&] { answer(3.7); }), "input 'n': expected whole numbers of type int32, got 3.7");
  EXPECT_EQ(refusal([&] { answer(int64_t{1} << 40); }),
            "input 'n': expected whole numbers of type int32, got 1099511627776");
  EXPECT_EQ(refusal([&] { answer(MultiArray::of(std::vector<float>{0.5f}, {1})); }),
            "input 'n': expected whole numbers of type int32, got 0.5");
}

TEST(WholeNumbers, BecomeFloats) {
  const Model m =
      Model::from_mil(program("tensor<fp32, [2, 1]> x", "tensor<fp32, [2, 1]> y = add(x = x, y = fp32(0.5));", "y"));
  EXPECT_EQ(values(m.predict({{"x", array<int64_t>(DataType::int64, {1, int64_t{1} << 40})}}).array("y")),
            (std::vector<double>{1.5, 0x1p40}));
}

TEST(WholeNumbers, InColumnsOfRows) {
  const Model m =
      Model::from_mil(program("tensor<int32, [1]> n", "tensor<int32, [1]> y = add(x = n, y = int32(1));", "y"));
  MultiArray column(DataType::float64, {3, 1});
  column.as<double>()[0] = 1, column.as<double>()[1] = 2, column.as<double>()[2] = 3;
  EXPECT_EQ(values(m.predict_rows({{"n", column}}).array("y")), (std::vector<double>{2, 3, 4}));
  column.as<double>()[2] = 3.25;
  EXPECT_NE(refusal([&] {
              m.predict_rows({{"n", column}});
            }).find("whole numbers of type int32, got 3.25"),
            std::string::npos);
}

}  // namespace
}  // namespace moka::test
