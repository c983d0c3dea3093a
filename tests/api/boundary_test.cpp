// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "api/api_util.h"
#include "models_folder.h"

/// ML programs with pictures, labels and arrays of every type at their boundary (tests/golden/boundary_models.py).
namespace moka::test {
namespace {

Model boundary(const std::string& name) { return Model::load(MOKA_GOLDEN "/boundary/" + name + ".mlmodel"); }

/// Red, green, blue.
std::array<int, 3> color(const Image& image, int64_t x, int64_t y) {
  const uint8_t* p = image.pixels.get() + y * image.row_bytes + x * static_cast<int64_t>(bytes_per_pixel(image.format));
  if (image.format == PixelFormat::bgra8) return {p[2], p[1], p[0]};
  return {p[0], p[1], p[2]};
}

TEST(Boundary, PicturesKeepTheirColors) {
  for (const char* order : {"rgb", "bgr"})
    for (const PixelFormat format : {PixelFormat::rgb8, PixelFormat::rgba8, PixelFormat::bgra8}) {
      SCOPED_TRACE(testing::Message() << order << " given as " << static_cast<int>(format));
      Image picture(3, 2, format);
      for (int64_t y = 0; y < 2; y++)
        for (int64_t x = 0; x < 3; x++) {
          uint8_t* p = picture.pixels.get() + y * picture.row_bytes + x * static_cast<int64_t>(bytes_per_pixel(format));
          const bool swapped = format == PixelFormat::bgra8;
          p[swapped ? 2 : 0] = static_cast<uint8_t>(10 + 20 * x);
          p[1] = static_cast<uint8_t>(100 + 50 * y);
          p[swapped ? 0 : 2] = 250;
        }
      const Image half = std::get<Image>(boundary("image_" + std::string(order)).predict({{"x", picture}}).at("y"));
      ASSERT_EQ(half.width, 3);
      ASSERT_EQ(half.height, 2);
      for (int64_t y = 0; y < 2; y++)
        for (int64_t x = 0; x < 3; x++)
          EXPECT_EQ(color(half, x, y),
                    (std::array<int, 3>{static_cast<int>(5 + 10 * x), static_cast<int>(50 + 25 * y), 125}));
    }
}

TEST(Boundary, GreyPicturesOfBytesAndFloats) {
  Image bytes(3, 2, PixelFormat::gray8);
  for (int64_t i = 0; i < 6; i++) bytes.pixels.get()[i / 3 * bytes.row_bytes + i % 3] = static_cast<uint8_t>(40 * i);
  const Image half = std::get<Image>(boundary("image_grayscale").predict({{"x", bytes}}).at("y"));
  ASSERT_EQ(half.format, PixelFormat::gray8);
  for (int64_t i = 0; i < 6; i++) EXPECT_EQ(half.pixels.get()[i / 3 * half.row_bytes + i % 3], 20 * i);

  Image floats(3, 2, PixelFormat::gray_float32);
  auto at = [](const Image& image, int64_t i) -> float& {
    return reinterpret_cast<float*>(image.pixels.get() + i / 3 * image.row_bytes)[i % 3];
  };
  for (int64_t i = 0; i < 6; i++) at(floats, i) = static_cast<float>(i) * 0.25f - 1;
  const Model m = boundary("image_grayscale_float16");
  const Image fine = std::get<Image>(m.predict({{"x", floats}}).at("y"));
  ASSERT_EQ(fine.format, PixelFormat::gray_float16);
  const Image wide = converted(fine, PixelFormat::gray_float32);
  for (int64_t i = 0; i < 6; i++) EXPECT_EQ(at(wide, i), (static_cast<float>(i) * 0.25f - 1) / 2);
  // The caller may ask for floats, with gaps between the rows.
  std::vector<float> room(2 * 5, 9);
  Features out{{"y", Image(room.data(), 3, 2, PixelFormat::gray_float32, 20)}};
  m.predict({{"x", floats}}, out);
  EXPECT_EQ(room, (std::vector<float>{-0.5, -0.375, -0.25, 9, 9, -0.125, 0, 0.125, 9, 9}));
}

TEST(Boundary, DescriptionsOutliveATemporaryModel) {
  const FunctionDescription& function = boundary("image_rgb").function();
  EXPECT_EQ(function.inputs.at(0).name, "x");
  const ModelDescription& description = boundary("image_rgb").description();
  EXPECT_EQ(description.functions.at(0).inputs.at(0).name, "x");
  EXPECT_EQ(boundary("image_rgb").configuration().compute_units, ModelConfiguration().compute_units);
  EXPECT_GT(boundary("image_rgb").load_times().total, 0);
}

TEST(Boundary, PicturesOfAnotherSizeAreRefused) {
  for (const char* order : {"rgb", "grayscale"})
    expect_error(ErrorKind::invalid_argument, {"'x'", "3 x 2", "4 x 2"}, [&] {
      boundary("image_" + std::string(order))
          .predict({{"x", Image(4, 2, order[0] == 'r' ? PixelFormat::rgba8 : PixelFormat::gray8)}});
    });
}

TEST(Boundary, ClassifiersGiveALabelAndProbabilities) {
  const MultiArray x = MultiArray::of(std::vector<float>{1, 3, 2}, {1, 3});
  const Features text = boundary("labels_text").predict({{"x", x}});
  EXPECT_EQ(std::get<std::string>(text.at("classLabel")), "dog");
  const auto& by_text = std::get<Dictionary>(text.at("classLabel_probs"));
  EXPECT_TRUE(by_text.string_keys);
  EXPECT_EQ(by_text.strings, (std::map<std::string, double>{{"cat", 0.25}, {"dog", 0.75}, {"eel", 0.5}}));
  const Features number = boundary("labels_number").predict({{"x", x}});
  EXPECT_EQ(std::get<int64_t>(number.at("classLabel")), -8);
  const auto& by_number = std::get<Dictionary>(number.at("classLabel_probs"));
  EXPECT_FALSE(by_number.string_keys);
  EXPECT_EQ(by_number.ints, (std::map<int64_t, double>{{7, 0.25}, {-8, 0.75}, {9, 0.5}}));
}

TEST(Boundary, ArraysOfEveryType) {
  const Model m = boundary("types");
  struct Kind {
    const char* name;
    DataType type;
    std::vector<double> kept;  ///< of 1.5, -2, 100, 1/3; of 1, -2, 100, 0 for integers
  };
  const double third = 1.0 / 3;
  const Kind kinds[] = {{"half", DataType::float16, {1.5, -2, 100, 0.333251953125}},
                        {"single", DataType::float32, {1.5, -2, 100, static_cast<double>(static_cast<float>(third))}},
                        {"double", DataType::float64, {1.5, -2, 100, third}},
                        {"whole", DataType::int32, {1, -2, 100, 0}},
                        {"byte", DataType::int8, {1, -2, 100, 0}}};
  // Each input once in its own type and once as strided doubles.
  for (const bool strided : {false, true}) {
    double wide[8] = {1.5, 99, -2, 99, 100, 99, third, 99}, whole[8] = {1, 1.5, -2, 1.5, 100, 1.5, 0, 1.5};
    Features in;
    for (const Kind& k : kinds) {
      const bool is_whole = k.type == DataType::int32 || k.type == DataType::int8;
      const MultiArray doubles(is_whole ? whole : wide, DataType::float64, {2, 2}, {4, 2});
      in[k.name] = strided ? doubles : doubles.converted(k.type);
    }
    const Features out = m.predict(in);
    for (const Kind& k : kinds) {
      const MultiArray& y = out.array("same_" + std::string(k.name));
      EXPECT_EQ(y.type(), k.type) << k.name;
      EXPECT_EQ(values(y), k.kept) << k.name << strided;
    }
  }
}

/// The program has booleans and the description numbers of any type; nonzero is true.
TEST(Boundary, NumbersThatAreTruthValues) {
  const Model m = boundary("booleans");
  const std::pair<const char*, DataType> kinds[] = {{"half", DataType::float16},
                                                    {"single", DataType::float32},
                                                    {"double", DataType::float64},
                                                    {"whole", DataType::int32},
                                                    {"byte", DataType::int8}};
  for (const DataType given : {DataType::boolean, DataType::float64, DataType::int32, DataType::float16}) {
    double wide[8] = {1, 99, 0, 99, given == DataType::boolean ? 1.0 : -2, 99, 1, 99};
    Features in;
    for (const auto& [name, type] : kinds) {
      const MultiArray doubles(wide, DataType::float64, {2, 2}, {4, 2});
      in[name] = given == DataType::float64 ? doubles : doubles.converted(given);
    }
    const Features out = m.predict(in);
    for (const auto& [name, type] : kinds) {
      const MultiArray& y = out.array("not_" + std::string(name));
      EXPECT_EQ(y.type(), type) << name;
      EXPECT_EQ(values(y), (std::vector<double>{0, 1, 0, 0})) << name;
    }
  }
}

TEST(Boundary, TruthValues) {
  const Model m = Model::from_mil(
      program("tensor<bool, [2, 2]> x", "tensor<bool, [2, 2]> y = logical_not(x = x)[name = string(\"y\")];", "y"));
  EXPECT_EQ(m.function().inputs[0].array.type, DataType::boolean);
  const MultiArray floats = MultiArray::of(std::vector<float>{0, 3, -1, 0}, {2, 2});
  for (const MultiArray& x : {floats, floats.converted(DataType::boolean), floats.converted(DataType::float64)}) {
    const MultiArray y = m.predict({{"x", x}}).array("y");
    EXPECT_EQ(y.type(), DataType::boolean);
    EXPECT_EQ(values(y), (std::vector<double>{1, 0, 0, 1}));
  }
}

}  // namespace
}  // namespace moka::test
