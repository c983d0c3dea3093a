// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "api/api_util.h"

/// A loaded model describes the values that its inputs may have, and random inputs obey the description.
namespace moka::test {
namespace {

Model golden(const std::string& name) { return Model::load(MOKA_GOLDEN "/classic/" + name + ".mlmodel"); }

TEST(RandomInputs, AreCategoriesThatTheModelKnows) {
  for (const char* name : {"one_hot_string_dense", "one_hot_int", "mapping_string", "dict_vectorizer", "recommender"}) {
    const Model m = golden(name);
    bool any = false;
    for (const auto& f : m.function().inputs) any |= !f.categories.empty();
    EXPECT_TRUE(any) << name;
    std::set<std::string> seen;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const Features in = m.random_inputs(seed);
      EXPECT_NO_THROW(m.predict(in)) << name;
      for (const auto& f : m.function().inputs) {
        const FeatureValue& v = in.at(f.name);
        std::vector<std::string> given;
        if (const auto* text = std::get_if<std::string>(&v)) given = {*text};
        if (const auto* number = std::get_if<int64_t>(&v)) given = {std::to_string(*number)};
        if (const auto* d = std::get_if<Dictionary>(&v))
          for (const auto& [key, value] : d->strings) given.push_back(key);
        if (const auto* s = std::get_if<StringSequence>(&v)) given = *s;
        if (f.categories.empty()) continue;
        for (const std::string& g : given)
          EXPECT_NE(std::find(f.categories.begin(), f.categories.end(), g), f.categories.end()) << name << ": " << g;
        seen.insert(given.begin(), given.end());
      }
    }
    EXPECT_GE(seen.size(), 2u) << name;
  }
}

TEST(RandomInputs, OfATableLieInIt) {
  const Model m = Model::from_mil(program(
      "tensor<int32, [2, 5]> tokens, tensor<int32, [3]> mask",
      "tensor<fp32, [7, 2]> table = const()[val = tensor<fp32, [7, "
      "2]>([[0,1],[2,3],[4,5],[6,7],[8,9],[10,11],[12,13]])];\n"
      "tensor<bool, [2, 5]> good = greater_equal(x = tokens, y = int32(0));\n"
      "tensor<int32, [2, 5]> wrapped = add(x = tokens, y = int32(7));\n"
      "tensor<int32, [2, 5]> at = select(cond = good, a = tokens, b = wrapped);\n"
      "tensor<fp32, [2, 5, 2]> y = gather(x = table, indices = at, axis = int32(0), validate_indices = bool(true));\n"
      "tensor<fp32, [3]> z = cast(x = mask, dtype = string(\"fp32\"));",
      "y, z"));
  const auto& inputs = m.function().inputs;
  ASSERT_TRUE(inputs[0].index_range.has_value());
  EXPECT_EQ(inputs[0].index_range->lower, 0);
  EXPECT_EQ(inputs[0].index_range->upper, 6);
  EXPECT_FALSE(inputs[1].index_range.has_value());
  std::set<double> seen;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Features in = m.random_inputs(seed);
    EXPECT_NO_THROW(m.predict(in));
    for (double v : values(in.array("tokens"))) seen.insert(v);
  }
  EXPECT_EQ(seen, (std::set<double>{0, 1, 2, 3, 4, 5, 6}));
}

void expect_range(const Model& m, const std::string& input, int64_t upper) {
  for (const FeatureDescription& f : m.function().inputs) {
    if (f.name != input) continue;
    ASSERT_TRUE(f.index_range.has_value());
    EXPECT_EQ(f.index_range->lower, 0);
    EXPECT_EQ(f.index_range->upper, upper);
  }
  for (uint64_t seed = 1; seed <= 20; ++seed) EXPECT_NO_THROW(m.predict(m.random_inputs(seed))) << seed;
}

TEST(RandomInputs, OfTablesThatLoopsReadLieInThem) {
  const std::string table = "tensor<fp32, [3, 2]> table = const()[val = tensor<fp32, [3, 2]>([[0,1],[2,3],[4,5]])];\n";
  // The tokens stay outside the loop, which reads one of them per iteration.
  expect_range(Model::from_mil(program("tensor<int32, [4]> tokens", table + R"(
      tensor<fp32, [2]> zero = const()[val = tensor<fp32, [2]>([0, 0])];
      int32 n, tensor<fp32, [2]> y = while_loop(loop_vars = (int32(0), zero)) {
        block test(int32 k, tensor<fp32, [2]> v) { bool more = less(x = k, y = int32(4)); } -> (more);
        block step(int32 k, tensor<fp32, [2]> v) {
          int32 after = add(x = k, y = int32(1));
          int32 t = gather(x = tokens, indices = k, axis = int32(0), validate_indices = bool(true));
          tensor<fp32, [2]> row = gather(x = table, indices = t, axis = int32(0), validate_indices = bool(true));
          tensor<fp32, [2]> sum = add(x = v, y = row);
        } -> (after, sum);
      };)",
                                       "y")),
               "tokens", 2);
  // The first token enters the loop as a variable.
  expect_range(Model::from_mil(program("int32 token", table + R"(
      tensor<fp32, [2]> zero = const()[val = tensor<fp32, [2]>([0, 0])];
      int32 n, tensor<fp32, [2]> y = while_loop(loop_vars = (token, zero)) {
        block test(int32 k, tensor<fp32, [2]> v) { bool more = less(x = k, y = int32(2)); } -> (more);
        block step(int32 k, tensor<fp32, [2]> v) {
          int32 after = add(x = k, y = int32(1));
          tensor<fp32, [2]> row = gather(x = table, indices = k, axis = int32(0), validate_indices = bool(true));
          tensor<fp32, [2]> sum = add(x = v, y = row);
        } -> (after, sum);
      };)",
                                       "y")),
               "token", 2);
}

TEST(RandomInputs, ThatAreWrittenToLieInTheAxis) {
  expect_range(Model::from_mil(program(
                   "tensor<fp32, [1, 3]> x, tensor<int32, [1]> i, tensor<fp32, [1, 3]> u",
                   "tensor<fp32, [1, 3]> y = scatter(data = x, indices = i, updates = u, axis = int32(0), mode = "
                   "string(\"update\"), validate_indices = bool(true));",
                   "y")),
               "i", 0);
  expect_range(Model::from_mil(program("tensor<fp32, [5, 1, 3]> x, tensor<int32, [2, 2]> i",
                                       "tensor<fp32, [2, 3]> y = gather_nd(x = x, indices = i, validate_indices = "
                                       "bool(true));",
                                       "y")),
               "i", 0);
}

TEST(RandomInputs, HaveASizeThatTheModelCanRun) {
  // The model stacks x, described as [1] of 1 to 9 elements, on z of three.
  const Model m = Model::load(MOKA_GOLDEN "/flexible/lowest.mlmodel");
  const Features in = m.random_inputs();
  EXPECT_EQ(in.array("x").shape(), std::vector<int64_t>{3});
  EXPECT_NO_THROW(m.predict(in));
  EXPECT_NO_THROW(m.compute_plan());
}

TEST(Messages, AnUnknownCategoryNamesTheInputAndTheChoices) {
  for (const char* device : {"cpu", "reference"}) {
    ModelConfiguration c;
    c.device = device;
    const Model m = Model::load(MOKA_GOLDEN "/classic/one_hot_int.mlmodel", c);
    expect_error(ErrorKind::data, {"input 'x': ", "expected one of the categories", "-2", "5", "9", "got 4"}, [&] {
      m.predict({{"x", int64_t{4}}});
    });
  }
}

TEST(Inputs, WholeNumbersAreNotRounded) {
  const Model m = Model::load(MOKA_GOLDEN "/classic/imputer_int.mlmodel");
  const std::string &x = m.function().inputs[0].name, &y = m.function().outputs[0].name;
  EXPECT_EQ(std::get<int64_t>(m.predict({{x, 7.0}}).at(y)), 7);
  for (const double number : {2.7, 0x1p63, -0x1.1p63, std::nan(""), HUGE_VAL}) {
    MultiArray array(DataType::float64, {1});
    array.as<double>()[0] = number;
    for (const FeatureValue& value : {FeatureValue(number), FeatureValue(array)})
      expect_error(ErrorKind::invalid_argument, {"input 'x'", "whole number"}, [&] { m.predict({{x, value}}); });
  }
}

TEST(Inputs, ArraysWithoutDataAreRefused) {
  const Model scalar = Model::from_mil(
      program("tensor<fp32, []> x", "tensor<fp32, []> y = add(x = x, y = x)[name = string(\"y\")];", "y"));
  const Model number = Model::load(MOKA_GOLDEN "/classic/imputer_int.mlmodel");
  const MultiArray one(nullptr, DataType::float32, {1});
  for (const auto& [model, value] : {std::pair(&scalar, MultiArray()), {&scalar, one}, {&number, one}})
    expect_error(ErrorKind::invalid_argument, {"'x'", "without data"}, [&] { model->predict({{"x", value}}); });
}

TEST(Inputs, IntegersBecomeTheNearestFloats) {
  const Model m =
      Model::from_mil(program("tensor<fp32, [2]> x", "tensor<fp32, [2]> y = relu(x = x)[name = string(\"y\")];", "y"));
  MultiArray large(DataType::uint64, {2});
  large.as<uint64_t>()[0] = uint64_t{1} << 63;
  large.as<uint64_t>()[1] = ~uint64_t{0};
  EXPECT_EQ(values(m.predict({{"x", large}}).array("y")), (std::vector<double>{0x1p63, 0x1p64}));
  EXPECT_EQ(values(large.converted(DataType::float64)), (std::vector<double>{0x1p63, 0x1p64}));
  MultiArray between(DataType::int64, {1});
  between.as<int64_t>()[0] = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;  // a double rounds it to a tie between floats
  EXPECT_EQ(between.converted(DataType::float32).at(0), 0x1p60 + 0x1p37);
}

TEST(Messages, OnlyDevicesForUsersAreOffered) {
  ModelConfiguration c;
  c.device = "tpu";
  try {
    Model::load(MOKA_GOLDEN "/classic/one_hot_int.mlmodel", c);
    ADD_FAILURE() << "expected an error";
  } catch (const Exception& e) {
    const std::string text = e.what();
    for (const char* offered : {"'cpu'", "'reference'", "'neuralEngine'", "got 'tpu'"})
      EXPECT_NE(text.find(offered), std::string::npos) << text;
    EXPECT_EQ(text.find("'null'"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace moka::test
