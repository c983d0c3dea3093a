#include <map>

#include "api/api_util.h"

/// Kinds of errors are those of docs/errors.md, and kind and text are the same on every device.
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

std::pair<ErrorKind, std::string> error_of(const Mistake& m, const std::string& device, bool optimize) {
  ModelConfiguration c;
  c.device = device;
  c.optimize = optimize;
  try {
    Model::from_mil(m.mil, c).predict(m.inputs);
  } catch (const Exception& e) {
    return {e.kind(), e.what()};
  }
  return {ErrorKind::internal, "no error"};
}

TEST(ErrorKinds, AreAlikeOnAllDevices) {
  for (const Mistake& m : mistakes()) {
    const auto expected = error_of(m, "reference", false);
    EXPECT_EQ(static_cast<int>(expected.first), static_cast<int>(m.kind)) << m.name << ": " << expected.second;
    EXPECT_NE(expected.second.find(m.says), std::string::npos) << m.name << ": " << expected.second;
    for (const char* device : {"reference", "cpu"})
      for (bool optimize : {false, true}) {
        const auto got = error_of(m, device, optimize);
        EXPECT_EQ(static_cast<int>(got.first), static_cast<int>(expected.first)) << m.name << " on " << device;
        EXPECT_EQ(got.second, expected.second) << m.name << " on " << device;
      }
  }
}

}  // namespace
}  // namespace moka::test
