// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ops/operation_util.h"

// Results that are easily lost: exact ones, those of infinities and NaN, and tiny ones.
namespace moka::ops {
namespace {

using namespace ir;
using test::call;

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<double> values(const Tensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.count(); i++) v.push_back(load_f64(t.view(), i));
  return v;
}

/// numpy: np.trunc of exact fractions, low + (high - low) * k / n.
TEST(Values, ResizedIntegersAreTruncatedExactly) {
  auto resized = [](const Tensor& x, int64_t n, const char* mode) {
    return values(call("resize", {{"x", x},
                                  {"shape", Tensor::i32({n})},
                                  {"resized_dims", Tensor::scalar_i64(DType::uint32, 1)},
                                  {"sampling_mode", mode}}));
  };
  EXPECT_EQ(resized(Tensor::i32({-9, -2}), 8, "ALIGN_CORNERS"), (std::vector<double>{-9, -8, -7, -6, -5, -4, -3, -2}));
  for (int64_t n = 2; n < 200; n++) {
    const int64_t low = -1000000007, step = 9973;
    std::vector<double> line;
    for (int64_t i = 0; i < n; i++) line.push_back(static_cast<double>(low + i * step));
    EXPECT_EQ(resized(Tensor::i32({low, low + (n - 1) * step}), n, "ALIGN_CORNERS"), line) << n;
  }
  EXPECT_EQ(resized(Tensor::i32({0, 2}), 4, "UNALIGN_CORNERS"), (std::vector<double>{0, 0, 1, 2}));
  EXPECT_EQ(resized(Tensor::i32({0, -1}), 1001, "ALIGN_CORNERS")[999], 0);
}

TEST(Values, InfinitePixelsThatAreHitExactlyStay) {
  const Tensor x = Tensor::f32({1, 1, 2, 3}, std::vector<float>{1, kInf, 3, -kInf, 5, -kInf});
  EXPECT_TRUE(call("upsample_bilinear", {{"x", x}, {"align_corners", true}}) == x);
  EXPECT_TRUE(
      call("resize_bilinear",
           {{"x", x}, {"target_size_height", 2}, {"target_size_width", 3}, {"sampling_mode", "ALIGN_CORNERS"}}) == x);
  const Tensor boxes = Tensor::f32({1, 4}, std::vector<float>{0, 0, 1, 2});
  EXPECT_EQ(
      values(call(
          "crop_resize",
          {{"x", x}, {"boxes", boxes}, {"target_height", 2}, {"target_width", 3}, {"sampling_mode", "ALIGN_CORNERS"}})),
      values(x));
}

/// As numpy.arange(start, end, step).
TEST(Values, RangesOfInfiniteSteps) {
  auto range = [](float start, float end, float step) {
    return values(call("range_1d", {{"start", start}, {"end", end}, {"step", step}}));
  };
  EXPECT_EQ(range(0, 5, kInf), (std::vector<double>{0}));
  EXPECT_EQ(range(2, -5, -kInf), (std::vector<double>{2}));
  EXPECT_TRUE(range(0, 5, -kInf).empty());
  EXPECT_TRUE(range(5, 5, kInf).empty());
  EXPECT_EQ(range(1, 2, 1e30f), (std::vector<double>{1}));
}

TEST(Values, NanIsNeverTheBestClassOfABox) {
  const double nan = kNan;
  auto kept = [](const std::vector<double>& scores) {
    Tensor boxes = Tensor::zeros(DType::fp64, {2, 4}).value(), confidence = Tensor::zeros(DType::fp64, {2, 2}).value();
    const double at[] = {0, 0, 1, 1, 5, 5, 1, 1};
    for (int64_t i = 0; i < 8; i++) store_f64(boxes.view(), i, at[i]);
    for (int64_t i = 0; i < 4; i++) store_f64(confidence.view(), i, scores[static_cast<size_t>(i)]);
    const auto wide = [](double v) { return Tensor::scalar(DType::fp64, v); };
    return call("ml_non_maximum_suppression", {{"coordinates", boxes},
                                               {"confidence", confidence},
                                               {"default_iou_threshold", wide(0.5)},
                                               {"default_confidence_threshold", wide(0.25)},
                                               {"per_class", false},
                                               {"min_boxes", Tensor::scalar_i64(DType::int64, 0)},
                                               {"max_boxes", Tensor::scalar_i64(DType::int64, -1)}})
        .shape()[0];
  };
  EXPECT_EQ(kept({nan, 0.9, 0.8, nan}), 2);
  EXPECT_EQ(kept({0.9, nan, 0.8, nan}), 2);
  EXPECT_EQ(kept({nan, nan, 0.8, nan}), 1);
}

/// Expected: x / 2 * math.erfc(-x / math.sqrt(2)) in Python.
TEST(Values, GeluKeepsItsDigitsFarBelowZero) {
  const float x[] = {-4, -6, -10, -13, 0, 3};
  const double expected[] = {-0.000126684967332, -5.91952587023e-09, -7.61985302416e-23, -7.95231371941e-38, 0,
                             2.99595030591};
  const Tensor y = call("gelu", {{"x", Tensor::f32({6}, std::vector<float>(std::begin(x), std::end(x)))}});
  for (int64_t i = 0; i < 6; i++) EXPECT_NEAR(load_f64(y.view(), i), expected[i], 2e-5 * std::abs(expected[i])) << x[i];
}

}  // namespace
}  // namespace moka::ops
