// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "devices/graph_util.h"

/// What only training computes: gradients of pools, norms and limits, and steps of optimizers.
namespace moka::devices_test {
namespace {

using namespace ir;

class GradientDraw {
 public:
  explicit GradientDraw(unsigned seed) : bits_(seed) {}
  int64_t operator()(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(bits_); }

 private:
  std::mt19937 bits_;
};

void expect_gradient(std::string_view kernel, Graph& g, Value* y) {
  ASSERT_NE(y, nullptr);
  std::vector<Tensor> results;
  for (g.threads = 1; g.threads <= 3; g.threads++) {
    ASSERT_NO_FATAL_FAILURE(expect_same_by(kernel, g, y));
    results.push_back(run_by(kernel, g, y).outputs[0]);
    EXPECT_EQ(0, std::memcmp(results[0].data(), results.back().data(), results[0].bytes())) << g.threads << " threads";
  }
}

void check_pool_gradient(bool max, GradientDraw& draw, int i) {
  Shape size{draw(1, 3), draw(1, 40)};
  std::vector<int64_t> taps, strides, pad;
  const int64_t axes = draw(1, 3);
  const bool ceil = axes < 3 && i % 3 == 0;
  for (int64_t axis = 0; axis < axes; axis++) {
    taps.push_back(draw(1, 5));
    strides.push_back(draw(1, 3));
    size.push_back(draw(taps.back(), axes == 3 ? 9 : 30));
    pad.push_back(draw(0, taps.back() - 1));
    pad.push_back(ceil ? pad.back() : draw(0, taps.back() - 1));
  }
  SCOPED_TRACE(cat(size, " ", i));
  Graph g(Opset::ios17, static_cast<unsigned>(i));
  // Whole numbers, so that some are equal.
  Tensor x = g.random(size, -3, 3);
  for (float& v : x.mut<float>()) v = std::round(v);
  if (i % 5 == 0)
    for (size_t k = 0; k < x.mut<float>().size(); k += 7)
      x.mut<float>()[k] = k % 2 == 0 ? std::nanf("") : -std::numeric_limits<float>::infinity();
  std::vector<NamedArg> args{
      {"x", g.input_of(x)},   {"kernel_sizes", Tensor::i32(taps)}, {"strides", Tensor::i32(strides)},
      {"pad_type", "custom"}, {"pad", Tensor::i32(pad)},           {"ceil_mode", ceil}};
  if (!max) args.emplace_back("exclude_padding_from_average", i % 2 == 0);
  const Value* pooled = g.op(max ? "max_pool" : "avg_pool", args);
  ASSERT_NE(pooled, nullptr);
  args.emplace_back("dy", g.input(pooled->type.shape()));
  expect_gradient(max ? "cpu.max_pool.gradient" : "cpu.avg_pool.gradient", g,
                  g.op(max ? "moka_max_pool_gradient" : "moka_avg_pool_gradient", args));
}

TEST(PoolGradients, RandomCases) {
  GradientDraw draw(41);
  for (int i = 0; i < 150; i++) {
    check_pool_gradient(true, draw, i);
    check_pool_gradient(false, draw, i);
  }
}

TEST(NormGradient, RandomCases) {
  GradientDraw draw(42);
  for (int i = 0; i < 120; i++) {
    Shape size{draw(1, 3), draw(1, 40)};
    for (int64_t axes = draw(0, 3); axes > 0; axes--) size.push_back(draw(1, axes == 1 ? 40 : 9));
    SCOPED_TRACE(cat(size));
    Graph g(Opset::ios17, static_cast<unsigned>(i));
    const Shape of_channels{size[1]};
    // A pool gives x in blocks.
    Value* x = g.input(size);
    if (i % 2 == 0 && size.rank() == 4) x = g.op("conv", {{"x", x}, {"weight", g.random({size[1], size[1], 1, 1})}});
    std::vector<NamedArg> args{{"x", x},
                               {"dy", g.input(size)},
                               {"mean", g.input(of_channels)},
                               {"variance", g.input(of_channels, 0.5f, 2)},
                               {"epsilon", Tensor::scalar(DType::fp32, 1e-3)}};
    if (i % 3 != 0) args.emplace_back("gamma", g.input(of_channels));
    for (Value* y : g.ops("moka_batch_norm_gradient", args)) expect_gradient("cpu.batch_norm.gradient", g, y);
  }
}

TEST(ClampGradient, RandomCases) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const auto& [low, high] : {std::pair{0.0f, inf}, {0.0f, 6.0f}, {-0.5f, 0.25f}, {-inf, 0.0f}})
    for (int64_t channels : {1, 16, 21}) {
      SCOPED_TRACE(cat(low, " ", high, " ", channels));
      Graph g;
      Tensor x = g.random({2, channels, 33, 35}, -8, 8);
      for (const auto& [at, odd] :
           {std::pair<size_t, float>{0, inf}, {5, -inf}, {9, std::nanf("")}, {11, low}, {20, high}})
        x.mut<float>()[at] = odd;
      expect_gradient("cpu.clamp.gradient", g,
                      g.op("moka_clamp_gradient", {{"x", g.input_of(x)},
                                                   {"dy", g.input(x.shape())},
                                                   {"alpha", Tensor::scalar(DType::fp32, low)},
                                                   {"beta", Tensor::scalar(DType::fp32, high)}}));
    }
}

TEST(Optimizers, EverySize) {
  for (int64_t n : {1, 3, 7, 8, 15, 16, 17, 31, 33, 1000, 50000}) {
    SCOPED_TRACE(n);
    Graph g;
    const Shape size{n}, scalar{};
    std::vector<NamedArg> args{{"weight", g.input(size)}, {"gradient", g.input(size)}};
    std::vector<NamedArg> sgd = args, adam = args;
    sgd.insert(sgd.end(), {{"velocity", g.input(size)},
                           {"learning_rate", g.input(scalar, 0.01f, 0.1f)},
                           {"momentum", g.input(scalar, 0, 1)}});
    for (Value* y : g.ops("moka_sgd_step", sgd)) expect_gradient("cpu.sgd_step", g, y);
    adam.insert(adam.end(), {{"first_moment", g.input(size)},
                             {"second_moment", g.input(size, 0, 1)},
                             {"learning_rate", g.input(scalar, 0.01f, 0.1f)},
                             {"beta_1", g.input(scalar, 0.8f, 0.95f)},
                             {"beta_2", g.input(scalar, 0.9f, 0.999f)},
                             {"epsilon", g.input(scalar, 1e-8f, 1e-6f)},
                             {"step", g.input(scalar, 1, 20)}});
    for (Value* y : g.ops("moka_adam_step", adam)) expect_gradient("cpu.adam_step", g, y);
  }
}

TEST(ReduceImages, SumsOfChannels) {
  GradientDraw draw(43);
  for (int i = 0; i < 60; i++) {
    Shape size{draw(2, 4), draw(1, 40), draw(1, 20), draw(1, 20)};
    SCOPED_TRACE(cat(size));
    Graph g(Opset::ios17, static_cast<unsigned>(i));
    Value* x = g.input(size);
    if (i % 2 == 0) x = g.op("conv", {{"x", x}, {"weight", g.random({size[1], size[1], 1, 1})}});
    const char* op =
        std::array{"reduce_sum", "reduce_mean", "reduce_l2_norm", "reduce_sum_square"}[static_cast<size_t>(i) % 4];
    Value* y = g.op(op, {{"x", x}, {"axes", Tensor::i32({0, 2, 3})}, {"keep_dims", i % 3 == 0}});
    ASSERT_NE(y, nullptr);
    const auto r = expect_same(g, {y});
    EXPECT_TRUE(size.count(2, 4) == 1 || r.has("cpu.reduce.images")) << r.kernels;
  }
}

}  // namespace
}  // namespace moka::devices_test
