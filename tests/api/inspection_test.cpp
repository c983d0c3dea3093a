// SPDX-License-Identifier: Apache-2.0
#include "moka/inspection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "api/api_util.h"
#include "moka/build.h"
#include "temporary_folder.h"

namespace moka::test {
namespace {

FeatureDescription doubles(const char* name, int64_t count) {
  FeatureDescription f;
  f.name = name;
  f.array.type = DataType::float64;
  f.array.shape = {count};
  return f;
}

/// Adds an inner product of 2 inputs and 3 outputs.
Message add_dense(Message& model) {
  Message layer = model.add("neuralNetwork").add("layers");
  layer.set("name", "dense").set("input", "x").set("output", "y");
  return layer.add("innerProduct").set("inputChannels", 2).set("outputChannels", 3);
}

ModelDescription described() {
  ModelDescription d;
  d.specification_version = 4;
  d.functions = {{"", {doubles("x", 2)}, {doubles("y", 3)}}};
  return d;
}

/// Core ML allows 1 to 8 bits, packed from the highest bit of each byte down. MIL has no type of 5 bits.
TEST(Inspection, StatisticsOfQuantizedWeights) {
  struct Case {
    uint64_t bits;
    std::vector<uint8_t> packed, codes;
  };
  const Case cases[] = {{5, {0xf8, 0x03, 0x0f, 0x9c}, {31, 0, 1, 16, 31, 7}},
                        {3, {0xe0, 0x53, 0x00}, {7, 0, 0, 5, 1, 4, 0, 0}},
                        {4, {0x1f, 0x00, 0xab}, {1, 15, 0, 0, 10, 11}}};
  for (const Case& c : cases) {
    Message model = describe_model(described());
    Message weights = add_dense(model).add("weights");
    MultiArray bytes(DataType::uint8, {static_cast<int64_t>(c.packed.size())});
    std::copy(c.packed.begin(), c.packed.end(), static_cast<uint8_t*>(bytes.data()));
    weights.set("rawValue", bytes);
    Message quantization = weights.add("quantization").set("numberOfBits", c.bits);
    quantization.add("linearQuantization").set("scale", MultiArray::of(std::vector<float>{1}, {1}));
    TemporaryFolder folder;
    ModelSource(model).save(folder / "n.mlmodel");

    const WeightStatistics s = Inspection::open(folder / "n.mlmodel").statistics(0, {}, 32);
    EXPECT_EQ(s.bits, c.bits);
    EXPECT_EQ(s.count, c.codes.size());
    EXPECT_EQ(s.zeros, static_cast<uint64_t>(std::count(c.codes.begin(), c.codes.end(), 0)));
    EXPECT_EQ(s.maximum, *std::max_element(c.codes.begin(), c.codes.end()));
    EXPECT_EQ(s.distinct, std::set<uint8_t>(c.codes.begin(), c.codes.end()).size());
    double sum = 0;
    for (uint8_t code : c.codes) sum += code;
    EXPECT_DOUBLE_EQ(s.mean, sum / static_cast<double>(c.codes.size()));
  }
}

TEST(Inspection, LayersSayWhetherTheyAreUpdatable) {
  const Inspection inspection = Inspection::open(MOKA_GOLDEN "/update/plain.mlmodel");
  const std::pair<std::string, std::string> updatable("isUpdatable", "true");
  std::vector<std::string> found;
  for (const ModelStructure::Layer& layer : inspection.outline().structure.layers)
    if (std::count(layer.settings.begin(), layer.settings.end(), updatable) == 1) found.push_back(layer.name);
  EXPECT_EQ(found, std::vector<std::string>{"second"});
  ASSERT_TRUE(inspection.outline().description.update.has_value());
  EXPECT_EQ(inspection.outline().description.update->parameter("epochs")->value,
            (std::variant<int64_t, double, bool>(int64_t{3})));
}

TEST(Inspection, StatisticsOfWeightsWhoseElementsHaveNoType) {
  Message model = describe_model(described());
  Message dense = add_dense(model);
  dense.set("hasBias", Message::Scalar(true));
  // Raw bytes without a number of bits.
  dense.add("weights").set("rawValue", MultiArray(DataType::uint8, {6}));
  dense.add("bias").set("floatValue", MultiArray::of(std::vector<float>{1, 0, -3}, {3}));
  TemporaryFolder folder;
  ModelSource(model).save(folder / "n.mlmodel");

  const Inspection inspection = Inspection::open(folder / "n.mlmodel");
  const auto& weights = inspection.outline().structure.weights;
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_EQ(weights[0].bytes, 6u);
  expect_error(ErrorKind::unsupported, {"'dense.weights'", "elements cannot be read"},
               [&] { inspection.statistics(0); });
  const WeightStatistics bias = inspection.statistics(1);
  EXPECT_EQ(bias.count, 3u);
  EXPECT_EQ(bias.zeros, 1u);
  EXPECT_EQ(bias.minimum, -3);
  EXPECT_EQ(bias.maximum, 1);
}

}  // namespace
}  // namespace moka::test
