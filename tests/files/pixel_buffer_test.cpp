// SPDX-License-Identifier: Apache-2.0
#include "moka/pixel_buffer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/instruction_set.h"
#include "files/files_util.h"
#include "pictures/fitter.h"
#include "pictures/taps.h"

namespace moka::test {
namespace {

using Samples = std::vector<uint8_t>;
constexpr PixelBufferFormat kAll[] = {PixelBufferFormat::nv12, PixelBufferFormat::nv12_full,
                                      PixelBufferFormat::i420, PixelBufferFormat::i420_full,
                                      PixelBufferFormat::p010, PixelBufferFormat::p010_full};

/// A buffer of these bytes, which it shares.
PixelBuffer buffer_of(int64_t width, int64_t height, PixelBufferFormat format, const Samples& bytes) {
  const std::shared_ptr<uint8_t> own(new uint8_t[bytes.size()], std::default_delete<uint8_t[]>());
  std::copy(bytes.begin(), bytes.end(), own.get());
  return PixelBuffer(width, height, format, own, bytes.size());
}

Samples noisy_bytes(int64_t width, int64_t height, PixelBufferFormat format, uint32_t seed) {
  std::mt19937 random(seed);
  Samples bytes(PixelBuffer::contiguous_bytes(width, height, format));
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  return bytes;
}

/// What a plane of luma and one pair of chroma become, by the formulas of ITU-R BT.601, BT.709 and BT.2020.
struct Rgb {
  double r, g, b;
};
Rgb color_of(double y, double u, double v, bool full, int bits, YCbCrMatrix matrix) {
  const double kr = matrix == YCbCrMatrix::bt601 ? 0.299 : matrix == YCbCrMatrix::bt709 ? 0.2126 : 0.2627;
  const double kb = matrix == YCbCrMatrix::bt601 ? 0.114 : matrix == YCbCrMatrix::bt709 ? 0.0722 : 0.0593;
  const double step = std::pow(2, bits - 8), most = std::pow(2, bits) - 1, middle = 128 * step;
  const double luma = full ? y / most : (y - 16 * step) / (219 * step);
  const double cb = full ? (u - middle) / most : (u - middle) / (224 * step);
  const double cr = full ? (v - middle) / most : (v - middle) / (224 * step);
  const double r = luma + 2 * (1 - kr) * cr, b = luma + 2 * (1 - kb) * cb, g = (luma - kr * r - kb * b) / (1 - kr - kb);
  const auto cut = [](double c) { return 255 * std::min(1.0, std::max(0.0, c)); };
  return {cut(r), cut(g), cut(b)};
}

Rgb color_at(const PixelBuffer& b, int64_t x, int64_t y) {
  const bool words = b.format >= PixelBufferFormat::p010, full = static_cast<int>(b.format) % 2 == 1;
  const auto sample = [&](size_t plane, int64_t row, int64_t column) -> double {
    const uint8_t* p = b.planes[plane].data.get() + row * b.planes[plane].row_bytes + column * (words ? 2 : 1);
    return words ? (p[0] | p[1] << 8) >> 6 : p[0];
  };
  const bool planar = b.format == PixelBufferFormat::i420 || b.format == PixelBufferFormat::i420_full;
  const double u = planar ? sample(1, y / 2, x / 2) : sample(1, y / 2, x / 2 * 2);
  const double v = planar ? sample(2, y / 2, x / 2) : sample(1, y / 2, x / 2 * 2 + 1);
  return color_of(sample(0, y, x), u, v, full, words ? 10 : 8, b.matrix);
}

// The reference bars of 75% of BT.601 and BT.709, whose samples are in ITU-R BT.801 and ARIB STD-B28.
TEST(PixelBuffers, BarsOfStandards) {
  struct Bar {
    YCbCrMatrix matrix;
    uint8_t y, u, v;
    std::array<int, 3> rgb;
  };
  const Bar bars[] = {
      {YCbCrMatrix::bt601, 235, 128, 128, {255, 255, 255}}, {YCbCrMatrix::bt601, 16, 128, 128, {0, 0, 0}},
      {YCbCrMatrix::bt601, 162, 44, 142, {191, 191, 0}},    {YCbCrMatrix::bt601, 65, 100, 212, {191, 0, 0}},
      {YCbCrMatrix::bt709, 168, 44, 136, {191, 191, 0}},    {YCbCrMatrix::bt709, 51, 109, 212, {191, 0, 0}},
      {YCbCrMatrix::bt709, 28, 212, 120, {0, 0, 191}},
  };
  for (const Bar& bar : bars) {
    PixelBuffer b = buffer_of(2, 2, PixelBufferFormat::nv12, {bar.y, bar.y, bar.y, bar.y, bar.u, bar.v});
    b.matrix = bar.matrix;
    const Pixels got = pixels_of(image_of(b, PixelFormat::rgb8));
    for (size_t i = 0; i < got.size(); i++) EXPECT_NEAR(got[i], bar.rgb[i % 3], 1) << int{bar.y} << " " << i;
  }
}

TEST(PixelBuffers, EveryPixelIsRoundedOnce) {
  for (const PixelBufferFormat format : kAll)
    for (const YCbCrMatrix matrix : {YCbCrMatrix::bt601, YCbCrMatrix::bt709, YCbCrMatrix::bt2020}) {
      PixelBuffer b = buffer_of(37, 23, format, noisy_bytes(37, 23, format, 1));
      b.matrix = matrix;
      const Pixels got = pixels_of(image_of(b, PixelFormat::rgb8)),
                   blue_first = pixels_of(image_of(b, PixelFormat::bgra8));
      for (int64_t i = 0; i < 37 * 23; i++) {
        const Rgb want = color_at(b, i % 37, i / 37);
        const double all[] = {want.r, want.g, want.b};
        for (size_t c = 0; c < 3; c++) {
          const auto at = static_cast<size_t>(i);
          ASSERT_NEAR(got[3 * at + c], all[c], 0.501) << to_string(format) << " " << to_string(matrix) << " " << i;
          ASSERT_EQ(blue_first[4 * at + 2 - c], got[3 * at + c]);
        }
      }
    }
}

TEST(PixelBuffers, GrayIsLumaInFullRange) {
  const PixelBuffer b = buffer_of(4, 2, PixelBufferFormat::nv12, {0, 16, 17, 126, 235, 255, 234, 60, 1, 2, 250, 9});
  EXPECT_EQ(pixels_of(image_of(b, PixelFormat::gray8)), (Pixels{0, 0, 1, 128, 255, 255, 254, 51}));
  const PixelBuffer full = buffer_of(2, 1, PixelBufferFormat::i420_full, {7, 250, 1, 2});
  EXPECT_EQ(pixels_of(image_of(full, PixelFormat::gray8)), (Pixels{7, 250}));
}

/// Each pixel as a color, resampled with real numbers.
std::vector<double> resampled_colors(const PixelBuffer& b, const pictures::Placement& p, bool gray) {
  const auto columns = pictures::taps_for<double>(static_cast<size_t>(b.width), p.source_x, p.source_width,
                                                  static_cast<size_t>(p.width));
  const auto rows = pictures::taps_for<double>(static_cast<size_t>(b.height), p.source_y, p.source_height,
                                               static_cast<size_t>(p.height));
  std::vector<double> out;
  for (const auto& row : rows)
    for (const auto& column : columns) {
      double sum[3] = {};
      for (size_t j = 0; j < row.weights.size(); j++)
        for (size_t i = 0; i < column.weights.size(); i++) {
          PixelBuffer plain = b;
          const auto x = static_cast<int64_t>(column.first + i), y = static_cast<int64_t>(row.first + j);
          Rgb c = color_at(plain, x, y);
          if (gray) {
            const bool words = b.format >= PixelBufferFormat::p010;
            const uint8_t* at = b.planes[0].data.get() + y * b.planes[0].row_bytes + x * (words ? 2 : 1);
            const double luma = words ? (at[0] | at[1] << 8) >> 6 : at[0], middle = words ? 512 : 128;
            c = color_of(luma, middle, middle, static_cast<int>(b.format) % 2 == 1, words ? 10 : 8, b.matrix);
          }
          const double w = row.weights[j] * column.weights[i];
          sum[0] += w * c.r;
          sum[1] += w * c.g;
          sum[2] += w * c.b;
        }
      out.insert(out.end(), sum, sum + (gray ? 1 : 3));
    }
  return out;
}

pictures::Frame frame_of_buffer(const PixelBuffer& b) {
  pictures::Frame frame{
      static_cast<pictures::Format>(b.format), static_cast<pictures::Matrix>(b.matrix), b.width, b.height, {}, {}};
  for (size_t p = 0; p < 3; p++) {
    frame.data[p] = b.planes[p].data.get();
    frame.row_bytes[p] = b.planes[p].row_bytes;
  }
  return frame;
}

TEST(PixelBuffers, FitsAsColorsOfRealNumbers) {
  std::mt19937 random(5);
  const auto number = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
  };
  for (int test = 0; test < 90; test++) {
    const int64_t width = number(1, 90), height = number(1, 70), to_width = number(1, 60), to_height = number(1, 40);
    const auto format = kAll[static_cast<size_t>(number(0, 5))];
    Samples bytes = noisy_bytes(width, height, format, static_cast<uint32_t>(test));
    if (test % 9 == 0) std::fill(bytes.begin(), bytes.end(), test % 2 == 0 ? 255 : 0);
    PixelBuffer b = buffer_of(width, height, format, bytes);
    b.matrix = static_cast<YCbCrMatrix>(number(0, 2));
    if (test % 2 == 0) b.region = {0.2, 0.1, 0.7, 0.55};
    const auto fit = static_cast<pictures::Fit>(number(0, 2));
    const auto placed = pictures::place(width, height, to_width, to_height, fit,
                                        {b.region.x, b.region.y, b.region.width, b.region.height});
    ASSERT_TRUE(placed.ok());
    const bool gray = test % 3 == 0;
    pictures::Fitter fitter(width, height, *placed, gray ? 1 : 3);
    const size_t plane = static_cast<size_t>(to_width * to_height);
    std::vector<float> got(3 * plane, -1.0F);
    pictures::fit_planes(fitter, frame_of_buffer(b), to_width, to_height,
                         {got.data(), got.data() + plane, got.data() + 2 * plane});
    const std::vector<double> want = resampled_colors(b, *placed, gray);
    for (int64_t y = 0; y < to_height; y++)
      for (int64_t x = 0; x < to_width; x++)
        for (size_t c = 0; c < (gray ? 1u : 3u); c++) {
          const int64_t in_x = x - placed->x, in_y = y - placed->y;
          const bool inside = in_x >= 0 && in_y >= 0 && in_x < placed->width && in_y < placed->height;
          const double expected =
              inside ? want[static_cast<size_t>(in_y * placed->width + in_x) * (gray ? 1 : 3) + c] : 0;
          ASSERT_NEAR(got[c * plane + static_cast<size_t>(y * to_width + x)], expected, 0.15)
              << test << " " << to_string(format) << " " << x << " " << y << " " << c;
        }
  }
}

// The loops of each instruction set give the same words and numbers.
TEST(PixelBuffers, InstructionSetsAgree) {
  using namespace pictures;
  std::mt19937 random(8);
  constexpr int64_t kColumns = 77, kStride = 96, kRows = 7, kTaps = 32, kCount = 13;
  std::vector<uint8_t> samples(4096);
  for (uint8_t& s : samples) s = static_cast<uint8_t>(random());
  std::vector<PairOfWeights> weights;
  for (int i = 0; i < 2 * kRows; i++) weights.push_back(static_cast<PairOfWeights>((random() % 4096) * 65537));
  std::vector<int16_t> taps(16 * kTaps);
  for (int16_t& w : taps) w = static_cast<int16_t>(random() % 1024);
  std::vector<int32_t> firsts(16);
  for (int32_t& f : firsts) f = static_cast<int32_t>(random() % 40);
  const auto results = [&](const Sampler& sampler, Storage storage, int channels, bool is_odd) {
    const ColorWords words{19077, 13074, -3210, -6660, 16525, 15255};
    std::vector<int16_t> line(3 * kStride + kTaps), carry(3 * kStride, 100);
    RowsToAdd rows{};
    rows.luma = samples.data();
    rows.chroma[0] = samples.data() + 2048;
    rows.chroma[1] = samples.data() + 3072;
    rows.luma_bytes = 160;
    rows.chroma_bytes[0] = 158;
    rows.chroma_bytes[1] = 90;
    rows.rows = kRows;
    rows.is_odd = is_odd;
    rows.columns = kColumns;
    rows.ending = weights.data();
    rows.beginning = weights.data() + kRows;
    rows.line = line.data();
    rows.carry = carry.data();
    rows.stride = kStride;
    rows.words = &words;
    sampler.add_rows[static_cast<int>(storage)][channels == 3](rows);
    std::vector<float> mixed(kCount);
    sampler.mix({line.data(), kCount, firsts.data(), taps.data(), kTaps, mixed.data()});
    for (int c = 0; c < channels; c++)  // what follows the columns is not defined
      std::fill(line.begin() + c * kStride + kColumns, line.begin() + (c + 1) * kStride, int16_t{0});
    std::vector<float> all(line.begin(), line.end());
    for (int c = 0; c < channels; c++)
      all.insert(all.end(), carry.begin() + c * kStride, carry.begin() + c * kStride + kColumns);
    all.insert(all.end(), mixed.begin(), mixed.end());
    return all;
  };
  for (const Storage storage : {Storage::biplanar, Storage::planar, Storage::words})
    for (const int channels : {1, 3})
      for (const bool is_odd : {false, true}) {
        const auto want = results(sampler_base(), storage, channels, is_odd);
        EXPECT_EQ(results(sampler(), storage, channels, is_odd), want)
            << static_cast<int>(storage) << channels << is_odd;
#if defined(__x86_64__)
        if (instruction_set() >= InstructionSet::avx2) {
          EXPECT_EQ(results(sampler_avx2(), storage, channels, is_odd), want) << static_cast<int>(storage) << channels;
        }
#endif
      }
}

TEST(PixelBuffers, FitsAsWhatIsConvertedFirst) {
  for (const ImageFit fit : {ImageFit::scale_fill, ImageFit::scale_fit, ImageFit::center_crop})
    for (const PixelBufferFormat format : kAll) {
      PixelBuffer b = buffer_of(161, 91, format, noisy_bytes(161, 91, format, 3));
      b.fit = fit;
      b.region = {0.05, 0.1, 0.8, 0.75};
      const Pixels got = pixels_of(fitted(b, 32, 24, PixelFormat::rgb8));
      const Pixels want = pixels_of(fit_image(image_of(b, PixelFormat::rgb8), 32, 24, fit, b.region));
      for (size_t i = 0; i < want.size(); i++) ASSERT_NEAR(got[i], want[i], 1) << to_string(format) << " " << i;
    }
}

TEST(PixelBuffers, RowsMayHaveGapsAndOddSizesRoundChromaUp) {
  const Samples bytes = noisy_bytes(5, 3, PixelBufferFormat::nv12, 9);
  const PixelBuffer dense = buffer_of(5, 3, PixelBufferFormat::nv12, bytes);
  Samples luma(3 * 11), chroma(2 * 9);  // rows of chroma have 3 pairs
  for (size_t y = 0; y < 3; y++) std::copy_n(&bytes[y * 5], 5, &luma[y * 11]);
  for (size_t y = 0; y < 2; y++) std::copy_n(&bytes[15 + y * 6], 6, &chroma[y * 9]);
  const PixelPlane planes[] = {{static_cast<const void*>(luma.data()), 11},
                               {static_cast<const void*>(chroma.data()), 9}};
  const PixelBuffer gaps(5, 3, PixelBufferFormat::nv12, planes);
  EXPECT_EQ(pixels_of(image_of(gaps, PixelFormat::rgb8)), pixels_of(image_of(dense, PixelFormat::rgb8)));
  EXPECT_EQ(pixels_of(fitted(gaps, 4, 7, PixelFormat::rgb8)), pixels_of(fitted(dense, 4, 7, PixelFormat::rgb8)));
  EXPECT_EQ(pixels_of(image_of(copied(gaps), PixelFormat::rgb8)), pixels_of(image_of(dense, PixelFormat::rgb8)));
  EXPECT_EQ(copied(gaps).planes[1].row_bytes, 6);
}

TEST(PixelBuffers, ErrorsNameFormatAndPlane) {
  const auto message = [](const std::function<void()>& act) {
    const auto [kind, text] = failure_of(act);
    EXPECT_EQ(kind, ErrorKind::invalid_argument);
    return text;
  };
  const uint8_t some[64] = {};
  const PixelPlane good(static_cast<const void*>(some), 0), none, narrow(static_cast<const void*>(some), 3);
  using Planes = std::vector<PixelPlane>;
  const auto make = [](PixelBufferFormat format, const Planes& planes) { PixelBuffer(6, 4, format, planes); };
  EXPECT_EQ(message([&] { make(PixelBufferFormat::nv12, {good}); }),
            "pixel buffer (nv12 6 x 4): expected 2 planes, got 1");
  EXPECT_EQ(message([&] {
              make(PixelBufferFormat::i420, {good, good});
            }),
            "pixel buffer (i420 6 x 4): expected 3 planes, got 2");
  EXPECT_EQ(message([&] {
              make(PixelBufferFormat::nv12, {good, none});
            }),
            "pixel buffer (nv12 6 x 4): plane 1 (chroma): expected samples, got none");
  EXPECT_EQ(message([&] {
              make(PixelBufferFormat::p010, {narrow, good});
            }),
            "pixel buffer (p010 6 x 4): plane 0 (luma): expected rows of at least 12 bytes, got 3");
  EXPECT_EQ(message([&] { buffer_of(6, 4, PixelBufferFormat::nv12, Samples(35)); }),
            "pixel buffer (nv12 6 x 4): expected 36 bytes of planes without gaps, got 35");
  EXPECT_EQ(message([&] {
              PixelBuffer(0, 4, PixelBufferFormat::nv12, Planes{good, good});
            }),
            "pixel buffer (nv12): expected sizes of 1 to 65536, got 0 x 4");
  EXPECT_EQ(message([&] { pixel_buffer_format("yuyv"); }),
            "pixel format: expected nv12, nv12_full, i420, i420_full, p010 or p010_full, got 'yuyv'");
  EXPECT_EQ(message([&] { ycbcr_matrix("rec709"); }), "matrix: expected bt601, bt709 or bt2020, got 'rec709'");
  PixelBuffer outside(6, 4, PixelBufferFormat::nv12, Planes{good, good});
  outside.region = {0.5, 0, 0.6, 1};
  EXPECT_EQ(message([&] { fitted(outside, 2, 2, PixelFormat::rgb8); }),
            "region: expected a part of the image in fractions from 0 to 1, got (0.5, 0) with 0.6 x 1");
  EXPECT_EQ(message([&] { fitted(PixelBuffer(), 2, 2, PixelFormat::rgb8); }),
            "pixel buffer (nv12): expected sizes of 1 to 65536, got 0 x 0");
}

TEST(PixelBuffers, Names) {
  for (const PixelBufferFormat format : kAll) EXPECT_EQ(pixel_buffer_format(to_string(format)), format);
  EXPECT_EQ(pixel_buffer_format("420f"), PixelBufferFormat::nv12_full);
  EXPECT_EQ(pixel_buffer_format("x420"), PixelBufferFormat::p010);
  EXPECT_EQ(ycbcr_matrix("bt709"), YCbCrMatrix::bt709);
}

FeatureDescription rgb_feature(int64_t width, int64_t height, ColorSpace color) {
  FeatureDescription f;
  f.name = "image";
  f.type = FeatureType::image;
  f.image.width = width;
  f.image.height = height;
  f.image.color = color;
  return f;
}

std::span<const std::byte> span_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(RawVideo, TheFirstFrameIsThePicture) {
  const FeatureDescription f = rgb_feature(4, 2, ColorSpace::rgb);
  const Samples frame = noisy_bytes(4, 2, PixelBufferFormat::i420, 2);
  const std::string raw(frame.begin(), frame.end());
  ReadingOptions options;
  options.frame.width = 4;
  options.frame.height = 2;
  options.frame.matrix = YCbCrMatrix::bt709;
  options.fit = ImageFit::center_crop;
  const auto buffer = std::get<PixelBuffer>(decode_feature(f, span_of(raw + raw), "clip.yuv", options));
  PixelBuffer want = buffer_of(4, 2, PixelBufferFormat::i420, frame);
  want.matrix = YCbCrMatrix::bt709;
  EXPECT_EQ(pixels_of(image_of(buffer, PixelFormat::rgb8)), pixels_of(image_of(want, PixelFormat::rgb8)));
  EXPECT_EQ(buffer.fit, ImageFit::center_crop);
  EXPECT_EQ(pixels_of(image_value(f, buffer)), pixels_of(fitted(want, 4, 2, PixelFormat::rgb8)));

  const std::string y4m = "YUV4MPEG2 W4 H2 F30:1 Ip A1:1 C420jpeg XCOLORRANGE=FULL\nFRAME\n" + raw;
  const auto stream = std::get<PixelBuffer>(decode_feature(f, span_of(y4m), "upload", {}));
  EXPECT_EQ(stream.format, PixelBufferFormat::i420_full);
  EXPECT_EQ(0, std::memcmp(stream.planes[0].data.get(), frame.data(), frame.size()));
}

TEST(RawVideo, Errors) {
  const FeatureDescription f = rgb_feature(4, 2, ColorSpace::rgb);
  const auto failure = [&](const std::string& bytes, const char* name, ReadingOptions options = {}) {
    return failure_of([&] { decode_feature(f, span_of(bytes), name, options); });
  };
  EXPECT_EQ(failure(std::string(12, 'x'), "a.nv12").second,
            "input 'image' (a.nv12): expected a size for a file of raw video, got none");
  ReadingOptions options;
  options.frame.width = 4;
  options.frame.height = 2;
  EXPECT_EQ(failure(std::string(13, 'x'), "a.nv12", options).second,
            "input 'image' (a.nv12): expected frames of 12 bytes (nv12 4 x 2), got 13 bytes");
  EXPECT_EQ(failure("", "a.nv12", options).first, ErrorKind::invalid_argument);
  for (const char* bad :
       {"YUV4MPEG2 W4", "YUV4MPEG2 W4 H2\n", "YUV4MPEG2 W4 H2\nFRAME", "YUV4MPEG2 W4 H2\nFRAME\n12345678901",
        "YUV4MPEG2 Wx H2\nFRAME\n", "YUV4MPEG2 H2\nFRAME\n", "YUV4MPEG2 W-4 H2\nFRAME\n"})
    EXPECT_EQ(failure(bad, "a.y4m").first, ErrorKind::malformed) << bad;
  EXPECT_EQ(failure("YUV4MPEG2 W4 H2 C444\nFRAME\n", "a.y4m").first, ErrorKind::unsupported);
  EXPECT_EQ(failure("YUV4MPEG2 W60000 H60000\nFRAME\n", "a.y4m").first, ErrorKind::out_of_budget);
}

}  // namespace
}  // namespace moka::test
