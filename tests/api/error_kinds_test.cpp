// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "api/api_util.h"

/// Kinds of errors match docs/errors.md, and kind and text are the same on every device.
namespace moka::test {
namespace {

struct Mistake {
  const char* name;
  std::string mil;
  Features inputs;
  ErrorKind kind;
  std::string says;
};

MultiArray ints(std::vector<double> numbers, std::vector<int64_t> shape) {
  MultiArray wide(DataType::float64, std::move(shape));
  std::copy(numbers.begin(), numbers.end(), wide.as<double>().begin());
  return wide.converted(DataType::int32);
}

MultiArray floats(std::vector<int64_t> shape) { return MultiArray(DataType::float32, std::move(shape)); }

std::vector<Mistake> mistakes() {
  return {
      {"an index outside of a table",
       program("tensor<fp32, [3, 2]> x, tensor<int32, [2]> i",
               "tensor<fp32, [2, 2]> y = gather(x = x, indices = i, axis = int32(0), validate_indices = bool(true));",
               "y"),
       {{"x", floats({3, 2})}, {"i", ints({1, 7}, {2})}},
       ErrorKind::data,
       "expected indices from 0 to 2, got 7"},
      {"an index outside of an axis",
       program("tensor<fp32, [3, 2]> x, tensor<int32, [1, 2]> i",
               "tensor<fp32, [1, 2]> y = gather_along_axis(x = x, indices = i, axis = int32(0), validate_indices = "
               "bool(true));",
               "y"),
       {{"x", floats({3, 2})}, {"i", ints({0, -4}, {1, 2})}},
       ErrorKind::data,
       "expected indices from 0 to 2, got -4"},
      {"a computed shape of another size",
       program("tensor<fp32, [6]> x, tensor<int32, [2]> s", "tensor<fp32, [?, ?]> y = reshape(x = x, shape = s);", "y"),
       {{"x", floats({6})}, {"s", ints({4, 2}, {2})}},
       ErrorKind::data,
       "reshape"},
      {"a computed number of copies",
       program("tensor<fp32, [2]> x, tensor<int32, [1]> r", "tensor<fp32, [?]> y = tile(x = x, reps = r);", "y"),
       {{"x", floats({2})}, {"r", ints({-1}, {1})}},
       ErrorKind::data,
       "tile"},
      {"an index of several axes",
       program("tensor<fp32, [3, 2]> x, tensor<int32, [1, 2]> i",
               "tensor<fp32, [1]> y = gather_nd(x = x, indices = i, validate_indices = bool(true));", "y"),
       {{"x", floats({3, 2})}, {"i", ints({1, 2}, {1, 2})}},
       ErrorKind::data,
       "expected indices from 0 to 1, got 2"},
      {"an index that is written to",
       program("tensor<fp32, [3, 2]> x, tensor<int32, [1]> i, tensor<fp32, [1, 2]> u",
               "tensor<fp32, [3, 2]> y = scatter(data = x, indices = i, updates = u, axis = int32(0), mode = "
               "string(\"update\"), validate_indices = bool(true));",
               "y"),
       {{"x", floats({3, 2})}, {"i", ints({3}, {1})}, {"u", floats({1, 2})}},
       ErrorKind::data,
       "expected indices from 0 to 2, got 3"},
      {"the begin of a slice",
       program("tensor<fp32, [6]> x, tensor<int32, [1]> b",
               "tensor<fp32, [4]> y = slice_by_size(x = x, begin = b, size = tensor<int32, [1]>([4]));", "y"),
       {{"x", floats({6})}, {"b", ints({5}, {1})}},
       ErrorKind::data,
       "4 entries from 5 on do not fit in axis 0 of size 6"},
      {"bounds that select another size",
       program("tensor<fp32, [6]> x, tensor<int32, [1]> b, tensor<int32, [1]> e, tensor<fp32, [2]> u",
               "tensor<fp32, [6]> y = slice_update(x = x, update = u, begin = b, end = e);", "y"),
       {{"x", floats({6})}, {"b", ints({1}, {1})}, {"e", ints({5}, {1})}, {"u", floats({2})}},
       ErrorKind::data,
       "the bounds select"},
      {"a length beyond the axis",
       program("tensor<fp32, [2, 3]> x, tensor<int32, [2]> n",
               "tensor<fp32, [2, 3]> y = reverse_sequence(x = x, lengths = n, seq_axis = int32(1), batch_axis = "
               "int32(0));",
               "y"),
       {{"x", floats({2, 3})}, {"n", ints({1, 4}, {2})}},
       ErrorKind::data,
       "expected lengths from 0 to 3, got 4"},
      {"weights that are no distribution",
       program("tensor<fp32, [1, 3]> x",
               "tensor<fp32, [1, 2]> y = random_categorical(x = x, mode = string(\"probs\"), size = int32(2));", "y"),
       {{"x", floats({1, 3})}},
       ErrorKind::data,
       "is not a distribution"},
      {"a box of another picture",
       program("tensor<fp32, [1, 1, 4, 4]> x, tensor<fp32, [1, 4]> b, tensor<int32, [1]> i",
               "tensor<fp32, [1, 1, 2, 2]> y = crop_resize(x = x, boxes = b, box_indices = i, target_height = "
               "int32(2), target_width = int32(2));",
               "y"),
       {{"x", floats({1, 1, 4, 4})}, {"b", floats({1, 4})}, {"i", ints({2}, {1})}},
       ErrorKind::data,
       "box 0 is of image 2, expected 0 to 0"},
      {"a loop without an end",
       program("int32 x",
               "int32 y = while_loop(loop_vars = (x)) {\n"
               "block test(int32 k) { bool more = greater_equal(x = k, y = int32(0)); } -> (more);\n"
               "block step(int32 k) { int32 after = mul(x = k, y = int32(1)); } -> (after);\n};",
               "y"),
       {{"x", ints({1}, {})}},
       ErrorKind::data,
       "more than 50 iterations"},
      {"an input that is not given",
       program("tensor<fp32, [2]> x, tensor<fp32, [2]> z", "tensor<fp32, [2]> y = add(x = x, y = z);", "y"),
       {{"x", floats({2})}},
       ErrorKind::invalid_argument,
       "input 'z'"},
      {"an input that the model has not",
       program("tensor<fp32, [2]> x", "tensor<fp32, [2]> y = relu(x = x);", "y"),
       {{"x", floats({2})}, {"w", floats({2})}},
       ErrorKind::invalid_argument,
       "'w'"},
      {"text where numbers belong",
       program("tensor<fp32, [2]> x", "tensor<fp32, [2]> y = relu(x = x);", "y"),
       {{"x", std::string("two")}},
       ErrorKind::invalid_argument,
       "input 'x'"},
      {"shapes of inputs that do not fit each other",
       program("tensor<fp32, [?]> x, tensor<fp32, [?]> z", "tensor<fp32, [?]> y = add(x = x, y = z);", "y"),
       {{"x", floats({3})}, {"z", floats({4})}},
       ErrorKind::invalid_argument,
       "expected a shape that broadcasts"},
      {"a shape that is not allowed",
       program("tensor<fp32, [2, 3]> x", "tensor<fp32, [2, 3]> y = relu(x = x);", "y"),
       {{"x", floats({3, 2})}},
       ErrorKind::invalid_argument,
       "input 'x': expected MultiArray (Float32 2 x 3), got shape 3 x 2"},
  };
}

/// Devices whose errors must equal those of `reference`. After tools/setup, Vulkan has lavapipe.
constexpr const char* kDevices[] = {"reference", "cpu", "simulator", "vulkan"};

using Failure = std::pair<ErrorKind, std::string>;

ModelConfiguration on(const std::string& device, bool optimize) {
  ModelConfiguration c;
  c.device = device;
  c.optimize = optimize;
  c.loop_limit = 50;
  return c;
}

template <class Act>
Failure failure_of(Act act) {
  try {
    act();
  } catch (const Exception& e) {
    return {e.kind(), e.what()};
  }
  return {ErrorKind::internal, "no error"};
}

/// Runs `fail_on(configuration)` on every device with and without passes.
template <class FailOn>
void expect_alike(const char* name, ErrorKind kind, const std::string& says, FailOn fail_on) {
  const Failure expected = fail_on(on("reference", false));
  EXPECT_EQ(static_cast<int>(expected.first), static_cast<int>(kind)) << name << ": " << expected.second;
  EXPECT_NE(expected.second.find(says), std::string::npos) << name << ": " << expected.second;
  for (const char* device : kDevices)
    for (bool optimize : {false, true}) {
      const Failure got = fail_on(on(device, optimize));
      EXPECT_EQ(static_cast<int>(got.first), static_cast<int>(expected.first)) << name << " on " << device;
      EXPECT_EQ(got.second, expected.second) << name << " on " << device << (optimize ? ", optimized" : "");
    }
}

TEST(ErrorKinds, AreAlikeOnAllDevices) {
  for (const Mistake& m : mistakes())
    expect_alike(m.name, m.kind, m.says, [&](const ModelConfiguration& c) {
      return failure_of([&] { Model::from_mil(m.mil, c).predict(m.inputs); });
    });
}

TEST(ErrorKinds, OfCategoriesStatesAndBackingsAreAlikeOnAllDevices) {
  expect_alike("an unknown category", ErrorKind::data, "input 'x'", [](const ModelConfiguration& c) {
    return failure_of([&] { Model::load(MOKA_GOLDEN "/classic/one_hot_int.mlmodel", c).predict({{"x", int64_t{4}}}); });
  });
  const std::string counter = program("state<tensor<fp32, [2]>> s, tensor<fp32, [2]> x",
                                      "tensor<fp32, [2]> r = read_state(input = s);\n"
                                      "tensor<fp32, [2]> y = add(x = r, y = x);",
                                      "y");
  expect_alike("no state", ErrorKind::invalid_argument, "state", [&](const ModelConfiguration& c) {
    return failure_of([&] { Model::from_mil(counter, c).predict({{"x", floats({2})}}); });
  });
  expect_alike("the state of another model", ErrorKind::invalid_argument, "state 's'",
               [&](const ModelConfiguration& c) {
                 return failure_of([&] {
                   std::string other = counter;
                   for (size_t at; (at = other.find("[2]")) != std::string::npos;) other.replace(at, 3, "[3]");
                   State state = Model::from_mil(other, c).new_state();
                   Model::from_mil(counter, c).predict({{"x", floats({2})}}, PredictionOptions{&state});
                 });
               });
  expect_alike("a backing of another shape", ErrorKind::invalid_argument, "output 'y'",
               [&](const ModelConfiguration& c) {
                 return failure_of([&] {
                   Features outputs{{"y", floats({3})}};
                   Model::from_mil(program("tensor<fp32, [2]> x", "tensor<fp32, [2]> y = relu(x = x);", "y"), c)
                       .predict({{"x", floats({2})}}, outputs);
                 });
               });
}

}  // namespace
}  // namespace moka::test
