// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "c_api/owned.h"
#include "moka/moka.h"

namespace {

using moka::test::Owner;

TEST(CState, CopiesAndNames) {
  const std::string text = R"(program(1.3)
{
    func main<ios18>(state<tensor<fp32, [1]>> total, tensor<fp32, [1]> x) {
            tensor<fp32, [1]> before = read_state(input = total)[name = string("before")];
            tensor<fp32, [1]> sum = add(x = before, y = x)[name = string("sum")];
            write_state(data = sum, input = total)[name = string("keep")];
        } -> (sum);
})";
  moka_model* m = nullptr;
  ASSERT_EQ(moka_model_load_mil(text.c_str(), nullptr, &m), MOKA_OK) << moka_last_error();
  const Owner<moka_model> model(m);
  moka_state *s = nullptr, *c = nullptr;
  ASSERT_EQ(moka_state_new(m, &s), MOKA_OK);
  const Owner<moka_state> state(s);
  ASSERT_EQ(moka_state_count(s), 1u);
  EXPECT_STREQ(moka_state_name(s, 0), "total");
  EXPECT_EQ(moka_state_name(s, 1), nullptr);
  float number = 4;
  const int64_t one = 1;
  const moka_array array{&number, MOKA_FLOAT32, 1, &one, nullptr};
  ASSERT_EQ(moka_state_write(s, "total", &array), MOKA_OK);
  ASSERT_EQ(moka_state_copy(s, &c), MOKA_OK) << moka_last_error();
  const Owner<moka_state> copy(c);
  moka_features *in = nullptr, *out = nullptr;
  ASSERT_EQ(moka_features_new(&in), MOKA_OK);
  ASSERT_EQ(moka_features_new(&out), MOKA_OK);
  const Owner<moka_features> inputs(in), outputs(out);
  ASSERT_EQ(moka_features_set_array(in, "x", &array), MOKA_OK);
  ASSERT_EQ(moka_model_predict(m, in, out, c), MOKA_OK) << moka_last_error();
  moka_array first, second;
  ASSERT_EQ(moka_state_read(s, "total", &first), MOKA_OK);
  ASSERT_EQ(moka_state_read(c, "total", &second), MOKA_OK);
  EXPECT_EQ(*static_cast<const float*>(first.data), 4.0f);
  EXPECT_EQ(*static_cast<const float*>(second.data), 8.0f);
  EXPECT_EQ(moka_state_copy(nullptr, &c), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_state_copy(s, nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_state_count(nullptr), 0u);
}

}  // namespace
