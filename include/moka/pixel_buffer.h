// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "moka/error.h"

namespace moka {

/// How an image fills a size. The names are those of Vision's VNImageCropAndScaleOption.
enum class ImageFit : uint8_t {
  scale_fill,   ///< stretched to the whole size
  scale_fit,    ///< the whole image, aspect ratio kept, centered on black
  center_crop,  ///< fills the size, aspect ratio kept, edges cut off evenly
};

/// The part of an image that is used, as VNRequest's regionOfInterest: in fractions of the image's width and height.
/// Unlike Vision's, (x, y) is the top left corner, measured from the top left corner of the image.
struct ImageRegion {
  double x = 0, y = 0, width = 1, height = 1;
  bool operator==(const ImageRegion&) const = default;
};

/// How cameras and video decoders store pictures: luma of every pixel, chroma of every second column and row (4:2:0).
/// Video range has luma 16 to 235 and chroma 16 to 240, or four times that with 10 bits; full range has all values.
enum class PixelBufferFormat : uint8_t {
  nv12,       ///< luma; Cb and Cr in turns. Core Video's 420YpCbCr8BiPlanarVideoRange, "420v"
  nv12_full,  ///< the same in full range: 420YpCbCr8BiPlanarFullRange, "420f"
  i420,       ///< luma; Cb; Cr: 420YpCbCr8Planar, "y420"
  i420_full,  ///< 420YpCbCr8PlanarFullRange, "f420"
  /// As nv12, but with little-endian words whose high 10 bits are the sample; the low 6 bits are ignored:
  /// 420YpCbCr10BiPlanarVideoRange, "x420"
  p010,
  p010_full,  ///< 420YpCbCr10BiPlanarFullRange, "xf20"
};
MOKA_EXPORT std::string_view to_string(PixelBufferFormat format);  ///< "nv12", "nv12_full", ...
/// The format of a name that to_string gives, or of one of Core Video's four letters. Throws invalid_argument.
MOKA_EXPORT PixelBufferFormat pixel_buffer_format(std::string_view name);

/// The luma that colors are made of, as Core Video's attachment kCVImageBufferYCbCrMatrixKey says: ITU_R_601_4,
/// ITU_R_709_2 or ITU_R_2020.
enum class YCbCrMatrix : uint8_t { bt601, bt709, bt2020 };
MOKA_EXPORT std::string_view to_string(YCbCrMatrix matrix);  ///< "bt601", "bt709", "bt2020"
/// The matrix of a name that to_string gives. Throws invalid_argument.
MOKA_EXPORT YCbCrMatrix ycbcr_matrix(std::string_view name);

/// Rows from top to bottom.
struct PixelPlane {
  std::shared_ptr<const uint8_t> data;
  int64_t row_bytes = 0;  ///< from row to row; 0: rows have no gaps

  PixelPlane() = default;
  PixelPlane(std::shared_ptr<const uint8_t> samples, int64_t row) : data(std::move(samples)), row_bytes(row) {}
  /// Borrowed: what it points to must outlive every prediction that uses it.
  PixelPlane(const void* samples, int64_t row)
      : data(std::shared_ptr<const uint8_t>(), static_cast<const uint8_t*>(samples)), row_bytes(row) {}
};

/// A picture of a camera as the value of an image input, in any size. A prediction crops it, brings it to the size that
/// the model takes and converts it to the model's colors, all in one pass: as if each pixel became a color, chroma
/// being repeated, and fit_image resampled that, but without rounding in between. Gray is luma in the full range.
/// Copies share the samples.
struct MOKA_EXPORT PixelBuffer {
  int64_t width = 0, height = 0;
  PixelBufferFormat format = PixelBufferFormat::nv12;
  YCbCrMatrix matrix = YCbCrMatrix::bt601;
  std::array<PixelPlane, 3> planes;
  ImageFit fit = ImageFit::scale_fill;  ///< how it fills the size that the model takes
  ImageRegion region;                   ///< the part that is used

  PixelBuffer() = default;
  /// Throws invalid_argument: sizes not in 1..65536; another number of planes than the format has; a plane without
  /// samples or with rows that are too short. Chroma has half of the columns and rows, rounded up.
  PixelBuffer(int64_t width, int64_t height, PixelBufferFormat format, std::span<const PixelPlane> planes);
  /// Planes one after another without gaps, as in files of raw video and in OpenCV's arrays of height * 3 / 2 rows.
  /// Throws invalid_argument also when `bytes` is not contiguous_bytes.
  PixelBuffer(int64_t width, int64_t height, PixelBufferFormat format, std::shared_ptr<const uint8_t> samples,
              size_t bytes);

  /// The bytes of all planes without gaps. Throws invalid_argument for sizes not in 1..65536.
  static size_t contiguous_bytes(int64_t width, int64_t height, PixelBufferFormat format);
};

/// A copy that owns its samples, in planes one after another without gaps. Throws invalid_argument (as the
/// constructors).
MOKA_EXPORT PixelBuffer copied(const PixelBuffer& buffer);

}  // namespace moka
