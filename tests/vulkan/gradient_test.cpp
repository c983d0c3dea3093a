// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "vulkan/region_util.h"

namespace moka::vulkan_test {
namespace {

using namespace ir;

/// Steps of recurrent layers backwards. The parameter is the number of hidden units.
class RecurrentGradients : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { MOKA_NEEDS_VULKAN(); }

  /// What the operations share.
  std::vector<NamedArg> args(Region& g, int gates, bool is_known, bool has_each) const {
    const int64_t n = GetParam();
    std::vector<NamedArg> out{{"x_gates", g.input({kSteps, kBatch, gates * n})},
                              {"weight_hh", g.input({gates * n, n}, -0.4f, 0.4f)},
                              {"initial_h", g.input({kBatch, n})},
                              {"dh", g.input({kBatch, n})}};
    if (is_known) out.push_back({"y", g.input({kSteps, kBatch, n}, -0.9f, 0.9f)});
    if (has_each) out.push_back({"dy", g.input({kSteps, kBatch, n})});
    return out;
  }

  static constexpr int kSteps = 4, kBatch = 5;
};
INSTANTIATE_TEST_SUITE_P(Vulkan, RecurrentGradients, testing::Values(1, 35, 36));

TEST_P(RecurrentGradients, OfLstm) {
  const int64_t n = GetParam();
  for (const bool is_known : {false, true})
    for (const bool has_peephole : {false, true})
      for (const char* activation : {"sigmoid", "hard_sigmoid", "sigmoid; coupled"}) {
        Region g;
        auto all = args(g, 4, is_known, !has_peephole || is_known);
        all.insert(
            all.end(),
            {{"initial_c", g.input({kBatch, n})}, {"dc", g.input({kBatch, n})}, {"recurrent_activation", activation}});
        if (has_peephole) all.push_back({"peephole", g.input({3 * n})});
        if (!has_peephole) all.push_back({"clip", 0.4f});
        const auto r = g.expect_same(g.ops("moka_lstm_gradient", std::move(all)));
        EXPECT_EQ(r.kernels, std::vector<std::string>{"vulkan.lstm_gradient"}) << r.refusal;
      }
}

TEST_P(RecurrentGradients, OfGru) {
  const int64_t n = GetParam();
  for (const bool is_known : {false, true})
    for (const bool after : {false, true})
      for (const bool has_bias : {false, true}) {
        Region g;
        auto all = args(g, 3, is_known, has_bias);
        all.push_back({"reset_after", after});
        if (has_bias) all.push_back({"bias", g.input({3 * n})});
        const auto r = g.expect_same(g.ops("moka_gru_gradient", std::move(all)));
        EXPECT_EQ(r.kernels, std::vector<std::string>{"vulkan.gru_gradient"}) << r.refusal;
      }
}

TEST_P(RecurrentGradients, OfPlainOnes) {
  for (const char* activation : {"tanh", "relu", "scaled_tanh(1.7159, 0.6667)", "linear(-0.5, 0.25)"}) {
    Region g;
    auto all = args(g, 1, false, true);
    all.push_back({"activation", activation});
    const auto r = g.expect_same(g.ops("moka_rnn_gradient", std::move(all)));
    EXPECT_EQ(r.kernels, std::vector<std::string>{"vulkan.rnn_gradient"}) << r.refusal;
  }
}

/// The states must be those of the layer, because they are also the values of its only gate.
TEST_P(RecurrentGradients, OfPlainOnesOfKnownStates) {
  const int64_t n = GetParam(), step = kBatch * n;
  Region g;
  const Tensor x = g.random({kSteps, kBatch, n}), weight = g.random({n, n}, -0.4f, 0.4f), h = g.random({kBatch, n});
  Tensor y = *Tensor::zeros(DType::fp32, x.shape());
  for (int64_t i = 0; i < y.count(); i++) {
    const TensorView from = i < step ? h.view() : y.view();
    double sum = load_f64(x.view(), i);
    for (int64_t k = 0; k < n; k++)
      sum += load_f64(from, (i < step ? i : i - step) / n * n + k) * load_f64(weight.view(), i % n * n + k);
    store_f64(y.view(), i, std::tanh(sum));
  }
  const auto r = g.expect_same(g.ops("moka_rnn_gradient", {{"x_gates", g.input(x)},
                                                           {"weight_hh", g.input(weight)},
                                                           {"initial_h", g.input(h)},
                                                           {"dh", g.input(h.shape())},
                                                           {"y", g.input(y)}}));
  EXPECT_EQ(r.kernels, std::vector<std::string>{"vulkan.rnn_gradient"}) << r.refusal;
}

/// Few planes, whose rows are divided, and many.
TEST(SampleGradients, OfResample) {
  MOKA_NEEDS_VULKAN();
  for (const Shape& x : {Shape{1, 2, 13, 9}, Shape{2, 33, 5, 7}, Shape{1, 3, 1, 1}})
    for (const char* padding : {"constant", "border", "reflection", "symmetric"})
      for (const char* sampling : {"bilinear", "nearest"}) {
        Region g;
        const bool align = std::string_view(padding) == "reflection";
        const auto r =
            g.expect_same(g.ops("moka_resample_gradient", {{"x", g.input(x)},
                                                           {"coordinates", g.input({x[0], 17, 11, 2}, -1.3f, 1.3f)},
                                                           {"dy", g.input({x[0], x[1], 17, 11})},
                                                           {"sampling_mode", sampling},
                                                           {"padding_mode", padding},
                                                           {"padding_value", Tensor::scalar(DType::fp32, 0.5)},
                                                           {"coordinates_mode", "normalized_minus_one_to_one"},
                                                           {"align_corners", align}}));
        EXPECT_EQ(r.kernels, std::vector<std::string>{"vulkan.resample_gradient"}) << r.refusal;
      }
}

TEST(SampleGradients, OfCropResize) {
  MOKA_NEEDS_VULKAN();
  const std::vector<int64_t> images{1, 0, 1, 1};
  for (const int64_t channels : {2, 40})
    for (const char* sampling : {"DEFAULT", "STRICT_ALIGN_CORNERS", "UNALIGN_CORNERS"})
      for (const char* boxes : {"CORNERS_HEIGHT_FIRST", "CENTER_SIZE_WIDTH_FIRST"}) {
        Region g;
        const auto r = g.expect_same({g.op("moka_crop_resize_gradient", {{"x", g.input({2, channels, 12, 9})},
                                                                         {"boxes", g.input({4, 4}, -1, 9)},
                                                                         {"box_indices", Tensor::i32(images)},
                                                                         {"dy", g.input({4, channels, 5, 6})},
                                                                         {"target_height", 5},
                                                                         {"target_width", 6},
                                                                         {"sampling_mode", sampling},
                                                                         {"box_coordinate_mode", boxes}})});
        EXPECT_EQ(r.kernels, std::vector<std::string>{"vulkan.crop_resize_gradient"}) << r.refusal;
      }
}

}  // namespace
}  // namespace moka::vulkan_test
