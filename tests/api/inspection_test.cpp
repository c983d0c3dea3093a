#include "moka/inspection.h"

#include <gtest/gtest.h>

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

TEST(Inspection, StatisticsOfWeightsWhoseElementsHaveNoType) {
  ModelDescription d;
  d.specification_version = 4;
  d.functions = {{"", {doubles("x", 2)}, {doubles("y", 3)}}};
  Message model = describe_model(d);
  Message layer = model.add("neuralNetwork").add("layers");
  layer.set("name", "dense").set("input", "x").set("output", "y");
  Message dense = layer.add("innerProduct").set("inputChannels", 2).set("outputChannels", 3);
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
