// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "ops/operation_util.h"

namespace moka::ops {
namespace {

using namespace ir;

Constant list_of(const std::vector<Tensor>& items) {
  std::vector<Constant> parts(items.begin(), items.end());
  return Constant(Type::list(Type::scalar(items[0].dtype()), static_cast<int64_t>(items.size())), std::move(parts));
}

Tensor probabilities() { return Tensor::f32({1, 3}, std::vector<float>{0.25f, 0.5f, 0.25f}); }

TEST(Classify, StringLabels) {
  auto out = test::evaluate("classify",
                            {{"probabilities", probabilities()},
                             {"classes", list_of({Tensor::text("cat"), Tensor::text("dog"), Tensor::text("owl")})}});
  ASSERT_TRUE(out.ok()) << out.error().to_string();
  ASSERT_EQ(out->size(), 2u);
  EXPECT_EQ((*out)[0].tensor.dtype(), DType::string);
  EXPECT_EQ((*out)[0].tensor.shape().rank(), 0);
  EXPECT_EQ((*out)[0].tensor.text(), "dog");
  const Dict& d = *(*out)[1].dict;
  EXPECT_TRUE(d.string_keys);
  EXPECT_EQ(d.text_keys, (std::vector<std::string>{"cat", "dog", "owl"}));
  EXPECT_EQ(d.values, (std::vector<double>{0.25, 0.5, 0.25}));
}

TEST(Classify, IntegerLabelsAndTies) {
  auto labels = list_of({Tensor::scalar_i64(DType::int64, int64_t{1} << 40), Tensor::scalar_i64(DType::int64, -7)});
  auto out = test::evaluate("classify",
                            {{"probabilities", Tensor::f32({2}, std::vector<float>{0.5f, 0.5f})}, {"classes", labels}});
  ASSERT_TRUE(out.ok()) << out.error().to_string();
  EXPECT_EQ(load_i64((*out)[0].tensor.view(), 0), int64_t{1} << 40);
  const Dict& d = *(*out)[1].dict;
  EXPECT_FALSE(d.string_keys);
  EXPECT_EQ(d.int_keys, (std::vector<int64_t>{int64_t{1} << 40, -7}));
}

TEST(Classify, NanNeverWins) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  auto labels = list_of({Tensor::text("cat"), Tensor::text("dog"), Tensor::text("owl")});
  struct Case {
    std::vector<float> probabilities;
    std::string expected;
  };
  const Case cases[] = {{.probabilities = {nan, 0.25f, 0.5f}, .expected = "owl"},
                        {.probabilities = {0.5f, nan, 0.25f}, .expected = "cat"},
                        {.probabilities = {nan, -1, nan}, .expected = "dog"},
                        {.probabilities = {nan, nan, nan}, .expected = "cat"}};
  for (const Case& c : cases) {
    auto out = test::evaluate("classify", {{"probabilities", Tensor::f32({3}, c.probabilities)}, {"classes", labels}});
    ASSERT_TRUE(out.ok()) << out.error().to_string();
    EXPECT_EQ((*out)[0].tensor.text(), c.expected);
  }
}

TEST(Classify, RefusesWrongLabels) {
  EXPECT_TRUE(test::refuses(
      "classify", {{"probabilities", probabilities()}, {"classes", list_of({Tensor::text("cat")})}}, "classes"));
  EXPECT_TRUE(test::refuses("classify",
                            {{"probabilities", Tensor::f32({1}, std::vector<float>{1})},
                             {"classes", list_of({Tensor::scalar(DType::fp32, 1)})}},
                            "classes"));
}

}  // namespace
}  // namespace moka::ops
