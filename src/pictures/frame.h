// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

/// Pictures in planes of luma and chroma: what their samples mean, and how they become colors of a given size.
namespace moka::pictures {

/// In the order of moka::PixelBufferFormat.
enum class Format : uint8_t { nv12, nv12_full, i420, i420_full, p010, p010_full };
inline constexpr int kFormats = 6;
/// In the order of moka::YCbCrMatrix.
enum class Matrix : uint8_t { bt601, bt709, bt2020 };

std::string_view name_of(Format format);
/// 2 or 3.
int planes_of(Format format);
/// "luma", "chroma" (Cb and Cr take turns), "Cb", "Cr".
std::string_view plane_name(Format format, int plane);
/// 1 or 2.
int64_t bytes_per_sample(Format format);
bool is_full_range(Format format);
bool is_biplanar(Format format);
/// Bytes of a row of a plane without a gap. Chroma has half as many columns and rows as luma, rounded up.
int64_t row_bytes_of(Format format, int plane, int64_t width);
int64_t rows_of(int plane, int64_t height);
/// Bytes of all planes, one after another without gaps.
int64_t contiguous_bytes(Format format, int64_t width, int64_t height);

/// Rows from top to bottom in host memory.
struct Frame {
  Format format = Format::nv12;
  Matrix matrix = Matrix::bt601;
  int64_t width = 0, height = 0;
  std::array<const uint8_t*, 3> data{};
  std::array<int64_t, 3> row_bytes{};
};

/// red = luma * (y - black) + red * (v - neutral), and so on, where y, u and v are samples of 8 bits, or those of 10
/// bits divided by 4. Colors are 0 to 255 and cut off there.
struct Coefficients {
  double luma, black, red_v, green_u, green_v, blue_u;
  static constexpr double kNeutral = 128;
};
Coefficients coefficients_of(Format format, Matrix matrix);

/// Writes all rows as dense bytes of red, green and blue. Chroma is repeated; each color is rounded once.
void to_rgb(const Frame& frame, uint8_t* to);
/// The same for gray, which is luma in the full range.
void to_gray(const Frame& frame, uint8_t* to);

}  // namespace moka::pictures
