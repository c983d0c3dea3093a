// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "import_nn/nn_net.h"

namespace moka::test {

namespace {

/// 0, 1, 2, ... of this shape.
ir::Tensor counted(const ir::Shape& shape) {
  std::vector<float> v;
  for (int64_t i = 0; i < shape.count(); i++) v.push_back(static_cast<float>(i));
  return ir::Tensor::f32(shape, v);
}

/// The output 'y' for the input 'x'.
ir::Tensor output_for(Net& n, const ir::Tensor& x) {
  auto network = n.import("y");
  if (!network.ok()) {
    ADD_FAILURE() << network.error().to_string();
    return {};
  }
  auto results = run(*network, {{"x", x}});
  if (!results.ok()) {
    ADD_FAILURE() << results.error().to_string();
    return {};
  }
  return results->at("y").tensor;
}

/// A squeezed axis takes the element at its begin, whatever the other masks say.
template <class Params>
void slice_squeezed(Params& p) {
  for (int i = 0; i < 2; i++) {
    p.add_endids(3);
    p.add_strides(1);
    p.add_beginmasks(i == 1);
    p.add_endmasks(true);
    p.add_squeezemasks(i == 1);
  }
}

TEST(NnValues, StaticSliceOfASqueezedAxis) {
  Net n;
  n.input("x", {3, 3});
  auto& p = *n.layer("s", {"x"}, {"y"})->mutable_slicestatic();
  slice_squeezed(p);
  for (int i = 0; i < 2; i++) p.add_beginids(i + 1);
  EXPECT_TRUE(output_for(n, counted({3, 3})) == ir::Tensor::f32({2}, std::vector<float>{5, 8}));
}

TEST(NnValues, DynamicSliceOfASqueezedAxis) {
  Net n;
  n.input("x", {3, 3});
  auto* begin = n.layer("b", {}, {"begin"})->mutable_loadconstantnd();
  begin->add_shape(2);
  for (int i = 0; i < 2; i++) begin->mutable_data()->add_floatvalue(static_cast<float>(i + 1));
  slice_squeezed(*n.layer("s", {"x", "begin"}, {"y"})->mutable_slicedynamic());
  EXPECT_TRUE(output_for(n, counted({3, 3})) == ir::Tensor::f32({2}, std::vector<float>{5, 8}));
}

/// The paddings are those of the height and of the width.
TEST(NnValues, PoolToTheLastPixelWithPaddingOfOneAxis) {
  const auto pooled = [](uint64_t height, uint64_t width) {
    Net n;
    n.input("x", {1, 1, 3, 4});
    auto* p = n.layer("p", {"x"}, {"y"})->mutable_pooling();
    for (int i = 0; i < 2; i++) p->add_kernelsize(2), p->add_stride(1);
    for (const uint64_t amount : {height, width}) p->mutable_includelastpixel()->add_paddingamounts(amount);
    return output_for(n, counted({1, 1, 3, 4}));
  };
  EXPECT_TRUE(pooled(1, 0) ==
              ir::Tensor::f32({1, 1, 4, 3}, std::vector<float>{1, 2, 3, 5, 6, 7, 9, 10, 11, 9, 10, 11}));
  EXPECT_TRUE(pooled(0, 1) == ir::Tensor::f32({1, 1, 2, 5}, std::vector<float>{4, 5, 6, 7, 7, 8, 9, 10, 11, 11}));
}

/// A size of the result that is smaller than that of the input adds nothing.
TEST(NnValues, PadToAnOutputSize) {
  Net n;
  n.input("x", {3, 3, 2, 2});
  auto* p = n.layer("p", {"x"}, {"y"})->mutable_constantpad();
  p->set_value(7);
  p->set_padtogivenoutputsizemode(true);
  for (int amount : {0, 2, 1, 0, 3, 0, 0, 3}) p->add_padamounts(static_cast<uint64_t>(amount));
  const ir::Tensor x = counted({3, 3, 2, 2}), y = output_for(n, x);
  ASSERT_EQ(y.shape().to_vector(), (std::vector<int64_t>{3, 3, 3, 3}));
  for (int64_t i = 0; i < y.count(); i++) {
    const int64_t row = i / 3 % 3, column = i % 3;
    const bool added = row == 0 || column == 2;
    EXPECT_EQ(ir::load_f64(y.view(), i), added ? 7.0 : static_cast<double>(i / 9 * 4 + (row - 1) * 2 + column)) << i;
  }
}

}  // namespace

}  // namespace moka::test
