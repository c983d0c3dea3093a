// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "files/files_util.h"
#include "files/sample_axis.h"
#include "files/samples.h"

namespace moka::test {
namespace {

namespace fs = std::filesystem;

FeatureDescription array_feature(std::vector<int64_t> shape, DataType type = DataType::float32) {
  FeatureDescription out;
  out.name = "x";
  out.array = {type, std::move(shape), {}, {}};
  return out;
}

FeatureDescription feature_of(FeatureType type) {
  FeatureDescription out;
  out.name = "x";
  out.type = type;
  return out;
}

FeatureDescription image_feature(int64_t width, int64_t height, ColorSpace color = ColorSpace::rgb) {
  FeatureDescription out = feature_of(FeatureType::image);
  out.image.width = width;
  out.image.height = height;
  out.image.color = color;
  return out;
}

std::vector<double> numbers_of(const FeatureValue& value) {
  const auto& array = std::get<MultiArray>(value);
  std::vector<double> out;
  for (int64_t i = 0; i < array.count(); ++i) out.push_back(array.at(i));
  return out;
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

class ReadFeature : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("moka_files_" + std::to_string(::getpid()) + "_" +
                                           testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path file(const std::string& name, const std::vector<std::byte>& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return folder_ / name;
  }

  fs::path folder_;
};

TEST_F(ReadFeature, SampleAxisOfASound) {
  EXPECT_EQ(files::sample_axis({DataType::float32, {1, 43844, 1}, {}, {}}), 1u);
  EXPECT_EQ(files::sample_axis({DataType::float32, {1, 576}, {}, {}}), 1u);
  EXPECT_EQ(files::sample_axis({DataType::float32, {1, 1}, {{1, 1}, {1, -1}}, {}}), 1u);
  EXPECT_EQ(files::sample_axis({DataType::float32, {1, 100}, {{1, -1}, {100, 100}}, {}}), 1u);
  EXPECT_EQ(files::sample_axis({DataType::float32, {80, 3000}, {}, {}}), std::nullopt);
}

TEST_F(ReadFeature, ImageSizeThatTheModelTakes) {
  ImageConstraint c;
  c.width = 28;
  c.height = 20;
  EXPECT_EQ(image_size(c, 100, 50), (std::pair<int64_t, int64_t>(28, 20)));
  c.width_range = SizeRange{10, 64};
  EXPECT_EQ(image_size(c, 100, 50), (std::pair<int64_t, int64_t>(64, 20)));
  c.height_range = SizeRange{10, -1};
  EXPECT_EQ(image_size(c, 40, 5000), (std::pair<int64_t, int64_t>(40, 5000)));
  c.enumerated = {{28, 20}, {56, 40}};
  EXPECT_EQ(image_size(c, 56, 40), (std::pair<int64_t, int64_t>(56, 40)));
  EXPECT_EQ(image_size(c, 57, 40), (std::pair<int64_t, int64_t>(28, 20)));
}

TEST_F(ReadFeature, ImagesHaveTheSizeAndColorsOfTheModel) {
  const fs::path six = file("six.png", samples::bytes(samples::kPngRgb));  // 3 x 2
  const auto rgb = std::get<Image>(read_feature(image_feature(3, 2), six));
  EXPECT_EQ(rgb.format, PixelFormat::rgb8);
  EXPECT_EQ(pixels_of(rgb), (Pixels{255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30, 40, 50, 60, 70, 80, 90}));
  const auto gray = std::get<Image>(read_feature(image_feature(3, 2, ColorSpace::grayscale), six));
  EXPECT_EQ(pixels_of(gray), (Pixels{76, 150, 29, 18, 48, 78}));
  EXPECT_EQ(std::get<Image>(read_feature(image_feature(3, 2, ColorSpace::grayscale_float16), six)).format,
            PixelFormat::gray8);
  ReadingOptions options;
  options.region = {2.0 / 3, 0.5, 1.0 / 3, 0.5};
  EXPECT_EQ(pixels_of(std::get<Image>(read_feature(image_feature(1, 1), six, options))), (Pixels{70, 80, 90}));
  options = {};
  options.fit = ImageFit::scale_fit;
  const auto boxed = std::get<Image>(read_feature(image_feature(3, 4), six, options));
  EXPECT_EQ(pixels_of(boxed)[0], 0);
  EXPECT_EQ(pixels_of(boxed)[9], 255);
  // Ranges take the size of the region.
  FeatureDescription flexible = image_feature(8, 8);
  flexible.image.width_range = flexible.image.height_range = SizeRange{1, 64};
  options.region = {0, 0, 2.0 / 3, 1};
  EXPECT_EQ(std::get<Image>(read_feature(flexible, six, options)).width, 2);
}

TEST_F(ReadFeature, FloatsStayFloatsForHalfFloats) {
  Image floats(2, 1, PixelFormat::gray_float32);
  reinterpret_cast<float*>(floats.pixels.get())[0] = 0.5F;
  const Image value = image_value(image_feature(1, 1, ColorSpace::grayscale_float16), floats);
  EXPECT_EQ(value.format, PixelFormat::gray_float32);
  EXPECT_EQ(*reinterpret_cast<const float*>(value.pixels.get()), 0.25F);
  EXPECT_EQ(image_value(image_feature(1, 1, ColorSpace::grayscale), floats).format, PixelFormat::gray8);
  EXPECT_EQ(failure_of([&] { image_value(array_feature({1}), floats); }).first, ErrorKind::invalid_argument);
  EXPECT_EQ(failure_of([&] { image_value(image_feature(0, 0), floats); }).second,
            "expected a size the model says, got 0 x 0");
}

TEST_F(ReadFeature, BytesTellTheirKind) {
  EXPECT_EQ(
      pixels_of(std::get<Image>(decode_feature(image_feature(3, 2), samples::bytes(samples::kPngRgb), "upload")))[0],
      255);
  EXPECT_EQ(numbers_of(decode_feature(array_feature({2, 3}), samples::bytes(samples::kF4C), "upload")),
            (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(numbers_of(decode_feature(array_feature({2}), bytes_of("[1, 2]"), "upload")), (std::vector<double>{1, 2}));
  EXPECT_EQ(numbers_of(decode_feature(array_feature({2}), bytes_of("1 2"), "a.txt")), (std::vector<double>{1, 2}));
  EXPECT_EQ(numbers_of(decode_feature(array_feature({1, 2}), encode_wav({8000, 1, {0.5F, -0.5F}}), "upload")),
            (std::vector<double>{0.5, -0.5}));
  EXPECT_EQ(std::get<std::string>(decode_feature(feature_of(FeatureType::string), bytes_of("a text"), "upload")),
            "a text");
  EXPECT_EQ(failure_of([] { decode_feature(array_feature({2}), bytes_of("1 2"), "upload"); }),
            std::pair(ErrorKind::invalid_argument,
                      std::string("input 'x' (upload): expected .npy, .npz, .json, .txt or sound (.wav, .flac, .ogg, "
                                  ".mp3, ...) for MultiArray (Float32 2), got '.'")));
}

TEST_F(ReadFeature, ArraysAndTheirMembers) {
  const fs::path npz = file("a.npz", samples::bytes(samples::kNpz));
  EXPECT_EQ(numbers_of(read_feature(array_feature({2}), npz)), (std::vector<double>{1, 2}));
  ReadingOptions options;
  options.member = "y";
  EXPECT_EQ(numbers_of(read_feature(array_feature({1}), npz, options)), std::vector<double>{0.5});
  EXPECT_EQ(std::get<double>(read_feature(feature_of(FeatureType::float64), npz, options)), 0.5);
  options.member = "z";
  EXPECT_EQ(failure_of([&] { read_feature(array_feature({1}), npz, options); }),
            std::pair(ErrorKind::not_found, npz.string() + ": no member 'z'; it has 'x', 'y'"));
  EXPECT_EQ(failure_of([&] {
              read_feature(array_feature({1, 3}), npz);
            }).second,
            "input 'x' (" + npz.string() + "): expected MultiArray (Float32 1 x 3), got 2 numbers");
  EXPECT_EQ(
      std::get<int64_t>(read_feature(feature_of(FeatureType::int64), file("n.npy", samples::bytes(samples::kScalar)))),
      -7);
  const fs::path texts = file("t.npy", samples::bytes(samples::kSBe));
  EXPECT_EQ(std::get<StringSequence>(read_feature(feature_of(FeatureType::sequence), texts)),
            (StringSequence{"xy", "z"}));
  EXPECT_NE(failure_of([&] { read_feature(array_feature({2}), texts); }).second.find("got an array of text"),
            std::string::npos);
}

TEST_F(ReadFeature, TextAndJson) {
  const FeatureDescription text = feature_of(FeatureType::string);
  EXPECT_EQ(std::get<std::string>(read_feature(text, file("a.txt", bytes_of(" a\n")))), " a\n");
  EXPECT_EQ(std::get<std::string>(read_feature(text, file("a.json", bytes_of("\"b\\n\"")))), "b\n");
  EXPECT_EQ(std::get<int64_t>(read_feature(feature_of(FeatureType::int64), file("n.txt", bytes_of("1e2\n")))), 100);
  EXPECT_EQ(
      std::get<Dictionary>(read_feature(feature_of(FeatureType::dictionary), file("d.json", bytes_of("{\"a\": 2}"))))
          .strings.at("a"),
      2);
  const fs::path broken = file("b.json", bytes_of("[[1, 2], [3, 4]"));
  EXPECT_EQ(failure_of([&] {
              read_feature(array_feature({2, 2}), broken);
            }).second,
            "input 'x' (" + broken.string() + "): expected JSON, but column 16: unexpected end of input; expected ']'");
  EXPECT_EQ(json_fault("[1]"), std::nullopt);
  EXPECT_EQ(json_fault("{\"a\": 1e400}"), "expected numbers within the range of doubles, but column 7: '1e400'");
}

TEST_F(ReadFeature, TextOfAPipe) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << "from a pipe"; });
  EXPECT_EQ(std::get<std::string>(read_feature(feature_of(FeatureType::string), pipe)), "from a pipe");
  writer.join();
}

TEST_F(ReadFeature, SoundIsMixedPaddedOrCut) {
  const fs::path sound = file("s.wav", encode_wav({8000, 2, {0.5F, -0.5F, 0.25F, 0.25F, 0.75F, 0.25F}}));
  EXPECT_EQ(numbers_of(read_feature(array_feature({1, 3}), sound)), (std::vector<double>{0, 0.25, 0.5}));
  EXPECT_EQ(failure_of([&] {
              read_feature(array_feature({1, 5}), sound);
            }).second,
            "input 'x' (" + sound.string() +
                "): expected 5 samples, got 3 (375 \u00b5s at 8000 Hz); pad adds silence or cuts the end off, rate "
                "resamples");
  std::vector<std::string> notes;
  ReadingOptions options;
  options.pad = true;
  options.note = [&](const std::string& text) { notes.push_back(text); };
  EXPECT_EQ(numbers_of(read_feature(array_feature({5}), sound, options)), (std::vector<double>{0, 0.25, 0.5, 0, 0}));
  EXPECT_EQ(numbers_of(read_feature(array_feature({2}), sound, options)), (std::vector<double>{0, 0.25}));
  EXPECT_EQ(notes, (std::vector<std::string>{
                       sound.string() + ": 3 samples, 2 of silence added",
                       sound.string() + ": using the first 2 of 3 samples (250 \u00b5s of 375 \u00b5s)"}));
  options.rate = 16000;
  EXPECT_EQ(std::get<MultiArray>(read_feature(array_feature({6}, DataType::float16), sound, options)).type(),
            DataType::float16);
  EXPECT_EQ(failure_of([&] { read_feature(array_feature({80, 3000}), sound); }).first, ErrorKind::invalid_argument);
}

TEST_F(ReadFeature, APathWithANulByteIsNoOtherFile) {
  const fs::path image = file("a.png", samples::bytes(samples::kPngRgb)), text = file("a.txt", bytes_of("1"));
  const auto cut = [](const fs::path& path) { return fs::path(path.string() + '\0' + path.extension().string()); };
  const std::pair refusal(ErrorKind::invalid_argument, image.string() +
                                                           ": expected a path without NUL bytes, got one " +
                                                           "at byte " + std::to_string(image.string().size()));
  EXPECT_EQ(failure_of([&] { read_image(cut(image)); }), refusal);
  EXPECT_EQ(failure_of([&] { read_feature(image_feature(2, 2), cut(image)); }), refusal);
  for (const auto& read : {std::function<void()>([&] { read_sound(cut(image)); }),
                           {[&] { read_npy(cut(image)); }},
                           {[&] { read_npz(cut(image)); }},
                           {[&] { read_feature(feature_of(FeatureType::int64), cut(text)); }}})
    EXPECT_EQ(failure_of(read).first, ErrorKind::invalid_argument);
}

TEST_F(ReadFeature, WhatCannotBeRead) {
  EXPECT_EQ(failure_of([&] { read_feature(image_feature(2, 2), folder_ / "absent.png"); }).first, ErrorKind::not_found);
  EXPECT_EQ(failure_of([&] { read_feature(image_feature(2, 2), file("bad.png", bytes_of("hello"))); }).first,
            ErrorKind::malformed);
  EXPECT_EQ(failure_of([&] { read_feature(array_feature({2}), file("bad.wav", bytes_of("hello"))); }).first,
            ErrorKind::malformed);
  EXPECT_EQ(failure_of([&] { read_feature(array_feature({2}), file("x.exe", {})); }).first,
            ErrorKind::invalid_argument);
  ReadingOptions options;
  options.most_pixels = 5;
  EXPECT_EQ(failure_of([&] {
              read_feature(image_feature(2, 2), file("big.png", samples::bytes(samples::kPngRgb)), options);
            }).first,
            ErrorKind::out_of_budget);
}

}  // namespace
}  // namespace moka::test
