// SPDX-License-Identifier: Apache-2.0
#include "api/api_util.h"
#include "moka/program.h"
#include "units/vulkan_driver.h"

/// Pictures of cameras that a device crops, resizes and converts. For a driver that computes on the processor, the host
/// does, but for the run with MOKA_VULKAN_FRAMES=1 (test_units_frames).
namespace moka::test {
namespace {

class FramesOnDevices : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "vulkan" && !has_vulkan_driver()) GTEST_SKIP() << "this machine has no driver for vulkan";
    set_warning_handler([](const std::string&) {});
  }
  void TearDown() override { set_warning_handler(nullptr); }
  ModelConfiguration configuration() const {
    ModelConfiguration c;
    c.device = GetParam();
    c.rates = "off";
    return c;
  }
  bool unpacks_frames() const {
    const char* set = std::getenv("MOKA_VULKAN_FRAMES");
    return GetParam() == "simulator" || (set != nullptr && std::string_view(set) == "1");
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, FramesOnDevices, ::testing::Values("simulator", "vulkan"));

/// The colors of 40 x 24 pixels, and 1 more.
Model colors_plus_one(ColorSpace color, const ModelConfiguration& configuration) {
  ProgramBuilder b("ios16");
  FeatureDescription picture;
  picture.name = "image";
  picture.type = FeatureType::image;
  picture.image = {40, 24, color};
  b.output(b.op("add", {{"x", b.input(picture)}, {"y", 1.f}}), "y");
  return b.source().load(configuration);
}

PixelBuffer noisy_frame(int64_t width, int64_t height, PixelBufferFormat format, uint32_t seed) {
  std::mt19937 random(seed);
  const size_t bytes = PixelBuffer::contiguous_bytes(width, height, format);
  const std::shared_ptr<uint8_t> samples(new uint8_t[bytes], std::default_delete<uint8_t[]>());
  for (size_t i = 0; i < bytes; i++) samples.get()[i] = static_cast<uint8_t>(random());
  return PixelBuffer(width, height, format, samples, bytes);
}

TEST_P(FramesOnDevices, GiveWhatTheProcessorGives) {
  for (const ColorSpace color : {ColorSpace::rgb, ColorSpace::bgr, ColorSpace::grayscale}) {
    const Model cpu = colors_plus_one(color, {}), device = colors_plus_one(color, configuration());
    for (const PixelBufferFormat format :
         {PixelBufferFormat::nv12, PixelBufferFormat::nv12_full, PixelBufferFormat::i420, PixelBufferFormat::i420_full,
          PixelBufferFormat::p010, PixelBufferFormat::p010_full})
      for (const ImageFit fit : {ImageFit::scale_fill, ImageFit::scale_fit, ImageFit::center_crop})
        // The larger one is more than a device takes for so few pixels.
        for (const auto& [width, height] : {std::pair(33, 19), std::pair(160, 90)}) {
          PixelBuffer frame = noisy_frame(width, height, format, 3);
          frame.fit = fit;
          frame.matrix = YCbCrMatrix::bt709;
          if (fit == ImageFit::scale_fill) frame.region = {0.1, 0.25, 0.8, 0.5};
          const MultiArray want = cpu.predict({{"image", frame}}).array("y");
          const MultiArray got = device.predict({{"image", frame}}).array("y");
          const bool exact = unpacks_frames() && width == 33;
          double fraction = 0;
          ASSERT_EQ(got.count(), want.count());
          for (int64_t i = 0; i < want.count(); i++) {
            ASSERT_NEAR(got.at(i), want.at(i), exact ? 0.15 : 0.501)
                << to_string(format) << " " << to_string(fit) << " " << width << " " << i;
            fraction = std::max(fraction, std::abs(got.at(i) - std::round(got.at(i))));
          }
          EXPECT_EQ(fraction > 0.2, exact) << "rounded or not: " << to_string(format) << " " << width;
        }
  }
}

TEST_P(FramesOnDevices, TakeTurnsWithPictures) {
  const Model cpu = colors_plus_one(ColorSpace::rgb, {}), device = colors_plus_one(ColorSpace::rgb, configuration());
  for (int turn = 0; turn < 3; turn++) {
    const PixelBuffer frame = noisy_frame(50 + turn, 30, PixelBufferFormat::nv12, static_cast<uint32_t>(turn));
    Image picture(40, 24, PixelFormat::rgb8);
    for (int64_t i = 0; i < 40 * 24 * 3; i++) picture.pixels.get()[i] = static_cast<uint8_t>(i * 7 + turn);
    for (const FeatureValue& value : {FeatureValue(frame), FeatureValue(picture)}) {
      const MultiArray want = cpu.predict({{"image", value}}).array("y"),
                       got = device.predict({{"image", value}}).array("y");
      for (int64_t i = 0; i < want.count(); i++) ASSERT_NEAR(got.at(i), want.at(i), 0.501) << turn << " " << i;
    }
  }
}

}  // namespace
}  // namespace moka::test
