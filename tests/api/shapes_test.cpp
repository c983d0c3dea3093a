// SPDX-License-Identifier: Apache-2.0
#include "api/api_util.h"
#include "models_folder.h"

namespace moka::test {
namespace {

MultiArray counting(const std::vector<int64_t>& shape) { return counted(shape, 1); }

TEST(FlexibleShapes, RangeIsKeptTo) {
  Model m = Model::load(MOKA_GOLDEN "/flexible/range.mlmodel");
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3, 2}, {5, 2}, {4, 1000}})
    EXPECT_EQ(m.predict({{"x", counting(shape)}}).array("y").shape(), shape);
  auto with = [&](std::vector<int64_t> shape) { return [&m, shape] { m.predict({{"x", counting(shape)}}); }; };
  expect_error(ErrorKind::invalid_argument, {"'x'", "Size (99) of dimension (0) is not in allowed range (3..5)"},
               with({99, 2}));
  expect_error(ErrorKind::invalid_argument, {"'x'", "Size (2) of dimension (0) is not in allowed range (3..5)"},
               with({2, 2}));
  expect_error(ErrorKind::invalid_argument, {"'x'", "Size (1) of dimension (1) is not in allowed range (2.."},
               with({3, 1}));
  expect_error(ErrorKind::invalid_argument, {"'x'", "3 x 2 x 1"}, with({3, 2, 1}));
}

TEST(FlexibleShapes, EnumeratedAreKeptTo) {
  Model m = Model::load(MOKA_GOLDEN "/flexible/enumerated.mlmodel");
  for (int64_t n : {28, 56, 112})
    EXPECT_EQ(m.predict({{"x", counting({1, 3, n, n})}}).array("y").shape(), (std::vector<int64_t>{1, 3, n, n}));
  expect_error(ErrorKind::invalid_argument,
               {"'x'", "MultiArray Shape (1 x 3 x 29 x 29) was not in enumerated set of allowed shapes"}, [&] {
                 m.predict({{"x", counting({1, 3, 29, 29})}});
               });
  expect_error(ErrorKind::invalid_argument, {"'x'", "was not in enumerated set of allowed shapes"}, [&] {
    m.predict({{"x", counting({1, 3, 28, 56})}});
  });
}

/// Inputs of 1 to 9 and of 3 numbers are stacked. By default the first has 2.
TEST(FlexibleShapes, ChosenDefaultsMustFit) {
  expect_error(ErrorKind::malformed,
               {"with the default sizes of the inputs", "'pile' (stack)", "[2]", "[3]", "; sizes that fit: x 3, z 3"},
               [] { Model::load(MOKA_GOLDEN "/flexible/contradictory.mlmodel"); });
}

/// By default the first has 1 or 9. Converters write this for "any size", and Core ML loads it.
TEST(FlexibleShapes, LowestAndHighestSizesNeedNotFit) {
  for (const char* path : {MOKA_GOLDEN "/flexible/lowest.mlmodel", MOKA_GOLDEN "/flexible/highest.mlmodel"}) {
    Model m = Model::load(path);
    EXPECT_EQ(m.predict({{"x", counting({3})}, {"z", counting({3})}}).array("y").shape(), (std::vector<int64_t>{2, 3}));
    expect_error(ErrorKind::invalid_argument, {"'pile' (stack)", "[2]", "[3]"}, [&] {
      m.predict({{"x", counting({2})}, {"z", counting({3})}});
    });
  }
}

/// The first input has the shape [1..9, 1..9] and the default [1, 2]. The second one has the shape [3, 3].
TEST(FlexibleShapes, OneLowestSizeIsEnough) {
  Model m = Model::load(MOKA_GOLDEN "/flexible/partly_lowest.mlmodel");
  EXPECT_EQ(m.predict({{"x", counting({3, 3})}, {"z", counting({3, 3})}}).array("y").shape(),
            (std::vector<int64_t>{2, 3, 3}));
}

/// The second input must be longer than the first one by 2.
TEST(FlexibleShapes, RandomInputsFindSizesThatDiffer) {
  const Model m = Model::from_mil(program(
      "tensor<fp32, [?]> x, tensor<fp32, [?]> z",
      "tensor<fp32, [?]> longer = concat(values = (x, tensor<fp32, [2]>([1, 1])), axis = int32(0), interleave = "
      "bool(false))[name = string(\"longer\")];\n"
      "tensor<fp32, [2, ?]> y = stack(values = (longer, z), axis = int32(0))[name = string(\"pile\")];",
      "y"));
  const Features in = m.random_inputs();
  const int64_t n = in.array("x").shape()[0];
  EXPECT_EQ(in.array("z").shape(), (std::vector<int64_t>{n + 2}));
  EXPECT_EQ(m.predict(in).array("y").shape(), (std::vector<int64_t>{2, n + 2}));
}

/// A shape that depends on an input's shape is known once the input is given. The plan is then complete and has no
/// operations that compute the shape.
TEST(FlexibleShapes, ShapesOfInputsAreKnownToThePlan) {
  const Model m = Model::from_mil(
      program("tensor<fp32, [?, 4]> x",
              "tensor<int32, [2]> s = shape(x = x)[name = string(\"s\")];\n"
              "tensor<int32, [1]> n = slice_by_size(x = s, begin = tensor<int32, [1]>([0]), size = tensor<int32, "
              "[1]>([1]))[name = string(\"n\")];\n"
              "tensor<int32, [3]> t = concat(values = (n, tensor<int32, [2]>([2, 2])), axis = int32(0), interleave = "
              "bool(false))[name = string(\"t\")];\n"
              "tensor<fp32, [?, 2, 2]> r = reshape(x = x, shape = t)[name = string(\"r\")];\n"
              "tensor<fp32, [?, 2, 2]> y = relu(x = r)[name = string(\"y\")];",
              "y"));
  for (int64_t n : {3, 5}) {
    const Features inputs{{"x", counting({n, 4})}};
    EXPECT_EQ(m.predict(inputs).array("y").shape(), (std::vector<int64_t>{n, 2, 2}));
    for (const PlannedOperation& o : m.compute_plan(inputs).operations)
      EXPECT_TRUE(o.name == "r" || o.name == "y") << o.name << " (" << o.type << ") runs";
  }
}

/// More shapes than plans are kept, in ascending and descending order.
TEST(FlexibleShapes, ForgottenPlansAreMadeAgain) {
  ModelConfiguration c;
  for (size_t kept : {size_t{0}, size_t{1}, size_t{3}}) {
    c.cached_shapes = kept;
    Model m = Model::load(MOKA_GOLDEN "/flexible/range.mlmodel", c);
    for (int round = 0; round < 3; round++)
      for (int64_t n = 2; n < 12; n++) {
        MultiArray x = counting({3, round == 1 ? 14 - n : n});
        auto y = values(m.predict({{"x", x}}).array("y"));
        for (size_t i = 0; i < y.size(); i++) ASSERT_EQ(y[i], std::max(0.0, x.at(static_cast<int64_t>(i))));
      }
  }
}

constexpr const char* kNonZero = R"(tensor<int32, [?, 2]> y = non_zero(x = x)[name = string("where")];)";

TEST(DynamicShapes, NonZero) {
  Model m = Model::from_mil(program("tensor<fp32, [2, 3]> x", kNonZero, "y"));
  auto run = [&](std::vector<float> x) { return m.predict({{"x", MultiArray::of(x, {2, 3})}}).array("y"); };
  MultiArray y = run({0, 1, 0, 0, 0, 2});
  EXPECT_EQ(y.shape(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(values(y), (std::vector<double>{0, 1, 1, 2}));
  EXPECT_EQ(run({1, 1, 1, 1, 1, 1}).shape(), (std::vector<int64_t>{6, 2}));
  EXPECT_EQ(run({0, 0, 0, 0, 0, 0}).count(), 0);
  EXPECT_EQ(values(run({0, 1, 0, 0, 0, 2})), values(y));
}

TEST(DynamicShapes, RangeFeedsOtherOperations) {
  std::string body = R"(int32 zero = const()[name = string("zero"), val = int32(0)];
    int32 one = const()[name = string("one"), val = int32(1)];
    tensor<int32, [1]> axes = const()[name = string("axes"), val = tensor<int32, [1]>([0])];
    bool keep = const()[name = string("keep"), val = bool(false)];
    tensor<int32, [?]> r = range_1d(start = zero, end = n, step = one)[name = string("range")];
    tensor<int32, [?]> q = mul(x = r, y = r)[name = string("square")];
    int32 s = reduce_sum(x = q, axes = axes, keep_dims = keep)[name = string("sum")];)";
  Model m = Model::from_mil(program("int32 n", body, "q, s"));
  for (int32_t n : {0, 1, 5, 100, 5}) {
    MultiArray in(DataType::int32, {1});
    in.as<int32_t>()[0] = n;
    Features out = m.predict({{"n", in}});
    EXPECT_EQ(out.array("q").count(), n);
    EXPECT_EQ(out.array("s").at(0), n * (n - 1) * (2 * n - 1) / 6);
  }
}

TEST(DynamicShapes, ReshapeByARuntimeTensor) {
  Model m = Model::from_mil(
      program("tensor<fp32, [2, 6]> x, tensor<int32, [3]> s",
              R"(tensor<fp32, [?, ?, ?]> y = reshape(x = x, shape = s)[name = string("reshape")];)", "y"));
  auto run = [&](std::vector<int32_t> s) {
    MultiArray shape(DataType::int32, {3});
    std::copy(s.begin(), s.end(), shape.as<int32_t>().begin());
    return m.predict({{"x", counting({2, 6})}, {"s", shape}}).array("y");
  };
  EXPECT_EQ(run({1, 3, 4}).shape(), (std::vector<int64_t>{1, 3, 4}));
  EXPECT_EQ(run({-1, 3, 2}).shape(), (std::vector<int64_t>{2, 3, 2}));
  EXPECT_EQ(values(run({12, 1, 1})), values(counting({2, 6})));
  for (std::vector<int32_t> wrong :
       {std::vector<int32_t>{5, 1, 1}, {-1, -1, 1}, {-2, 1, 1}, {2147483647, 2147483647, 2147483647}}) {
    try {
      run(wrong);
      ADD_FAILURE() << wrong[0];
    } catch (const Exception& e) {
      EXPECT_NE(e.kind(), ErrorKind::internal) << e.what();
      EXPECT_NE(std::string(e.what()).find("reshape"), std::string::npos) << e.what();
    }
  }
}

/// The branches give different shapes, and the loop's value grows.
TEST(DynamicShapes, ControlFlow) {
  std::string branches = R"(tensor<int32, [1]> axes = const()[name = string("axes"), val = tensor<int32, [1]>([0])];
    int32 axis = const()[name = string("axis"), val = int32(0)];
    bool no = const()[name = string("no"), val = bool(false)];
    tensor<fp32, [?]> y = cond(pred = p)[name = string("choose")] {
      block yes() { tensor<fp32, [?]> a = concat(values = (x, x), axis = axis, interleave = no)[name = string("a")]; } -> (a);
      block no() { tensor<fp32, [?]> b = relu(x = x)[name = string("b")]; } -> (b);
    };)";
  Model m = Model::from_mil(program("bool p, tensor<fp32, [?]> x", branches, "y"));
  for (int n : {1, 4, 2})
    for (int p : {0, 1}) {
      MultiArray choice(DataType::int32, {1});
      choice.as<int32_t>()[0] = p;
      EXPECT_EQ(m.predict({{"p", choice}, {"x", counting({n})}}).array("y").count(), p ? 2 * n : n);
    }

  std::string loop = R"(int32 zero = const()[name = string("zero"), val = int32(0)];
    int32 one = const()[name = string("one"), val = int32(1)];
    int32 axis = const()[name = string("axis"), val = int32(0)];
    bool no = const()[name = string("no"), val = bool(false)];
    int32 i, tensor<fp32, [?]> y = while_loop(loop_vars = (zero, x))[name = string("grow")] {
      block condition(int32 k, tensor<fp32, [?]> v) { bool more = less(x = k, y = n)[name = string("more")]; } -> (more);
      block body(int32 k, tensor<fp32, [?]> v) {
        int32 next = add(x = k, y = one)[name = string("next")];
        tensor<fp32, [?]> w = concat(values = (v, v), axis = axis, interleave = no)[name = string("w")];
      } -> (next, w);
    };)";
  Model grow = Model::from_mil(program("int32 n, tensor<fp32, [?]> x", loop, "y"));
  for (int32_t n : {0, 3, 10, 1, 3}) {
    MultiArray times(DataType::int32, {1});
    times.as<int32_t>()[0] = n;
    MultiArray y = grow.predict({{"n", times}, {"x", counting({3})}}).array("y");
    ASSERT_EQ(y.count(), 3 << n);
    for (int64_t i = 0; i < y.count(); i++) ASSERT_EQ(y.at(i), static_cast<double>(i % 3) - 3);
  }
  // It would need 3 * 2^60 numbers.
  ModelConfiguration small;
  small.memory_budget = 1 << 20;
  MultiArray times(DataType::int32, {1});
  times.as<int32_t>()[0] = 60;
  expect_error(ErrorKind::out_of_budget, {"1048576"}, [&] {
    Model::from_mil(program("int32 n, tensor<fp32, [?]> x", loop, "y"), small)
        .predict({{"n", times}, {"x", counting({3})}});
  });
}

/// A list that grows in a loop counts against the budget too.
TEST(DynamicShapes, ListsAreBudgeted) {
  std::string body = R"(int32 zero = const()[name = string("zero"), val = int32(0)];
    int32 one = const()[name = string("one"), val = int32(1)];
    int32 many = const()[name = string("many"), val = int32(1000)];
    tensor<int32, [1]> shape = const()[name = string("shape"), val = tensor<int32, [1]>([10000])];
    bool dynamic = const()[name = string("dynamic"), val = bool(true)];
    string type = const()[name = string("type"), val = string("fp32")];
    list<tensor<fp32, [10000]>, ?> start = make_list(init_length = one, dynamic_length = dynamic, elem_shape = shape, dtype = type)[name = string("make")];
    int32 i, list<tensor<fp32, [10000]>, ?> l = while_loop(loop_vars = (zero, start))[name = string("fill")] {
      block condition(int32 k, list<tensor<fp32, [10000]>, ?> v) { bool more = less(x = k, y = many)[name = string("more")]; } -> (more);
      block body(int32 k, list<tensor<fp32, [10000]>, ?> v) {
        int32 next = add(x = k, y = one)[name = string("next")];
        list<tensor<fp32, [10000]>, ?> w = list_write(ls = v, index = k, value = x)[name = string("write")];
      } -> (next, w);
    };
    int32 n = list_length(ls = l)[name = string("length")];)";
  MultiArray x(DataType::float32, {10000});
  std::string text = program("tensor<fp32, [10000]> x", body, "n");
  EXPECT_EQ(Model::from_mil(text).predict({{"x", x}}).array("n").at(0), 1000);
  ModelConfiguration small;
  small.memory_budget = 4 << 20;
  expect_error(ErrorKind::out_of_budget, {"list"}, [&] { Model::from_mil(text, small).predict({{"x", x}}); });
}

}  // namespace
}  // namespace moka::test
