// SPDX-License-Identifier: Apache-2.0
// Pictures of one component of half floats: never converted, and not copied where the memory can be used.
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "api/api_util.h"
#include "base/half.h"
#include "moka/program.h"
#include "moka/trace.h"
#include "units/vulkan_driver.h"

namespace moka::test {
namespace {

constexpr int64_t kWidth = 6, kHeight = 4;

uint16_t bits(float v) { return half(v).bits; }

/// y = relu(x + 1), as pictures of half floats.
Model model_on(const std::string& device, Precision precision = Precision::exact) {
  ProgramBuilder b;
  FeatureDescription picture;
  picture.name = "x";
  picture.type = FeatureType::image;
  picture.image = {kWidth, kHeight, ColorSpace::grayscale_float16};
  b.image_output(b.op("relu", {{"x", b.op("add", {{"x", b.input(picture)}, {"y", 1.f}})}}),
                 ColorSpace::grayscale_float16, "y");
  ModelConfiguration c;
  c.rates = "off";
  c.precision = precision;
  if (device != "cpu") c.device = device;
  c.compute_units = device == "cpu" ? ComputeUnits::cpu_only : ComputeUnits::all;
  return b.build(c);
}

class HalfPictures : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "vulkan" && !has_vulkan_driver()) GTEST_SKIP() << "this machine has no driver for vulkan";
  }

  /// What the Data lane has for inputs and outputs that were converted or copied, and the bytes that the counter has.
  struct Moved {
    std::vector<std::string> slices;
    double bytes = -1;
  };
  Moved moved(const Model& m, const Features& inputs, Features& outputs) {
    const auto path = std::filesystem::temp_directory_path() / ("moka-half-" + std::to_string(getpid()) + ".pftrace");
    {
      Trace trace(path);
      m.predict(inputs, outputs);
      trace.stop();
    }
    const TraceSummary summary = summarize_trace(path);
    std::filesystem::remove(path);
    Moved out;
    for (const TraceGroup& g : summary.groups)
      if (g.lane == "Data" && (g.kind == "convert" || g.kind == "copy")) out.slices.push_back(g.name + ": " + g.reason);
    for (const TraceCounter& c : summary.counters)
      if (c.name == "Copied inputs and outputs") out.bytes = c.maximum;
    return out;
  }
};

struct Plane {
  explicit Plane(int64_t stride = kWidth, uint16_t fill = 0) : stride(stride), halves(stride * kHeight, fill) {}
  Image image() { return {halves.data(), kWidth, kHeight, PixelFormat::gray_float16, 2 * stride}; }
  uint16_t& at(int64_t x, int64_t y) { return halves[static_cast<size_t>(y * stride + x)]; }
  int64_t stride;
  std::vector<uint16_t> halves;
};

float number(int64_t x, int64_t y) { return 0.25f * static_cast<float>(x) - static_cast<float>(y); }

Plane given(int64_t stride = kWidth) {
  Plane out(stride, bits(99));
  for (int64_t y = 0; y < kHeight; y++)
    for (int64_t x = 0; x < kWidth; x++) out.at(x, y) = bits(number(x, y));
  return out;
}

void expect_right(Plane& out) {
  for (int64_t y = 0; y < kHeight; y++)
    for (int64_t x = 0; x < kWidth; x++)
      EXPECT_EQ(out.at(x, y), bits(std::max(0.f, number(x, y) + 1))) << x << " " << y;
}

}  // namespace

TEST_P(HalfPictures, AreUsedWhereTheyLie) {
  const Model m = model_on(GetParam());
  Plane x = given(), y;
  const Features inputs{{"x", x.image()}};
  Features outputs{{"y", y.image()}};
  m.predict(inputs, outputs);  // plans
  y = Plane();
  outputs = {{"y", y.image()}};
  const Moved none = moved(m, inputs, outputs);
  EXPECT_EQ(none.slices, std::vector<std::string>());
  EXPECT_EQ(none.bytes, 0);
  expect_right(y);
  EXPECT_EQ(std::get<Image>(outputs.at("y")).pixels.get(), reinterpret_cast<uint8_t*>(y.halves.data()));

  Features made;
  EXPECT_EQ(moved(m, inputs, made).slices, std::vector<std::string>());
  const Image& own = std::get<Image>(made.at("y"));
  ASSERT_EQ(own.format, PixelFormat::gray_float16);
  EXPECT_EQ(own.row_bytes, 2 * kWidth);
  EXPECT_EQ(std::vector<uint8_t>(own.pixels.get(), own.pixels.get() + own.row_bytes * own.height),
            std::vector<uint8_t>(reinterpret_cast<uint8_t*>(y.halves.data()),
                                 reinterpret_cast<uint8_t*>(y.halves.data() + y.halves.size())));
}

/// Rows with gaps are copied, but their numbers stay as they are, and what lies between them is not written.
TEST_P(HalfPictures, RowsMayHaveGaps) {
  const Model m = model_on(GetParam());
  Plane x = given(kWidth + 3), y(kWidth + 2, bits(7));
  Features outputs{{"y", y.image()}};
  const Moved found = moved(m, {{"x", x.image()}}, outputs);
  for (const std::string& slice : found.slices) EXPECT_EQ(slice.find(" to "), std::string::npos) << slice;
  expect_right(y);
  for (int64_t row = 0; row < kHeight; row++) EXPECT_EQ(y.at(kWidth, row), bits(7));
}

/// Without Precision::exact, half floats are computed in float32, which the trace says.
TEST_P(HalfPictures, BecomeFloatsWhereTheModelComputesInFloats) {
  const Model m = model_on(GetParam(), Precision::at_least);
  Plane x = given(), y;
  Features outputs{{"y", y.image()}};
  const Moved found = moved(m, {{"x", x.image()}}, outputs);
  if (GetParam() == "cpu") EXPECT_EQ(found.slices, (std::vector<std::string>{"x: fp16 to fp32", "y: fp32 to fp16"}));
  EXPECT_GT(found.bytes, 0);
  expect_right(y);
}

/// An output may lie in the memory of the input.
TEST_P(HalfPictures, OutputOverTheInput) {
  const Model m = model_on(GetParam());
  Plane x = given();
  Features outputs{{"y", x.image()}};
  m.predict({{"x", x.image()}}, outputs);
  expect_right(x);
}

TEST_P(HalfPictures, OtherBackings) {
  const Model m = model_on(GetParam());
  Plane x = given();
  const Features inputs{{"x", x.image()}};
  Features floats{{"y", Image(kWidth, kHeight, PixelFormat::gray_float32)}};
  m.predict(inputs, floats);
  EXPECT_EQ(*reinterpret_cast<float*>(std::get<Image>(floats.at("y")).pixels.get()), 1);
  for (const PixelFormat format : {PixelFormat::gray8, PixelFormat::rgb8, PixelFormat::bgra8}) {
    Features wrong{{"y", Image(kWidth, kHeight, format)}};
    expect_error(ErrorKind::invalid_argument, {"'y'", "pixel"}, [&] { m.predict(inputs, wrong); });
  }
  Features small{{"y", Image(kWidth, kHeight - 1, PixelFormat::gray_float16)}};
  expect_error(ErrorKind::invalid_argument, {"'y'", "6 x 4"}, [&] { m.predict(inputs, small); });
}

INSTANTIATE_TEST_SUITE_P(Devices, HalfPictures, ::testing::Values("cpu", "simulator", "vulkan"));

TEST(Images, AreConverted) {
  Image bytes(2, 1, PixelFormat::gray8);
  bytes.pixels.get()[0] = 3;
  bytes.pixels.get()[1] = 200;
  const Image halves = converted(bytes, PixelFormat::gray_float16);
  const auto* h = reinterpret_cast<const uint16_t*>(halves.pixels.get());
  EXPECT_EQ(h[0], bits(3));
  EXPECT_EQ(h[1], bits(200));
  EXPECT_EQ(converted(halves, PixelFormat::gray8).pixels.get()[1], 200);
  EXPECT_EQ(converted(halves, PixelFormat::rgb8).pixels.get()[5], 200);
  Image small(1, 1, PixelFormat::gray_float32);  // numbers stay numbers
  *reinterpret_cast<float*>(small.pixels.get()) = -0.375f;
  const Image half = converted(small, PixelFormat::gray_float16);
  EXPECT_EQ(*reinterpret_cast<uint16_t*>(half.pixels.get()), bits(-0.375f));
  Image red(1, 1, PixelFormat::rgb8);
  red.pixels.get()[0] = 250;
  const Image bgra = converted(red, PixelFormat::bgra8);
  EXPECT_EQ((std::vector<int>(bgra.pixels.get(), bgra.pixels.get() + 4)), (std::vector<int>{0, 0, 250, 255}));
  const Image gray = converted(red, PixelFormat::gray_float16);  // 0.299 of 250, rounded
  EXPECT_EQ(*reinterpret_cast<const uint16_t*>(gray.pixels.get()), bits(75));
  expect_error(ErrorKind::invalid_argument, {"pixels"}, [] { converted(Image(), PixelFormat::rgba8); });
}

}  // namespace moka::test
