// SPDX-License-Identifier: Apache-2.0
#include "api/api_util.h"
#include "moka/files.h"
#include "moka/trace.h"

/// Pictures of cameras as inputs of models (tests/golden/boundary_models.py: half of the colors of 3 x 2 pixels).
namespace moka::test {
namespace {

Model camera_model(const std::string& name, const ModelConfiguration& configuration = {}) {
  return Model::load(MOKA_GOLDEN "/boundary/" + name + ".mlmodel", configuration);
}

PixelBuffer camera_frame(int64_t width, int64_t height, PixelBufferFormat format) {
  std::mt19937 random(7);
  const size_t bytes = PixelBuffer::contiguous_bytes(width, height, format);
  const std::shared_ptr<uint8_t> samples(new uint8_t[bytes], std::default_delete<uint8_t[]>());
  for (size_t i = 0; i < bytes; i++) samples.get()[i] = static_cast<uint8_t>(random());
  PixelBuffer buffer(width, height, format, samples, bytes);
  buffer.fit = ImageFit::center_crop;
  buffer.matrix = YCbCrMatrix::bt709;
  return buffer;
}

void expect_near_images(const Image& a, const Image& b, int most) {
  ASSERT_EQ(a.width, b.width);
  ASSERT_EQ(a.height, b.height);
  ASSERT_EQ(a.format, b.format);
  const int64_t row = a.width * static_cast<int64_t>(bytes_per_pixel(a.format));
  for (int64_t y = 0; y < a.height; y++)
    for (int64_t i = 0; i < row; i++)
      ASSERT_NEAR(a.pixels.get()[y * a.row_bytes + i], b.pixels.get()[y * b.row_bytes + i], most) << y << " " << i;
}

TEST(CameraFrames, AreCroppedAndResizedByThePrediction) {
  for (const char* name : {"image_rgb", "image_bgr", "image_grayscale"})
    for (const PixelBufferFormat format :
         {PixelBufferFormat::nv12, PixelBufferFormat::i420_full, PixelBufferFormat::p010}) {
      const Model model = camera_model(name);
      const PixelBuffer frame = camera_frame(64, 37, format);
      const Features fitting{{"x", image_value(model.function().inputs[0], frame)}};
      const Image got = std::get<Image>(model.predict({{"x", frame}}).at("y"));
      expect_near_images(got, std::get<Image>(model.predict(fitting).at("y")), 1);
    }
}

TEST(CameraFrames, KeepTheirFractionsInModelsOfHalfFloats) {
  const Model model = camera_model("image_grayscale_float16");
  const PixelBuffer frame = camera_frame(64, 37, PixelBufferFormat::nv12);
  const Image got = converted(std::get<Image>(model.predict({{"x", frame}}).at("y")), PixelFormat::gray_float32);
  const Image want = fitted(frame, 3, 2, PixelFormat::gray_float32);
  for (int64_t i = 0; i < 6; i++)
    EXPECT_NEAR(reinterpret_cast<const float*>(got.pixels.get())[i],
                reinterpret_cast<const float*>(want.pixels.get())[i] / 2, 0.07);
}

TEST(CameraFrames, GoToDevicesAsPixels) {
  ModelConfiguration configuration;
  configuration.device = "simulator";
  const Model model = camera_model("image_rgb", configuration);
  const PixelBuffer frame = camera_frame(64, 37, PixelBufferFormat::nv12);
  const Image got = std::get<Image>(model.predict({{"x", frame}}).at("y"));
  expect_near_images(got, std::get<Image>(camera_model("image_rgb").predict({{"x", frame}}).at("y")), 1);
}

TEST(CameraFrames, ManySizesAndBuffersInTurn) {
  const Model model = camera_model("image_rgb");
  for (const int64_t width : {64, 31, 64, 3, 1}) {
    PixelBuffer frame = camera_frame(width, 20, PixelBufferFormat::i420);
    if (width == 31) frame.region = {0.25, 0.5, 0.5, 0.5};
    const Features fitting{{"x", image_value(model.function().inputs[0], frame)}};
    expect_near_images(std::get<Image>(model.predict({{"x", frame}}).at("y")),
                       std::get<Image>(model.predict(fitting).at("y")), 1);
  }
}

TEST(CameraFrames, Errors) {
  const Model model = camera_model("image_rgb");
  PixelBuffer frame = camera_frame(8, 8, PixelBufferFormat::nv12);
  EXPECT_EQ(describe(FeatureValue(frame)), "PixelBuffer (nv12 8 x 8)");
  frame.planes[1].row_bytes = 7;
  expect_error(ErrorKind::invalid_argument,
               {"input 'x': pixel buffer (nv12 8 x 8): plane 1 (chroma): expected rows of at least 8 bytes, got 7"},
               [&] {
                 model.predict({{"x", frame}});
               });
  frame = camera_frame(8, 8, PixelBufferFormat::nv12);
  frame.region = {0, 0, 2, 1};
  expect_error(ErrorKind::invalid_argument, {"input 'x': region: expected a part of the image"}, [&] {
    model.predict({{"x", frame}});
  });
  frame.format = static_cast<PixelBufferFormat>(99);
  expect_error(ErrorKind::invalid_argument, {"input 'x': pixel buffer: expected a format"}, [&] {
    model.predict({{"x", frame}});
  });
  expect_error(ErrorKind::invalid_argument, {"got PixelBuffer (nv12 8 x 8)"}, [&] {
    Model::from_mil(R"(program(1.0)
{
    func main<ios15>(tensor<fp32, [2]> x) {
            tensor<fp32, [2]> y = add(x = x, y = x)[name = tensor<string, []>("y")];
        } -> (y);
})")
        .predict({{"x", camera_frame(8, 8, PixelBufferFormat::nv12)}});
  });
}

}  // namespace
}  // namespace moka::test
