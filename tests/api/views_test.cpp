// SPDX-License-Identifier: Apache-2.0
// Programs that misuse every public view of memory. Each block of memory is as large as it must be and no larger, so
// that the address sanitizer finds what reads or writes outside it (make test-asan TESTS=test_api).
#include <cstring>
#include <memory>

#include "api/api_util.h"
#include "moka/build.h"
#include "moka/custom.h"

namespace moka::test {
namespace {

constexpr DataType kTypes[] = {DataType::float16, DataType::float32, DataType::float64, DataType::int8,
                               DataType::int16,   DataType::int32,   DataType::int64,   DataType::uint8,
                               DataType::uint16,  DataType::uint32,  DataType::uint64,  DataType::boolean};

/// Reads and writes all elements as T, where the view allows it. Returns whether it does.
template <class T>
bool touch(MultiArray& a) {
  try {
    for (T& v : a.as<T>()) v = T(1);
    const MultiArray& same = a;
    for (const T& v : same.as<T>()) EXPECT_EQ(v, T(1));
    EXPECT_EQ(sizeof(T), size_of(a.type()));
    for (int64_t i = 0; i < a.shape()[0]; i++)
      for (int64_t k = 0; k < a.shape()[1]; k++) EXPECT_EQ(same.view<T>()(i, k), T(1));
    return true;
  } catch (const Exception& e) {
    EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
    expect_error(ErrorKind::invalid_argument, {"another C++ type"}, [&] { (void)a.view<T>(); });
    return false;
  }
}

std::unique_ptr<std::byte[]> block(size_t bytes) { return std::unique_ptr<std::byte[]>(new std::byte[bytes]()); }

/// x: float32 [2, 3], n: int32 [2], p: an image of 4 x 2.
Model mixed() {
  return Model::from_mil(program("tensor<fp32, [2, 3]> x, tensor<int32, [2]> n", R"(
    tensor<fp32, [2, 3]> y = add(x = x, y = x)[name = string("y")];
    tensor<int32, [2]> m = add(x = n, y = n)[name = string("m")];)",
                                 "y, m"));
}

const MultiArray kNumbers = MultiArray(DataType::int32, {2});

class Misuser : public CustomLayer {
 public:
  explicit Misuser(std::function<void(const LayerCall&)> act) : act_(std::move(act)) {}
  void evaluate(const LayerCall& call) const override { act_(call); }

 private:
  std::function<void(const LayerCall&)> act_;
};

}  // namespace

TEST(Views, ElementsAsEveryType) {
  for (const DataType type : kTypes) {
    SCOPED_TRACE(to_string(type));
    const auto memory = block(size_of(type) * 6);
    MultiArray a(memory.get(), type, {2, 3});
    const int allowed = touch<float>(a) + touch<double>(a) + touch<bool>(a) + touch<int8_t>(a) + touch<int16_t>(a) +
                        touch<int32_t>(a) + touch<int64_t>(a) + touch<uint8_t>(a) + touch<uint16_t>(a) +
                        touch<uint32_t>(a) + touch<uint64_t>(a);
    EXPECT_EQ(allowed, type == DataType::boolean ? 2 : 1);
  }
}

TEST(Views, StridesAreNotSkipped) {
  const auto memory = block(sizeof(float) * 5);  // the last row has no padding
  MultiArray columns(memory.get(), DataType::float32, {2, 2}, {3, 1});
  expect_error(ErrorKind::invalid_argument, {"row-major"}, [&] { (void)columns.as<float>(); });
  const auto view = columns.view<float>();
  view(1, 1) = 7;
  EXPECT_EQ(columns.at(3), 7);
  EXPECT_EQ(values(columns.converted(DataType::float64)), (std::vector<double>{0, 0, 0, 7}));
  for (const auto& wrong : std::vector<std::vector<int64_t>>{
           {}, {0}, {0, 0, 0}, {2, 0}, {0, 2}, {-1, 0}, {0, -1}, {INT64_MAX, 0}, {INT64_MIN, 0}, {1, INT64_MAX}})
    expect_error(ErrorKind::invalid_argument, {"multi-array"}, [&] { view(wrong) = 1; });
  expect_error(ErrorKind::invalid_argument, {}, [&] { (void)view(); });
  expect_error(ErrorKind::invalid_argument, {}, [&] { (void)columns.at(4); });
  MultiArray empty(DataType::float32, {0, 3});
  EXPECT_TRUE(empty.as<float>().empty());
  expect_error(ErrorKind::invalid_argument, {}, [&] { (void)empty.view<float>()(0, 0); });
  expect_error(ErrorKind::invalid_argument, {}, [&] { (void)empty.at(0); });
  MultiArray nothing;
  EXPECT_EQ(nothing.count(), 0);
  expect_error(ErrorKind::invalid_argument, {}, [&] { (void)nothing.at(0); });
}

TEST(Views, InputsOfOtherShapesAndTypes) {
  const Model m = mixed();
  for (const DataType type : kTypes) {
    SCOPED_TRACE(to_string(type));
    const auto six = block(size_of(type) * 6), two = block(size_of(type) * 2), one = block(size_of(type));
    Features out = m.predict({{"x", MultiArray(six.get(), type, {2, 3})}, {"n", MultiArray(two.get(), type, {2})}});
    EXPECT_EQ(values(out.array("m")), (std::vector<double>{0, 0}));
    for (const auto& shape : std::vector<std::vector<int64_t>>{{2}, {1, 2}, {2, 1}, {2, 0}, {}, {2, 1, 1}})
      expect_error(ErrorKind::invalid_argument, {"'x'"}, [&] {
        m.predict({{"x", MultiArray(two.get(), type, shape)}, {"n", kNumbers}});
      });
    expect_error(ErrorKind::invalid_argument, {"'n'"}, [&] {
      m.predict({{"x", MultiArray(six.get(), type, {2, 3})}, {"n", MultiArray(one.get(), type, {1})}});
    });
    // One element for all: strides of 0 read it again and again.
    out = m.predict({{"x", MultiArray(one.get(), type, {2, 3}, {0, 0})}, {"n", kNumbers}});
    EXPECT_EQ(out.array("y").at(5), 0);
  }
  expect_error(ErrorKind::invalid_argument, {}, [&] {
    m.predict({{"x", MultiArray(nullptr, DataType::float32, {2, 3})}, {"n", kNumbers}});
  });
}

TEST(Views, OutputBackingsOfOtherShapesAndTypes) {
  const Model m = mixed();
  const Features inputs{{"x", counted({2, 3})}, {"n", kNumbers}};
  for (const DataType type : kTypes) {
    SCOPED_TRACE(to_string(type));
    for (const auto& shape : std::vector<std::vector<int64_t>>{{2, 3}, {3, 2}, {6}, {2}, {1, 3}, {0}, {2, 3, 1}}) {
      int64_t count = 1;
      for (const int64_t d : shape) count *= d;
      const auto memory = block(size_of(type) * static_cast<size_t>(count));
      Features out{{"y", MultiArray(memory.get(), type, shape)}};
      if (type == DataType::float32 && shape == std::vector<int64_t>{2, 3})
        m.predict(inputs, out);
      else
        expect_error(ErrorKind::invalid_argument, {"'y'"}, [&] { m.predict(inputs, out); });
    }
  }
  // Backwards, and with room between the rows: only the elements themselves are written.
  const auto memory = block(sizeof(float) * 7);
  auto* numbers = reinterpret_cast<float*>(memory.get());
  numbers[3] = 42;
  Features out{{"y", MultiArray(numbers + 6, DataType::float32, {2, 3}, {-4, -1})}};
  m.predict(inputs, out);
  EXPECT_EQ(numbers[3], 42);
  EXPECT_EQ(out.array("y").at(5), numbers[0]);
  // All elements in one place would be written many times.
  Features same{{"y", MultiArray(numbers, DataType::float32, {2, 3}, {0, 0})}};
  try {
    m.predict(inputs, same);
  } catch (const Exception& e) {
    EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
  }
}

TEST(Views, ImagesWithRowsThatAreTooShort) {
  const auto memory = block(4 * 3);
  for (const int64_t row_bytes : {int64_t{-12}, int64_t{-1}, int64_t{1}, int64_t{11}, INT64_MIN})
    expect_error(ErrorKind::invalid_argument, {"row"},
                 [&] { Image(memory.get(), 4, 1, PixelFormat::rgb8, row_bytes); });
  for (const auto& [width, height] : {std::pair<int64_t, int64_t>{0, 1}, {1, 0}, {-1, 1}, {65537, 1}, {1, INT64_MAX}})
    expect_error(ErrorKind::invalid_argument, {},
                 [&, w = width, h = height] { Image(memory.get(), w, h, PixelFormat::rgb8); });
  expect_error(ErrorKind::invalid_argument, {}, [&] { Image(nullptr, 4, 1, PixelFormat::rgb8); });
  // Struct members can be set to anything.
  Image lied(memory.get(), 4, 1, PixelFormat::rgb8);
  lied.height = 1000;
  lied.row_bytes = 1;
  const std::string description = describe(FeatureValue(lied));
  EXPECT_NE(description.find("4 x 1000"), std::string::npos) << description;
}

TEST(Views, StatesAndParameters) {
  ModelConfiguration c;
  c.parameters = {"w"};
  const Model m = Model::from_mil(program("state<tensor<fp32, [4]>> s, tensor<fp32, [4]> x", R"(
    tensor<fp32, [4]> w = const()[name = string("w"), val = tensor<fp32, [4]>([1, 2, 3, 4])];
    tensor<fp32, [4]> old = read_state(input = s)[name = string("old")];
    tensor<fp32, [4]> sum = add(x = old, y = x)[name = string("sum")];
    write_state(data = sum, input = s)[name = string("write")];
    tensor<fp32, [4]> y = mul(x = sum, y = w)[name = string("y")];)",
                                          "y"),
                                  c);
  State state = m.new_state();
  for (const DataType type : kTypes) {
    SCOPED_TRACE(to_string(type));
    const auto memory = block(size_of(type) * 3);
    for (const auto& shape : std::vector<std::vector<int64_t>>{{3}, {1, 3}, {0}, {}}) {
      const MultiArray few(memory.get(), type, shape);
      expect_error(ErrorKind::invalid_argument, {"'s'"}, [&] { state.write("s", few); });
      expect_error(ErrorKind::invalid_argument, {"'w'"}, [&] { m.with_parameters({{"w", few}}); });
    }
  }
  expect_error(ErrorKind::not_found, {"'z'"}, [&] { (void)state.read("z"); });
  // What read gives is a copy.
  MultiArray copy = state.read("s");
  copy.as<float>()[0] = 5;
  EXPECT_EQ(state.read("s").at(0), 0);
}

TEST(Views, RowsOfUnequalLength) {
  const Model m = mixed();
  const auto few = block(sizeof(float) * 3), many = block(sizeof(int32_t) * 4);
  expect_error(ErrorKind::invalid_argument, {}, [&] {
    m.predict_rows({{"x", MultiArray(few.get(), DataType::float32, {1, 3})},
                    {"n", MultiArray(many.get(), DataType::int32, {2, 2})}});
  });
  expect_error(ErrorKind::invalid_argument, {}, [&] {
    m.predict_rows(
        {{"x", MultiArray(few.get(), DataType::float32, {3})}, {"n", MultiArray(many.get(), DataType::int32, {4})}});
  });
}

TEST(Views, SpecificationsAndBlobsThatEnd) {
  Message specification = describe_model(ModelDescription{});
  const std::vector<std::byte> bytes = specification.serialize();
  for (size_t size = 0; size < bytes.size(); size++) {
    const auto memory = block(size);
    std::memcpy(memory.get(), bytes.data(), size);
    ModelAssetView asset;
    asset.specification = {memory.get(), size};
    EXPECT_THROW(Model::load(asset), Exception);
  }
  // A reader that says more than it has, and one that throws.
  ModelReader reader;
  reader.size = uint64_t{1} << 60;
  reader.read = [](uint64_t, std::span<std::byte> to) { std::fill(to.begin(), to.end(), std::byte{0x0a}); };
  EXPECT_THROW(Model::load(reader), Exception);
  reader.size = 100;
  reader.read = [](uint64_t, std::span<std::byte>) { throw std::runtime_error("gone"); };
  EXPECT_ANY_THROW(Model::load(reader));
}

/// What a layer does to its views becomes an error of the prediction, which names the layer.
TEST(Views, ArraysOfLayersAsEveryType) {
  std::function<void(const LayerCall&)> act;
  register_operation(
      "misuse", [&](const LayerInfo&) { return std::make_unique<Misuser>([&](const LayerCall& call) { act(call); }); });
  const Model m = Model::from_mil(
      program("tensor<fp32, [2, 3]> x", R"(tensor<fp32, [2, 3]> y = misuse(x = x)[name = string("wrong")];)", "y"));
  const auto refused = [&](const char* part) {
    expect_error(ErrorKind::data, {"wrong", part}, [&] { m.predict({{"x", counted({2, 3})}}); });
  };
  act = [](const LayerCall& call) { (void)call.inputs[0].as<double>(); };
  refused("float32");
  act = [](const LayerCall& call) { (void)call.outputs[0].as<int64_t>(); };
  refused("float32");
  act = [](const LayerCall& call) { (void)call.inputs[0].as<const uint16_t>(); };
  refused("float32");
  act = [](const LayerCall& call) {
    const auto x = call.inputs[0].as<const float>();
    std::copy(x.begin(), x.end(), call.outputs[0].as<float>().begin());
  };
  EXPECT_EQ(values(m.predict({{"x", counted({2, 3})}}).array("y")), values(counted({2, 3})));
  unregister_operation("misuse");
}

}  // namespace moka::test
