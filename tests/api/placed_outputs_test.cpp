// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "api/api_util.h"
#include "moka/program.h"

/// Outputs are computed in the returned memory unless the caller or another value owns it.
namespace moka {
namespace {

constexpr int64_t kCount = 40000;

MultiArray numbers(float first) {
  MultiArray x(DataType::float32, {1, kCount});
  for (int64_t i = 0; i < kCount; i++) x.as<float>()[static_cast<size_t>(i)] = first + static_cast<float>(i % 100);
  return x;
}

float at(const Features& outputs, const char* name, int64_t i) { return static_cast<float>(outputs.array(name).at(i)); }

TEST(PlacedOutputs, EachPredictionHasItsOwn) {
  ProgramBuilder b;
  auto x = b.input("x", DataType::float32, {1, kCount});
  b.output(b.op("add", {{"x", b.op("mul", {{"x", x}, {"y", 2.0f}}, "twice")}, {"y", 1.0f}}, "y"));
  const Model model = b.build();
  std::vector<Features> all;
  for (int i = 0; i < 5; i++) all.push_back(model.predict({{"x", numbers(static_cast<float>(i))}}));
  for (int i = 0; i < 5; i++)
    for (int64_t j : {int64_t{0}, int64_t{77}, kCount - 1})
      EXPECT_EQ(at(all[static_cast<size_t>(i)], "y", j), 2 * static_cast<float>(i + j % 100) + 1);
}

TEST(PlacedOutputs, OneValueUnderTwoNamesAndShapes) {
  ProgramBuilder b;
  auto x = b.input("x", DataType::float32, {1, kCount});
  auto y = b.op("mul", {{"x", x}, {"y", 2.0f}}, "y");
  b.output(y);
  b.output(b.op("reshape", {{"x", y}, {"shape", std::vector<int32_t>{2, kCount / 2}}}, "z"));
  b.output(b.op("identity", {{"x", x}}, "same"));
  const Model model = b.build();
  const MultiArray given = numbers(3);
  Features first = model.predict({{"x", given}});
  const Features second = model.predict({{"x", numbers(5)}});
  EXPECT_NE(first.array("y").data(), first.array("z").data());
  EXPECT_NE(first.array("same").data(), given.data());
  EXPECT_EQ(first.array("z").shape(), (std::vector<int64_t>{2, kCount / 2}));
  for (int64_t j : {int64_t{0}, int64_t{123}, kCount - 1}) {
    const auto n = static_cast<float>(j % 100);
    EXPECT_EQ(at(first, "y", j), 2 * (n + 3));
    EXPECT_EQ(at(first, "z", j), 2 * (n + 3));
    EXPECT_EQ(at(first, "same", j), n + 3);
    EXPECT_EQ(at(second, "z", j), 2 * (n + 5));
  }
}

TEST(PlacedOutputs, PartsOfALargerValueAreCopied) {
  ProgramBuilder b;
  auto x = b.input("x", DataType::float32, {1, kCount});
  auto y = b.op("mul", {{"x", x}, {"y", 2.0f}}, "y"), z = b.op("add", {{"x", x}, {"y", 1.0f}}, "z");
  b.output(y);
  b.output(b.op("concat", {{"values", std::vector<ProgramBuilder::Value>{y, z}}, {"axis", 0}}, "both"));
  const Model model = b.build();
  const Features outputs = model.predict({{"x", numbers(0)}});
  for (int64_t j : {int64_t{0}, int64_t{123}, kCount - 1}) {
    const auto n = static_cast<float>(j % 100);
    EXPECT_EQ(at(outputs, "y", j), 2 * n);
    EXPECT_EQ(at(outputs, "both", j), 2 * n);
    EXPECT_EQ(at(outputs, "both", kCount + j), n + 1);
  }
}

TEST(PlacedOutputs, MemoryThatIsGivenMayBeTheInputs) {
  ProgramBuilder b;
  auto x = b.input("x", DataType::float32, {1, kCount});
  b.output(b.op("reverse", {{"x", x}, {"axes", std::vector<int32_t>{1}}}, "y"));
  const Model model = b.build();
  MultiArray both = numbers(0);
  Features outputs{{"y", both}};
  model.predict({{"x", both}}, outputs);
  EXPECT_EQ(outputs.array("y").data(), both.data());
  for (int64_t j : {int64_t{0}, int64_t{1}, kCount - 1})
    EXPECT_EQ(both.at(j), static_cast<double>((kCount - 1 - j) % 100));
}

TEST(PlacedOutputs, APredictionThatFailsReturnsNothing) {
  ProgramBuilder b;
  auto x = b.input("x", DataType::float32, {1, kCount});
  auto where = b.input("where", DataType::int32, {1});
  b.output(b.op("mul", {{"x", x}, {"y", 2.0f}}, "y"));
  b.output(b.op("gather", {{"x", x}, {"indices", where}, {"axis", 1}, {"validate_indices", true}}, "z"));
  const Model model = b.build();
  MultiArray index(DataType::int32, {1});
  index.as<int32_t>()[0] = kCount;
  Features outputs;
  EXPECT_THROW(model.predict({{"x", numbers(0)}, {"where", index}}, outputs), Exception);
  EXPECT_EQ(outputs.find("y"), nullptr);
  index.as<int32_t>()[0] = 7;
  model.predict({{"x", numbers(0)}, {"where", index}}, outputs);
  EXPECT_EQ(at(outputs, "y", 5), 10);
  EXPECT_EQ(at(outputs, "z", 0), 7);
}

}  // namespace
}  // namespace moka
