// SPDX-License-Identifier: Apache-2.0
#include "compress/network.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/half.h"
#include "base64.h"
#include "compress/blocks.h"

/// Against what coremltools' quantization_utils makes of the same weights (tests/golden/network_weights_truth.py).
namespace moka::compress {
namespace {

std::vector<float> floats_of(const std::string& text) {
  const std::string bytes = test::base64(text);
  std::vector<float> out(bytes.size() / sizeof(float));
  bytes.copy(reinterpret_cast<char*>(out.data()), bytes.size());
  return out;
}

Recipe recipe_of(const std::string& mode, unsigned bits) {
  if (bits == 16) return {std::nullopt, Half{}};
  if (mode == "kmeans") return {std::nullopt, Palette{bits}};
  return {std::nullopt, Linear{bits, mode == "linear_symmetric"}};
}

double squared_error(const std::vector<float>& values, const std::vector<float>& decoded) {
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i)
    sum += (static_cast<double>(decoded[i]) - values[i]) * (static_cast<double>(decoded[i]) - values[i]);
  return sum;
}

/// The numbers that codes, packed from the highest bit down, select from a table.
std::vector<float> looked_up(const std::vector<float>& table, const std::string& data, unsigned bits, size_t count) {
  std::vector<float> out;
  for (size_t i = 0; i < count; ++i) {
    unsigned code = 0;
    for (unsigned b = 0; b < bits; ++b) {
      const size_t at = i * bits + b;
      code = code << 1 | (static_cast<unsigned char>(data[at / 8]) >> (7 - at % 8) & 1U);
    }
    out.push_back(table.at(code));
  }
  return out;
}

TEST(CompressNetwork, WeightsAsCoremltoolsWritesThem) {
  std::ifstream in(std::string(MOKA_GOLDEN) + "/compressed/networks.json");
  const auto golden = nlohmann::json::parse(in);
  size_t cases = 0;
  for (const auto& c : golden["cases"]) {
    const auto& w = golden["weights"][c["weight"].get<std::string>()];
    const std::vector<float> values = floats_of(w["values"]);
    NetworkWeight weight{*format::Message::make("WeightParams"), "w", c["weight"], w["shape"], w["axis"]};
    ASSERT_TRUE(weight.params.set_packed("floatValue", Bytes::copy_of(std::as_bytes(std::span(values)))).ok());
    const unsigned bits = c["bits"];
    const std::string mode = c["mode"], where = cat(weight.layer, " ", mode, " ", bits);
    const auto made = encode_network_weight(weight, recipe_of(mode, bits));
    ASSERT_TRUE(made.ok() && made->encoding) << where;
    const NetworkEncoding& encoding = *made->encoding;
    const std::string data = test::base64(c["data"]);
    const std::vector<float> table = floats_of(c["table"]);
    EXPECT_EQ(encoding.scale, floats_of(c["scale"])) << where;
    EXPECT_EQ(encoding.bias, floats_of(c["bias"])) << where;
    ASSERT_EQ(encoding.table.size(), table.size()) << where;
    if (mode == "kmeans") {
      const auto theirs = looked_up(table, data, bits, values.size());
      const auto ours = looked_up(encoding.table, std::string(encoding.data.text()), bits, values.size());
      EXPECT_EQ(ours, encoding.decoded);
      EXPECT_LE(squared_error(values, ours), squared_error(values, theirs) * (1 + 1e-6)) << where;
    } else {
      for (size_t i = 0; i < table.size(); ++i) EXPECT_FLOAT_EQ(encoding.table[i], table[i]) << where;
      EXPECT_EQ(encoding.data.text(), data) << where;
    }
    ASSERT_TRUE(write(weight, encoding).ok());
    EXPECT_EQ(*weight.params.names(), bits == 16 ? std::vector<std::string>{"float16Value"}
                                                 : (std::vector<std::string>{"rawValue", "quantization"}))
        << where;
    ++cases;
  }
  EXPECT_EQ(cases, 30u);
}

/// A model with one inner product of 2 outputs and `inputs` inputs, and 6 weights.
format::Message dense(int64_t inputs, bool updatable) {
  auto model = *format::Message::make("Model");
  auto network = *model.edit("neuralNetwork");
  auto layer = *network.edit("layers");
  EXPECT_TRUE(layer.set("name", std::string("dense")).ok());
  auto params = *layer.edit("innerProduct");
  EXPECT_TRUE(params.set("outputChannels", uint64_t{2}).ok());
  EXPECT_TRUE(params.set("inputChannels", static_cast<uint64_t>(inputs)).ok());
  auto weights = *params.edit("weights");
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  EXPECT_TRUE(weights.set_packed("floatValue", Bytes::copy_of(std::as_bytes(std::span(values)))).ok());
  EXPECT_TRUE(weights.set("isUpdatable", updatable).ok());
  return model;
}

TEST(CompressNetwork, FindsWeightsAndRaisesTheVersion) {
  const format::Message model = dense(3, false);
  const auto weights = network_weights_of(model);
  ASSERT_TRUE(weights.ok());
  ASSERT_EQ(weights->size(), 1u);
  const NetworkWeight& weight = weights->front();
  EXPECT_EQ(weight.name, "dense.weights");
  EXPECT_EQ(weight.layer, "innerProduct");
  EXPECT_EQ(weight.shape, (Shape{2, 3}));
  const std::vector<std::pair<Recipe, int64_t>> versions{{Recipe{std::nullopt, Half{}}, 2},
                                                         {Recipe{std::nullopt, Palette{2}}, 3}};
  for (const auto& [recipe, version] : versions) {
    format::ModelSource source{dense(3, false)};
    ASSERT_TRUE(compress(source, [&r = recipe](const Site&) { return r; }).ok());
    EXPECT_EQ(std::get<int64_t>((*source.specification.values("specificationVersion")).at(0)), version);
  }
  EXPECT_FALSE(network_weights_of(dense(4, false)).ok());
  EXPECT_FALSE(network_weights_of(dense(-1, false)).ok());
  EXPECT_EQ(network_weights_of(dense(3, true))->size(), 0u);
}

TEST(CompressNetwork, FormsThatNetworksLackAreRefused) {
  const std::vector<float> values{1, 2, 3, 1e6F};
  NetworkWeight weight{*format::Message::make("WeightParams"), "w", "innerProduct", {2, 2}};
  for (const auto& [recipe, words] :
       {std::pair{Recipe{Prune{0.5}, {}}, "sparse"},
        {Recipe{std::nullopt, Linear{4}}, "asymmetric"},
        {Recipe{std::nullopt, Linear{8, true, true, Granularity::block, 2}}, "blocks"},
        {Recipe{std::nullopt, Palette{4, Palette::Mode::kmeans, Granularity::group, 1}}, "groups"},
        {Recipe{std::nullopt, Palette{1, Palette::Mode::unique}}, "different"},
        {Recipe{std::nullopt, Half{}}, "halves"}})
    EXPECT_NE(refusal(weight, values, recipe).find(words), std::string::npos) << refusal(weight, values, recipe);
}

TEST(CompressNetwork, WeightsOfTheWholeRangeAreSkippedOrFinite) {
  constexpr float most = std::numeric_limits<float>::max();
  for (const float least : {-most, 0.0F}) {
    const std::vector<float> values{least, most, most / 4, least / 2};
    NetworkWeight weight{*format::Message::make("WeightParams"), "w", "innerProduct", {2, 2}};
    ASSERT_TRUE(weight.params.set_packed("floatValue", Bytes::copy_of(std::as_bytes(std::span(values)))).ok());
    for (const Linear& linear : {Linear{8}, Linear{8, false}, Linear{8, false, true, Granularity::tensor}}) {
      const auto made = encode_network_weight(weight, {std::nullopt, linear});
      ASSERT_TRUE(made.ok());
      EXPECT_EQ(made->encoding.has_value(), least == 0 && !linear.symmetric);
      EXPECT_EQ(made->outcome.skipped.empty(), made->encoding.has_value());
      for (size_t i = 0; made->encoding && i < values.size(); ++i)
        EXPECT_NEAR(made->encoding->decoded[i] / most, values[i] / most, 0.005);
    }
  }
}

}  // namespace
}  // namespace moka::compress
