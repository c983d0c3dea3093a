// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <fstream>

#include "api/api_util.h"
#include "models_folder.h"
#include "moka/build.h"
#include "moka/program.h"

namespace moka::test {
namespace {

/// total += x; returns the total.
Model accumulator(const char* type = "fp32") {
  std::string t = std::string("tensor<") + type + ", [2]>";
  return Model::from_mil(program("state<" + t + "> total, " + t + " x",
                                 t + " before = read_state(input = total)[name = string(\"before\")];\n" + t +
                                     " sum = add(x = before, y = x)[name = string(\"sum\")];\n" + t +
                                     " y = coreml_update_state(state = total, value = sum)[name = string(\"update\")];",
                                 "y"));
}

MultiArray pair_of(float a, float b) { return MultiArray::of(std::vector<float>{a, b}, {2}); }

/// The description of a feature of two numbers, in a list of the description of a model.
void describe_pair(Message list, const char* field, const char* name, bool is_state) {
  Message type = list.add(field).set("name", name).add("type");
  if (is_state) type = type.add("stateType");
  Message array = type.add(is_state ? "arrayType" : "multiArrayType");
  array.set("shape", std::vector<Message::Scalar>{int64_t{2}}).set("dataType", "FLOAT16");
}

TEST(States, AreListedAsStates) {
  ProgramBuilder b("ios18");
  const auto total = b.state("total", DataType::float16, {2});
  const auto x = b.input("x", DataType::float16, {2});
  const auto sum = b.op("add", {{"x", b.op("read_state", {{"input", total}})}, {"y", x}});
  b.output(b.op("coreml_update_state", {{"state", total}, {"value", sum}}), "y");
  const auto load = [&](const char* taken, const char* from, const char* to, bool is_state) {
    Message model = b.source().specification();
    Message description = model.at("description");
    description.clear(from);
    describe_pair(description, to, taken, is_state);
    return ModelSource(model).load();
  };
  expect_error(ErrorKind::malformed, {"'total'", "among the inputs"}, [&] {
    load("total", "state", "input", true).predict({{"x", pair_of(1, 2)}});
  });
  expect_error(ErrorKind::malformed, {"'x'", "among the states"},
               [&] { load("x", "input", "state", false).predict({}); });
}

TEST(States, AreKeptBetweenPredictions) {
  for (const char* type : {"fp32", "fp16"}) {
    Model m = accumulator(type);
    ASSERT_EQ(m.function().states.size(), 1u);
    ASSERT_EQ(m.function().inputs.size(), 1u);
    State a = m.new_state(), b = m.new_state();
    PredictionOptions with_a{&a}, with_b{&b};
    EXPECT_EQ(values(m.predict({{"x", pair_of(1, 2)}}, with_a).array("y")), (std::vector<double>{1, 2}));
    EXPECT_EQ(values(m.predict({{"x", pair_of(1, 2)}}, with_a).array("y")), (std::vector<double>{2, 4}));
    EXPECT_EQ(values(m.predict({{"x", pair_of(5, 5)}}, with_b).array("y")), (std::vector<double>{5, 5}));
    EXPECT_EQ(values(a.read("total")), (std::vector<double>{2, 4}));
    a.write("total", pair_of(10, 20));
    EXPECT_EQ(values(m.predict({{"x", pair_of(1, 1)}}, with_a).array("y")), (std::vector<double>{11, 21}));
    EXPECT_EQ(values(b.read("total")), (std::vector<double>{5, 5}));
    EXPECT_EQ(a.names(), (std::vector<std::string>{"total"}));
    MultiArray copy = a.read("total");
    m.predict({{"x", pair_of(1, 1)}}, with_a);
    EXPECT_EQ(values(copy), (std::vector<double>{11, 21}));
  }
}

TEST(States, Errors) {
  Model m = accumulator();
  expect_error(ErrorKind::invalid_argument, {"state"}, [&] { m.predict({{"x", pair_of(1, 2)}}); });
  State s = m.new_state();
  expect_error(ErrorKind::not_found, {"'other'"}, [&] { s.read("other"); });
  expect_error(ErrorKind::not_found, {"'other'"}, [&] { s.write("other", pair_of(1, 2)); });
  expect_error(ErrorKind::invalid_argument, {"'total'", "3"},
               [&] { s.write("total", MultiArray(DataType::float32, {3})); });
  // A state of another model.
  Model other = Model::from_mil(program("state<tensor<fp32, [1]>> memory, tensor<fp32, [2]> x",
                                        "tensor<fp32, [1]> m = read_state(input = memory)[name = string(\"r\")]; "
                                        "tensor<fp32, [2]> y = add(x = x, y = m)[name = string(\"a\")];",
                                        "y"));
  State wrong = other.new_state();
  PredictionOptions options{&wrong};
  expect_error(ErrorKind::invalid_argument, {"'total'"}, [&] { m.predict({{"x", pair_of(1, 2)}}, options); });
  // A state of the same name with another shape.
  Model wide = Model::from_mil(program("state<tensor<fp32, [4]>> total, tensor<fp32, [4]> x",
                                       "tensor<fp32, [4]> m = read_state(input = total)[name = string(\"r\")]; "
                                       "tensor<fp32, [4]> y = add(x = x, y = m)[name = string(\"a\")];",
                                       "y"));
  PredictionOptions narrow{&s};
  expect_error(ErrorKind::invalid_argument, {"'total'"}, [&] {
    wide.predict({{"x", MultiArray(DataType::float32, {4})}}, narrow);
  });
}

TEST(States, RefuseSizesThatAreNotKnown) {
  for (const char* sizes : {"[?]", "[*?]"})
    expect_error(ErrorKind::malformed, {"state 's'", "sizes that are known", sizes}, [&] {
      Model::from_mil(program(std::string("state<tensor<fp32, ") + sizes + ">> s, tensor<fp32, [2]> x",
                              "tensor<fp32, [2]> before = read_state(input = s)[name = string(\"before\")];\n"
                              "tensor<fp32, [2]> y = add(x = before, y = x)[name = string(\"y\")];",
                              "y"));
    });
}

TEST(States, RefuseArraysWithoutData) {
  const Model m =
      Model::from_mil(program("state<tensor<fp32, [2]>> s, tensor<fp32, [2]> x",
                              "tensor<fp32, [2]> before = read_state(input = s)[name = string(\"before\")];\n"
                              "tensor<fp32, [2]> y = add(x = before, y = x)[name = string(\"y\")];",
                              "y"));
  State state = m.new_state();
  expect_error(ErrorKind::invalid_argument, {"state 's'", "without data"},
               [&] { state.write("s", MultiArray(nullptr, DataType::float32, {2})); });
}

/// Each prediction adds a row to a cache. A sum is another state.
TEST(States, SeveralWithRowsWrittenOneByOne) {
  const std::string row = "tensor<fp16, [1, 4]>", cache = "tensor<fp16, [8, 4]>";
  const Model m = Model::from_mil(
      program("state<" + cache + "> keys, state<" + row + "> sum, " + row + " x, tensor<int32, [1]> at",
              cache + " old = read_state(input = keys);\n" +
                  "tensor<int32, [1]> next = add(x = at, y = tensor<int32, [1]>([1]));\n"
                  "tensor<int32, [2]> begin = concat(values = (at, tensor<int32, [1]>([0])), axis = int32(0));\n"
                  "tensor<int32, [2]> end = concat(values = (next, tensor<int32, [1]>([4])), axis = int32(0));\n" +
                  cache + " changed = slice_update(x = old, update = x, begin = begin, end = end);\n" + cache +
                  " kept = coreml_update_state(state = keys, value = changed);\n" + row +
                  " before = read_state(input = sum);\n" + row + " after = add(x = before, y = x);\n" + row +
                  " total = coreml_update_state(state = sum, value = after);\n" + row +
                  " rows = reduce_sum(x = kept, axes = tensor<int32, [1]>([0]), keep_dims = bool(true));\n" + cache +
                  " again = read_state(input = keys);\n" + row +
                  " most = reduce_max(x = again, axes = tensor<int32, [1]>([0]), keep_dims = bool(true));\n",
              "rows, total, most"));
  State s = m.new_state();
  PredictionOptions with_state{&s};
  std::vector<double> expected(32), sum(4);
  for (int n = 0; n < 8; n++) {
    const int place = n * 3 % 8;
    std::vector<float> x(4);
    for (int i = 0; i < 4; i++) {
      x[static_cast<size_t>(i)] = static_cast<float>(n + 1 + 10 * i);
      expected[static_cast<size_t>(place * 4 + i)] = n + 1 + 10 * i;
      sum[static_cast<size_t>(i)] += n + 1 + 10 * i;
    }
    MultiArray at(DataType::int32, {1});
    at.as<int32_t>()[0] = place;
    const Features out = m.predict({{"x", MultiArray::of(x, {1, 4})}, {"at", at}}, with_state);
    EXPECT_EQ(values(out.array("rows")), sum);
    EXPECT_EQ(values(out.array("total")), sum);
    EXPECT_EQ(values(out.array("most")), std::vector<double>(x.begin(), x.end()));
    EXPECT_EQ(values(s.read("keys")), expected);
    EXPECT_EQ(values(s.read("sum")), sum);
  }
}

/// A value that is read before a write keeps the old content.
TEST(States, ReadBeforeAWriteIsTheFormerValue) {
  const std::string t = "tensor<fp32, [2]>";
  const Model m = Model::from_mil(program(
      "state<" + t + "> kept, " + t + " x",
      t + " before = read_state(input = kept);\n" + t + " now = coreml_update_state(state = kept, value = x);\n" + t +
          " after = read_state(input = kept);\n" + t + " change = sub(x = after, y = before);\n" + t +
          " same = sub(x = after, y = now);\n",
      "before, change, same"));
  State s = m.new_state();
  PredictionOptions with_state{&s};
  double a = 0;
  for (float v : {3.0f, 5.0f, -1.0f}) {
    const Features out = m.predict({{"x", pair_of(v, 2 * v)}}, with_state);
    EXPECT_EQ(values(out.array("before")), (std::vector<double>{a, 2 * a}));
    EXPECT_EQ(values(out.array("change")), (std::vector<double>{v - a, 2 * (v - a)}));
    EXPECT_EQ(values(out.array("same")), (std::vector<double>{0, 0}));
    a = static_cast<double>(v);
  }
}

/// Writes inside branches and loops happen only when these run.
TEST(States, AreWrittenInsideOfBlocks) {
  const std::string t = "tensor<fp32, [2]>";
  const Model m = Model::from_mil(
      program("state<" + t + "> kept, " + t + " x, int32 n",
              "bool some = greater(x = n, y = int32(0));\n" + t + " y = cond(pred = some) {\n block yes() {\n" +
                  "int32 i = while_loop(loop_vars = (int32(0))) {\n"
                  "block test(int32 k) { bool more = less(x = k, y = n); } -> (more);\n"
                  "block step(int32 k) { int32 next = add(x = k, y = int32(1));\n" +
                  t + " old = read_state(input = kept);\n" + t + " sum = add(x = old, y = x);\n" + t +
                  " done = coreml_update_state(state = kept, value = sum); } -> (next);\n};\n" + t +
                  " a = read_state(input = kept); } -> (a);\n block no() {\n" + t +
                  " b = read_state(input = kept); } -> (b);\n};\n",
              "y"));
  State s = m.new_state();
  PredictionOptions with_state{&s};
  int times = 0;
  for (int n : {3, 0, 1, -2, 4}) {
    times += std::max(n, 0);
    MultiArray count(DataType::int32, {1});
    count.as<int32_t>()[0] = n;
    const std::vector<double> expected{1.0 * times, -2.0 * times};
    EXPECT_EQ(values(m.predict({{"x", pair_of(1, -2)}, {"n", count}}, with_state).array("y")), expected) << n;
    EXPECT_EQ(values(s.read("kept")), expected);
  }
}

TEST(Intermediates, ShowEveryOperation) {
  Model m =
      Model::from_mil(program("tensor<fp32, [2]> x", R"(tensor<fp32, [2]> a = add(x = x, y = x)[name = string("first")];
    tensor<fp32, [2]> b = exp(x = a)[name = string("second")];
    tensor<fp32, [2]> y = mul(x = b, y = a)[name = string("third")];)",
                              "y"));
  std::map<std::string, std::vector<double>> seen;
  Features out =
      m.intermediates({{"x", pair_of(0, 1)}}, [&](std::string_view operation, std::string_view, const MultiArray& a) {
        seen[std::string(operation)] = values(a);
      });
  ASSERT_TRUE(seen.contains("third"));
  EXPECT_EQ(seen["third"], values(out.array("y")));
  if (seen.contains("first")) {
    EXPECT_EQ(seen["first"], (std::vector<double>{0, 2}));
  }
  // Another prediction from inside the first.
  int inner = 0;
  m.intermediates({{"x", pair_of(0, 1)}}, [&](std::string_view, std::string_view, const MultiArray&) {
    inner += m.predict({{"x", pair_of(1, 1)}}).size() == 1;
  });
  EXPECT_GT(inner, 0);
}

/// Functions and scales that are fused past a reshape change the values before it. They are not shown as the model's
/// values of those names.
TEST(Intermediates, HaveTheValuesOfTheirNames) {
  const std::string moves = R"(
    tensor<fp32, [2, 2]> row = reshape(x = a, shape = tensor<int32, [2]>([2, 2]))[name = string("second")];
    tensor<fp32, [2, 2]> column = transpose(x = row, perm = tensor<int32, [2]>([1, 0]))[name = string("third")];
    tensor<fp32, [2, 2]> y = exp(x = column)[name = string("fourth")];
    tensor<fp32, [2, 2]> z = tanh(x = y)[name = string("fifth")];)";
  const std::string scales = R"(
    tensor<fp32, [1, 2, 2]> row = reshape(x = a, shape = tensor<int32, [3]>([1, 2, 2]))[name = string("second")];
    tensor<fp32, [1, 2, 2]> y = mul(x = row, y = fp32(3))[name = string("third")];
    tensor<fp32, [1, 2, 2]> z = sin(x = y)[name = string("fourth")];)";
  const MultiArray x = MultiArray::of(std::vector<float>{0.5, -1, 0.25, 2}, {2, 2});
  for (
      const std::string& body :
      {R"(tensor<fp32, [2, 2]> a = mul(x = x, y = fp32(2))[name = string("first")];)" + moves,
       R"(tensor<fp32, [2, 2]> a = linear(x = x, weight = tensor<fp32, [2, 2]>([[1, 2], [3, 4]]))[name = string("first")];)" +
           scales}) {
    std::map<std::string, std::vector<double>> known;
    size_t found = 0;
    for (const bool optimize : {false, true}) {
      ModelConfiguration c;
      c.optimize = optimize;
      c.device = "reference";
      Model::from_mil(program("tensor<fp32, [2, 2]> x", body, "z"), c)
          .intermediates({{"x", x}}, [&](std::string_view, std::string_view name, const MultiArray& a) {
            const auto [at, is_new] = known.emplace(name, values(a));
            found += !is_new;
            EXPECT_EQ(at->second, values(a)) << name;
          });
    }
    EXPECT_GT(found, 0u);
  }
}

TEST(ComputePlan, NamesEveryOperationOnce) {
  MOKA_NEEDS_MODELS(folder);
  Model m = Model::load((*folder / "basic_pitch/nmp.mlpackage").string());
  ComputePlan p = m.compute_plan({}, true);
  EXPECT_FALSE(p.operations.empty());
  EXPECT_GT(p.operations_in_source, p.operations.size() / 2);
  EXPECT_GT(p.arena_bytes, 0u);
  EXPECT_LE(p.arena_bytes, p.unshared_bytes);
  bool timed = false;
  for (const auto& o : p.operations) {
    EXPECT_FALSE(o.device.empty()) << o.name;
    timed |= o.measured_seconds > 0;
  }
  EXPECT_TRUE(timed);
  EXPECT_GT(p.measured_seconds, 0);
  OperationList s = m.operations();
  EXPECT_FALSE(s.operations.empty());
  EXPECT_FALSE(s.weights.empty());
}

TEST(Builder, ComputesAndRoundTrips) {
  ProgramBuilder b("ios17");
  auto x = b.input("x", DataType::float32, {1, 2, 4, 4});
  MultiArray weight(DataType::float32, {3, 2, 1, 1});
  for (size_t i = 0; i < 6; i++) weight.as<float>()[i] = static_cast<float>(i);
  auto c = b.op("conv", {{"x", x}, {"weight", weight}, {"pad_type", "valid"}}, "conv");
  auto r = b.op("relu", {{"x", c}}, "relu");
  auto parts = b.ops("split", {{"x", r}, {"num_splits", 3}, {"axis", 1}}, "split");
  ASSERT_EQ(parts.size(), 3u);
  auto y = b.op("concat", {{"values", std::vector<ProgramBuilder::Value>{parts[2], parts[0]}}, {"axis", 1}}, "y");
  b.output(y);
  std::string text = b.mil();
  Model m = b.build();
  MultiArray in(DataType::float32, {1, 2, 4, 4});
  for (size_t i = 0; i < 32; i++) in.as<float>()[i] = static_cast<float>(i);
  Features out = m.predict({{"x", in}});
  const MultiArray& a = std::get<MultiArray>(out.begin()->second);
  ASSERT_EQ(a.shape(), (std::vector<int64_t>{1, 2, 4, 4}));
  for (int64_t i = 0; i < 16; i++) {
    EXPECT_EQ(a.at(i), 4.0 * static_cast<double>(i) + 5.0 * static_cast<double>(16 + i));
    EXPECT_EQ(a.at(16 + i), static_cast<double>(16 + i));
  }
  EXPECT_EQ(values(std::get<MultiArray>(Model::from_mil(text).predict({{"x", in}}).begin()->second)), values(a));
}

TEST(Builder, Errors) {
  expect_error(ErrorKind::invalid_argument, {"ios99"}, [] { ProgramBuilder("ios99"); });
  ProgramBuilder b;
  auto x = b.input("x", DataType::float32, {2, 3});
  EXPECT_THROW(b.op("no_such_operation", {{"x", x}}), Exception);
  EXPECT_THROW(b.op("relu", {}), Exception);
  EXPECT_THROW(b.op("relu", {{"x", x}, {"what", 1}}), Exception);
  EXPECT_THROW(b.op("matmul", {{"x", x}, {"y", x}}), Exception);
  EXPECT_THROW(b.op("relu", {{"x", ProgramBuilder::Value{}}}), Exception);
  EXPECT_THROW(b.op("split", {{"x", x}, {"num_splits", 3}, {"axis", 1}}), Exception);
  EXPECT_THROW(b.input("huge", DataType::float32, std::vector<int64_t>(40, 2)), Exception);
  EXPECT_THROW(b.input("negative", DataType::float32, {-7}), Exception);
  b.output(b.op("relu", {{"x", x}}));
  Model m = b.build();
  EXPECT_EQ(b.mil().find("relu"), std::string::npos);
}

}  // namespace
}  // namespace moka::test
