// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "api/api_util.h"
#include "moka/build.h"

/// Neural networks of one layer.
namespace moka::test {
namespace {

FeatureDescription described(const std::string& name, std::vector<int64_t> shape) {
  FeatureDescription f;
  f.name = name;
  f.array.shape = std::move(shape);
  return f;
}

/// A network with these inputs and the output y; `fill` adds its layers.
template <class Fill>
Model network_of(std::vector<FeatureDescription> inputs, std::vector<int64_t> output, Fill fill) {
  ModelDescription d;
  d.specification_version = 5;
  d.functions = {{"", std::move(inputs), {described("y", std::move(output))}}};
  Message model = describe_model(d);
  Message layers = model.add("neuralNetwork").set("arrayInputShapeMapping", "EXACT_ARRAY_MAPPING");
  fill(layers);
  return ModelSource(model).load();
}

TEST(Networks, TrianglesKeepInfinities) {
  const float inf = INFINITY;
  const MultiArray mask = MultiArray::of(std::vector<float>(9, -inf), {3, 3});
  struct Case {
    const char* layer;
    int64_t k;
    std::vector<double> expected;
  };
  const Case cases[] = {{.layer = "upperTriangular", .k = 1, .expected = {0, -inf, -inf, 0, 0, -inf, 0, 0, 0}},
                        {.layer = "lowerTriangular", .k = -1, .expected = {0, 0, 0, -inf, 0, 0, -inf, -inf, 0}}};
  for (const Case& c : cases) {
    const Model m = network_of({described("x", {3, 3})}, {3, 3}, [&](Message& to) {
      to.add("layers")
          .set("name", "t")
          .set("input", "x")
          .set("output", "y")
          .add(c.layer)
          .set("k", Message::Scalar(c.k));
    });
    EXPECT_EQ(values(m.predict({{"x", mask}}).array("y")), c.expected) << c.layer;
  }
}

TEST(Networks, AnOptionalInputOfRangesHasADefaultShape) {
  FeatureDescription given = described("o", {});
  given.optional = true;
  given.array.ranges = {{1, 10}};
  given.default_value = 3.0;
  const Model m = network_of({described("x", {1}), given}, {1}, [](Message& to) {
    Message sum = to.add("layers").set("name", "s").set("input", "o").set("output", "s").add("reduceSum");
    sum.set("axes", std::vector<Message::Scalar>{int64_t{0}});
    sum.set("keepDims", Message::Scalar(true));
    Message add = to.add("layers").set("name", "a").set("output", "y");
    add.set("input", std::vector<Message::Scalar>{std::string("x"), std::string("s")});
    add.add("addBroadcastable");
  });
  const MultiArray one = MultiArray::of(std::vector<float>{1}, {1});
  EXPECT_EQ(m.predict({{"x", one}}).array("y").at(0), 4);
  EXPECT_EQ(m.predict({{"x", one}, {"o", MultiArray::of(std::vector<float>{5, 6}, {2})}}).array("y").at(0), 12);
}

}  // namespace
}  // namespace moka::test
