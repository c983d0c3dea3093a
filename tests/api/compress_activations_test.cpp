// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <random>

#include "api/api_util.h"
#include "moka/compress.h"
#include "moka/program.h"

namespace moka::test {
namespace {

constexpr int64_t kLayerWidth = 16;

Features input(uint32_t seed) {
  Features out;
  out["x"] = random_array({1, kLayerWidth}, seed);
  return out;
}

std::vector<float> product(const MultiArray& weight, const std::vector<float>& x) {
  std::vector<float> out(kLayerWidth);
  const auto w = weight.as<float>();
  for (size_t i = 0; i < out.size(); ++i)
    for (size_t k = 0; k < x.size(); ++k) out[i] += w[i * x.size() + k] * x[k];
  return out;
}

float largest(const std::vector<float>& values) {
  float out = 0;
  for (const float v : values) out = std::max(out, std::abs(v));
  return out;
}

std::vector<float> rounded(std::vector<float> values, float scale) {
  for (float& v : values) v = std::clamp(std::nearbyint(v / scale), -127.0F, 127.0F) * scale;
  return values;
}

CompressionOptions of_inputs(const std::vector<uint32_t>& seeds) {
  CompressionOptions out;
  out.weights.form = WeightForm::unchanged;
  out.activations.emplace();
  for (const uint32_t seed : seeds) out.activations->inputs.push_back(input(seed));
  return out;
}

std::vector<std::string> types_of(const ModelSource& source) {
  std::vector<std::string> out;
  for (const auto& function : source.load().structure().functions)
    for (const auto& op : function.body.operations)
      if (op.type != "const") out.push_back(op.type);
  return out;
}

std::vector<std::string> names_of(const CompressedModel& made) {
  std::vector<std::string> out;
  for (const CompressedActivation& a : made.activations) out.push_back(a.name);
  return out;
}

ModelSource two_layers(const MultiArray& first, const MultiArray& second, const std::string& target = "ios17") {
  ProgramBuilder b(target);
  const auto x = b.input("x", DataType::float32, {1, kLayerWidth});
  const auto h = b.op("relu", {{"x", b.op("linear", {{"x", x}, {"weight", first}}, "first")}}, "h");
  b.output(b.op("linear", {{"x", h}, {"weight", second}}, "second"), "y");
  return b.source();
}

TEST(CompressActivations, RoundToTheRangesOfAllInputs) {
  const MultiArray first = random_array({kLayerWidth, kLayerWidth}, 1),
                   second = random_array({kLayerWidth, kLayerWidth}, 2);
  const ModelSource source = two_layers(first, second);
  const CompressedModel made = compress_weights(source, of_inputs({10, 11, 12}));
  EXPECT_EQ(types_of(made.model),
            (std::vector<std::string>{"quantize", "dequantize", "linear", "relu", "quantize", "dequantize", "linear"}));
  float of_x = 0, of_h = 0;
  const auto hidden = [&](const std::vector<float>& x) {
    std::vector<float> h = product(first, x);
    for (float& v : h) v = std::max(v, 0.0F);
    return h;
  };
  for (const uint32_t seed : {10U, 11U, 12U}) {
    const MultiArray array = random_array({1, kLayerWidth}, seed);
    const std::vector<float> x(array.as<float>().begin(), array.as<float>().end());
    of_x = std::max(of_x, largest(x));
    of_h = std::max(of_h, largest(hidden(x)));
  }
  ASSERT_EQ(names_of(made), (std::vector<std::string>{"x", "h"}));
  EXPECT_NEAR(made.activations[0].scale, of_x / 127, 1e-6 * of_x);
  EXPECT_NEAR(made.activations[1].scale, of_h / 127, 1e-6 * of_h);
  EXPECT_GT(*made.signal_to_noise, 25);
  EXPECT_LT(*made.signal_to_noise, 60);

  const MultiArray array = random_array({1, kLayerWidth}, 99);  // outside of the ranges, too
  const std::vector<float> x(array.as<float>().begin(), array.as<float>().end());
  const std::vector<float> expected =
      product(second, rounded(hidden(rounded(x, static_cast<float>(made.activations[0].scale))),
                              static_cast<float>(made.activations[1].scale)));
  const MultiArray y = made.model.load().predict(input(99)).array("y");
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(y.at(static_cast<int64_t>(i)), expected[i], 2e-4F);
}

TEST(CompressActivations, AsymmetricRangesHaveZeroPoints) {
  const ModelSource source =
      two_layers(random_array({kLayerWidth, kLayerWidth}, 1), random_array({kLayerWidth, kLayerWidth}, 2));
  for (const bool is_signed : {true, false}) {
    CompressionOptions options = of_inputs({10, 11});
    options.activations->symmetric = false;
    options.activations->is_signed = is_signed;
    const CompressedModel made = compress_weights(source, options);
    const CompressedActivation& h = made.activations.at(1);
    EXPECT_EQ(h.least, 0);
    EXPECT_EQ(h.zero_point, is_signed ? -128 : 0);
    EXPECT_NEAR(h.scale, h.greatest / 255, 1e-6);
    EXPECT_GT(*made.signal_to_noise, *compress_weights(source, of_inputs({10, 11})).signal_to_noise - 3);
  }
}

/// A sum of two branches, a sum with a constant, and a concatenation.
ModelSource branches() {
  ProgramBuilder b("ios17");
  const auto x = b.input("x", DataType::float32, {1, kLayerWidth});
  const auto a = b.op("linear", {{"x", x}, {"weight", random_array({kLayerWidth, kLayerWidth}, 3)}}, "a");
  const auto s = b.op("add", {{"x", x}, {"y", a}}, "s");
  const auto c = b.op("concat", {{"values", std::vector{s, a}}, {"axis", 1}}, "c");
  const auto p = b.op("add", {{"x", c}, {"y", 1.0F}}, "p");
  b.output(b.op("exp", {{"x", p}}, "e"), "y");
  return b.source();
}

TEST(CompressActivations, SumsOfTwoValuesAndConcatenations) {
  const CompressedModel made = compress_weights(branches(), of_inputs({5}));
  EXPECT_EQ(names_of(made), (std::vector<std::string>{"x", "a", "s"}));
  // The inputs of concat share one range.
  EXPECT_EQ(made.activations[1].scale, made.activations[2].scale);
  const std::vector<std::string> types = types_of(made.model);
  EXPECT_EQ(std::count(types.begin(), types.end(), "quantize"), 3);
  EXPECT_EQ(std::count(types.begin(), types.end(), "dequantize"), 5);  // linear, two of add, two of concat

  CompressionOptions options = of_inputs({5});
  options.activations->unchanged = {"type:add"};
  EXPECT_EQ(names_of(compress_weights(branches(), options)), (std::vector<std::string>{"x", "a"}));
  options.activations->unchanged = {"a"};
  EXPECT_EQ(names_of(compress_weights(branches(), options)), (std::vector<std::string>{"x", "a", "s"}));
  options.activations->unchanged = {"a", "s"};
  EXPECT_TRUE(compress_weights(branches(), options).activations.empty());
}

TEST(CompressActivations, WhatIsRoundedStaysAsItIs) {
  const CompressedModel once = compress_weights(branches(), of_inputs({5}));
  const CompressedModel twice = compress_weights(once.model, of_inputs({5}));
  EXPECT_TRUE(twice.activations.empty());
  EXPECT_EQ(types_of(twice.model), types_of(once.model));
}

TEST(CompressActivations, MistakesAreErrors) {
  const MultiArray weight = random_array({kLayerWidth, kLayerWidth}, 1);
  expect_error(ErrorKind::invalid_argument, {"inputs", "none"},
               [&] { compress_weights(two_layers(weight, weight), of_inputs({})); });
  expect_error(ErrorKind::unsupported, {"iOS 17", "CoreML6", "--target ios17"},
               [&] { compress_weights(two_layers(weight, weight, "ios16"), of_inputs({1})); });
}

TEST(CompressActivations, ValuesThatAreNotFiniteStayFloats) {
  const MultiArray weight = random_array({kLayerWidth, kLayerWidth}, 1);
  for (const float value : {INFINITY, -INFINITY, NAN}) {
    CompressionOptions options = of_inputs({1, 2});
    MultiArray x = random_array({1, kLayerWidth}, 1);
    x.as<float>()[3] = value;
    options.activations->inputs[0]["x"] = x;
    EXPECT_TRUE(compress_weights(two_layers(weight, weight), options).activations.empty());
    // A concatenation of values of which one is not finite.
    EXPECT_TRUE(compress_weights(branches(), options).activations.empty());
  }
}

}  // namespace
}  // namespace moka::test
