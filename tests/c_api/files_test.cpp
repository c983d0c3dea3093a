// SPDX-License-Identifier: Apache-2.0
#include "moka/files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "c_api/files_from_c.h"
#include "c_api/owned.h"
#include "files/samples.h"
#include "moka/moka_files.h"

namespace moka::test {
namespace {

namespace fs = std::filesystem;
using Png = std::vector<std::byte>;

const std::string kShapes = MOKA_TEST_EXAMPLES "/shapes.mlmodel", kSquare = MOKA_TEST_EXAMPLES "/square.png";
const Png kSix = samples::bytes(samples::kPngRgb);  // 3 x 2: red, green, blue; (10, 20, 30), (40, 50, 60), (70, 80, 90)

constexpr const char* kSum = R"(program(1.0)
{
    func main<ios15>(tensor<fp32, [2]> x, tensor<fp32, [1, 4]> sound) {
            tensor<fp32, [2]> y = add(x = x, y = x)[name = tensor<string, []>("y")];
            tensor<fp32, [1, 4]> z = add(x = sound, y = sound)[name = tensor<string, []>("z")];
        } -> (y, z);
})";

Owner<moka_picture> decoded(const Png& png) {
  moka_picture* picture = nullptr;
  EXPECT_EQ(moka_picture_decode(png.data(), png.size(), nullptr, 0, &picture), MOKA_OK) << moka_last_error();
  return Owner<moka_picture>(picture);
}

moka_image image_of(const Owner<moka_picture>& picture) {
  moka_image image{};
  EXPECT_EQ(moka_picture_image(picture.get(), &image), MOKA_OK);
  return image;
}

std::vector<int> pixels_of(const moka_image& image) {
  std::vector<int> out;
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t i = 0; i < image.width * (image.format == MOKA_GRAY8 ? 1 : image.format == MOKA_RGB8 ? 3 : 4); ++i)
      out.push_back(static_cast<const uint8_t*>(image.pixels)[y * image.row_bytes + i]);
  return out;
}

class CFiles : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_);
    moka_model* model = nullptr;
    ASSERT_EQ(moka_model_load_mil(kSum, nullptr, &model), MOKA_OK) << moka_last_error();
    model_.reset(model);
    moka_features* features = nullptr;
    ASSERT_EQ(moka_features_new(&features), MOKA_OK);
    features_.reset(features);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string file(const std::string& name, const Png& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return (folder_ / name).string();
  }
  std::vector<float> numbers(const char* name) const {
    moka_array array{};
    EXPECT_EQ(moka_features_get_array(features_.get(), name, &array), MOKA_OK) << moka_last_error();
    const auto* from = static_cast<const float*>(array.data);
    return {from, from + array.shape[0] * (array.rank > 1 ? array.shape[1] : 1)};
  }

  fs::path folder_ = fs::temp_directory_path() / ("moka_c_files_" + std::to_string(::getpid()));
  Owner<moka_model> model_;
  Owner<moka_features> features_;
};

TEST_F(CFiles, FromAFileCompiledAsC) {
  uint8_t rgb[12] = {};
  ASSERT_EQ(fit_from_c(kSix.data(), kSix.size(), rgb), MOKA_OK) << moka_last_error();
  // The middle 2 x 2 of 3 x 2 pixels, between their centers.
  EXPECT_EQ(std::vector<int>(rgb, rgb + 12), (std::vector<int>{128, 128, 0, 0, 128, 128, 25, 35, 45, 55, 65, 75}));
  char label[64] = {};
  ASSERT_EQ(classify_from_c(kShapes.c_str(), kSquare.c_str(), label), MOKA_OK) << moka_last_error();
  EXPECT_STREQ(label, "square");
}

TEST_F(CFiles, PicturesHaveSizeFormatAndPixels) {
  const auto picture = decoded(kSix);
  const moka_image image = image_of(picture);
  EXPECT_EQ(image.width, 3);
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.format, MOKA_RGBA8);
  EXPECT_EQ(image.row_bytes, 12);
  EXPECT_EQ(pixels_of(image), (std::vector<int>{255, 0,  0,  255, 0,  255, 0,  255, 0,  0,  255, 255,
                                                10,  20, 30, 255, 40, 50,  60, 255, 70, 80, 90,  255}));
  moka_picture* read = nullptr;
  ASSERT_EQ(moka_picture_read(file("six.png", kSix).c_str(), 0, &read), MOKA_OK) << moka_last_error();
  EXPECT_EQ(pixels_of(image_of(Owner<moka_picture>(read))), pixels_of(image));
}

TEST_F(CFiles, PicturesAreFittedAndConverted) {
  const auto picture = decoded(kSix);
  const moka_image image = image_of(picture);
  const moka_image_region last{2.0 / 3, 0.5, 1.0 / 3, 0.5};
  moka_picture* made = nullptr;
  ASSERT_EQ(moka_picture_fit(&image, 1, 1, MOKA_SCALE_FILL, &last, &made), MOKA_OK) << moka_last_error();
  const Owner<moka_picture> cut(made);
  EXPECT_EQ(pixels_of(image_of(cut)), (std::vector<int>{70, 80, 90, 255}));
  ASSERT_EQ(moka_picture_convert(&image, MOKA_GRAY8, &made), MOKA_OK);
  const Owner<moka_picture> gray(made);
  EXPECT_EQ(pixels_of(image_of(gray)), (std::vector<int>{76, 150, 29, 18, 48, 78}));
  // Where nothing changes, the picture is still a copy.
  ASSERT_EQ(moka_picture_fit(&image, 3, 2, MOKA_SCALE_FIT, nullptr, &made), MOKA_OK);
  const Owner<moka_picture> same(made);
  EXPECT_NE(image_of(same).pixels, image.pixels);
  EXPECT_EQ(pixels_of(image_of(same)), pixels_of(image));
  ASSERT_EQ(moka_picture_convert(&image, MOKA_RGBA8, &made), MOKA_OK);
  const Owner<moka_picture> copy(made);
  EXPECT_NE(image_of(copy).pixels, image.pixels);
}

TEST_F(CFiles, WrongUseOfPictures) {
  moka_picture* untouched = nullptr;
  const auto picture = decoded(kSix);
  moka_image image = image_of(picture);
  EXPECT_EQ(moka_picture_decode(kSix.data(), kSix.size(), nullptr, 0, nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_picture_decode(nullptr, 5, nullptr, 0, &untouched), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_picture_decode(nullptr, 0, nullptr, 0, &untouched), MOKA_MALFORMED);
  EXPECT_EQ(moka_picture_decode(kSix.data(), kSix.size(), nullptr, -1, &untouched), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_picture_decode(kSix.data(), kSix.size(), "six", 5, &untouched), MOKA_OUT_OF_BUDGET);
  EXPECT_STREQ(moka_last_error(), "six: expected at most 5 pixels, got 3 x 2");
  EXPECT_EQ(moka_picture_decode(kSix.data(), kSix.size() - 20, "cut", 0, &untouched), MOKA_MALFORMED);
  EXPECT_STREQ(moka_last_error(), "cut: damaged PNG: the file ends early");
  EXPECT_EQ(moka_picture_read(nullptr, 0, &untouched), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_picture_read("absent.png", 0, &untouched), MOKA_NOT_FOUND);
  EXPECT_STREQ(moka_last_error(), "absent.png: no such file");
  EXPECT_EQ(moka_picture_read(folder_.c_str(), 0, &untouched), MOKA_IO);
  EXPECT_EQ(moka_picture_fit(nullptr, 1, 1, MOKA_SCALE_FIT, nullptr, &untouched), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_picture_fit(&image, 0, 1, MOKA_SCALE_FIT, nullptr, &untouched), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_picture_fit(&image, 1, 1, static_cast<moka_image_fit>(3), nullptr, &untouched), MOKA_INVALID_ARGUMENT);
  EXPECT_STREQ(moka_last_error(), "fit: expected 0 to 2, got 3");
  const moka_image_region outside{0.5, 0, 1, 1};
  EXPECT_EQ(moka_picture_fit(&image, 1, 1, MOKA_SCALE_FIT, &outside, &untouched), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_picture_convert(&image, static_cast<moka_pixel_format>(9), &untouched), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_picture_image(nullptr, &image), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_picture_image(picture.get(), nullptr), MOKA_INVALID_ARGUMENT);
  image.row_bytes = 1;
  EXPECT_EQ(moka_picture_convert(&image, MOKA_RGB8, &untouched), MOKA_INVALID_ARGUMENT);
  moka_picture_free(nullptr);
  EXPECT_EQ(untouched, nullptr);
}

TEST_F(CFiles, InputsFromArraysAndSound) {
  const std::vector<float> two{3, 4};
  const auto npz = encode_npz({{"first", MultiArray::of(two, {2})}, {"x", MultiArray::of(two, {1, 2})}});
  ASSERT_EQ(moka_features_read_file(features_.get(), model_.get(), "x", file("a.npz", npz).c_str(), nullptr), MOKA_OK)
      << moka_last_error();
  EXPECT_EQ(numbers("x"), two);
  const auto wav = encode_wav({8000, 2, {0.5F, -0.5F, 0.25F, 0.25F, 0.75F, 0.25F}});
  EXPECT_EQ(moka_features_read_bytes(features_.get(), model_.get(), "sound", wav.data(), wav.size(), "s", nullptr),
            MOKA_INVALID_ARGUMENT);
  EXPECT_STREQ(
      moka_last_error(),
      "input 'sound' (s): expected 4 samples, got 3 (375 \u00b5s at 8000 Hz); pad adds silence or cuts the end "
      "off, rate resamples");
  moka_reading_options options = MOKA_READING_OPTIONS_INIT;
  options.pad = 1;
  ASSERT_EQ(moka_features_read_bytes(features_.get(), model_.get(), "sound", wav.data(), wav.size(), "s", &options),
            MOKA_OK)
      << moka_last_error();
  EXPECT_EQ(numbers("sound"), (std::vector<float>{0, 0.25F, 0.5F, 0}));
  moka_features* outputs = nullptr;
  ASSERT_EQ(moka_features_new(&outputs), MOKA_OK);
  const Owner<moka_features> owner(outputs);
  ASSERT_EQ(moka_model_predict(model_.get(), features_.get(), outputs, nullptr), MOKA_OK) << moka_last_error();
  moka_array y{};
  ASSERT_EQ(moka_features_get_array(outputs, "y", &y), MOKA_OK);
  EXPECT_EQ(static_cast<const float*>(y.data)[1], 8);
  options = MOKA_READING_OPTIONS_INIT;
  options.member = "absent";
  EXPECT_EQ(moka_features_read_bytes(features_.get(), model_.get(), "x", npz.data(), npz.size(), "n", &options),
            MOKA_NOT_FOUND);
  EXPECT_STREQ(moka_last_error(), "n: no member 'absent'; it has 'first', 'x'");
}

TEST_F(CFiles, InputsFromImagesInMemory) {
  moka_model* loaded = nullptr;
  ASSERT_EQ(moka_model_load(kShapes.c_str(), nullptr, &loaded), MOKA_OK) << moka_last_error();
  const Owner<moka_model> shapes(loaded);
  // A name is not needed for the only input.
  ASSERT_EQ(moka_features_read_bytes(features_.get(), loaded, nullptr, kSix.data(), kSix.size(), nullptr, nullptr),
            MOKA_OK)
      << moka_last_error();
  moka_image image{};
  ASSERT_EQ(moka_features_get_image(features_.get(), "image", &image), MOKA_OK) << moka_last_error();
  moka_feature_info info = {};
  ASSERT_EQ(moka_model_feature(loaded, MOKA_INPUT, 0, &info), MOKA_OK);
  EXPECT_EQ(image.width, info.width);
  EXPECT_EQ(image.height, info.height);
  EXPECT_EQ(moka_features_read_bytes(features_.get(), loaded, nullptr, kSix.data(), 40, "half", nullptr),
            MOKA_MALFORMED);
  EXPECT_NE(std::string(moka_last_error()).find("half: damaged PNG"), std::string::npos) << moka_last_error();
}

TEST_F(CFiles, ValuesOfATrainingExample) {
  moka_model* loaded = nullptr;
  ASSERT_EQ(moka_model_load(MOKA_TEST_GOLDEN "/update/images.mlmodel", nullptr, &loaded), MOKA_OK) << moka_last_error();
  const Owner<moka_model> updatable(loaded);
  ASSERT_GT(moka_model_training_input_count(loaded), moka_model_feature_count(loaded, MOKA_INPUT));
  std::string pixels;
  for (int i = 0; i < 36; ++i) pixels += std::to_string(i) + " ";
  ASSERT_EQ(moka_features_read_bytes(features_.get(), loaded, "image", pixels.data(), pixels.size(), "a.txt", nullptr),
            MOKA_OK)
      << moka_last_error();
  moka_array array{};
  ASSERT_EQ(moka_features_get_array(features_.get(), "image", &array), MOKA_OK);
  EXPECT_EQ(static_cast<const double*>(array.data)[35], 35);
  // A prediction has no label.
  ASSERT_EQ(moka_features_read_bytes(features_.get(), loaded, "digit", "7", 1, "b.txt", nullptr), MOKA_OK)
      << moka_last_error();
  const char* label = nullptr;
  ASSERT_EQ(moka_features_get_string(features_.get(), "digit", &label), MOKA_OK);
  EXPECT_STREQ(label, "7");
}

TEST_F(CFiles, WrongUseOfInputs) {
  const std::string path = file("x.txt", {std::byte{'1'}, std::byte{' '}, std::byte{'2'}});
  moka_features* f = features_.get();
  moka_model* m = model_.get();
  EXPECT_EQ(moka_features_read_file(nullptr, m, "x", path.c_str(), nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_features_read_file(f, nullptr, "x", path.c_str(), nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_features_read_file(f, m, "x", nullptr, nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_features_read_bytes(f, m, "x", nullptr, 3, "x.txt", nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_features_read_file(f, m, nullptr, path.c_str(), nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_STREQ(moka_last_error(), "argument 'name': expected one of the 2 inputs of the model, got NULL");
  EXPECT_EQ(moka_features_read_file(f, m, "w", path.c_str(), nullptr), MOKA_NOT_FOUND);
  EXPECT_STREQ(moka_last_error(), "the model has no input 'w'; it takes 'x', 'sound'");
  EXPECT_EQ(moka_features_read_file(f, m, "sound", path.c_str(), nullptr), MOKA_INVALID_ARGUMENT);
  moka_reading_options options = MOKA_READING_OPTIONS_INIT;
  options.struct_size = 3;
  EXPECT_EQ(moka_features_read_file(f, m, "x", path.c_str(), &options), MOKA_INVALID_ARGUMENT);
  options = MOKA_READING_OPTIONS_INIT;
  options.most_pixels = -1;
  EXPECT_EQ(moka_features_read_file(f, m, "x", path.c_str(), &options), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_features_count(f), 0u);
  options = moka_default_reading_options();
  EXPECT_EQ(moka_features_read_file(f, m, "x", path.c_str(), &options), MOKA_OK) << moka_last_error();
  EXPECT_EQ(numbers("x"), (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace moka::test
