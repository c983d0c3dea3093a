// SPDX-License-Identifier: Apache-2.0
#include "api/api_util.h"

namespace moka::test {
namespace {

struct Draw {
  const char* operation;
  const char* parameters;
};

constexpr Draw kDraws[] = {
    {"random_uniform", "shape = tensor<int32, [2]>([4, 64])"},
    {"random_normal", "shape = tensor<int32, [2]>([4, 64])"},
    {"random_bernoulli", "shape = tensor<int32, [2]>([4, 64])"},
    {"random_categorical", "x = tensor<fp32, [4, 3]>([[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]), size = int32(64)"},
};

Model drawing(const Draw& d, const std::string& seed, const ModelConfiguration& c = {}) {
  return Model::from_mil(program("tensor<fp32, [1]> x",
                                 "tensor<fp32, [4, 64]> r = " + std::string(d.operation) + "(" + d.parameters + seed +
                                     ");\ntensor<fp32, [4, 64]> y = add(x = r, y = x);",
                                 "y"),
                         c);
}

std::vector<double> predict(const Model& m) {
  return values(m.predict({{"x", MultiArray(DataType::float32, {1})}}).array("y"));
}

TEST(RandomDraws, AreNewInEachPredictionWithoutASeed) {
  for (const Draw& d : kDraws)
    for (const char* seed : {"", ", seed = int32(-1)"}) {
      const Model m = drawing(d, seed);
      const auto first = predict(m), second = predict(m), third = predict(m);
      EXPECT_NE(first, second) << d.operation << seed;
      EXPECT_NE(second, third) << d.operation << seed;
      EXPECT_NE(first, third) << d.operation << seed;
    }
}

TEST(RandomDraws, RepeatWithASeed) {
  for (const Draw& d : kDraws) {
    const Model m = drawing(d, ", seed = int32(3)");
    const auto first = predict(m);
    EXPECT_EQ(predict(m), first) << d.operation;
    ModelConfiguration plain;
    plain.optimize = false;
    plain.device = "reference";
    plain.threads = 1;
    EXPECT_EQ(predict(drawing(d, ", seed = int32(3)", plain)), first) << d.operation;
    EXPECT_NE(predict(drawing(d, ", seed = int32(4)")), first) << d.operation;
  }
}

/// Two draws of one program differ unless both have the same seed.
TEST(RandomDraws, OfOneProgramAreApartWithoutASeed) {
  for (const bool seeded : {false, true}) {
    const std::string seed = seeded ? ", seed = int32(5)" : "";
    const std::string draw = " = random_normal(shape = tensor<int32, [1]>([64])" + seed + ");\n";
    const Model m = Model::from_mil(
        program("tensor<fp32, [1]> x",
                "tensor<fp32, [64]> a" + draw + "tensor<fp32, [64]> b" + draw +
                    "tensor<fp32, [64]> p = add(x = a, y = x);\ntensor<fp32, [64]> q = add(x = b, y = x);",
                "p, q"));
    const Features out = m.predict({{"x", MultiArray(DataType::float32, {1})}});
    EXPECT_EQ(values(out.array("p")) == values(out.array("q")), seeded);
  }
}

}  // namespace
}  // namespace moka::test
