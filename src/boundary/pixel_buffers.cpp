// SPDX-License-Identifier: Apache-2.0
#include "boundary/pixel_buffers.h"

#include <algorithm>
#include <cstring>

#include "boundary/errors.h"
#include "moka/feature.h"
#include "pictures/fitter.h"

namespace moka {

static_assert(static_cast<int>(PixelBufferFormat::p010_full) == static_cast<int>(pictures::Format::p010_full));
static_assert(static_cast<int>(YCbCrMatrix::bt2020) == static_cast<int>(pictures::Matrix::bt2020));
static_assert(static_cast<int>(ImageFit::center_crop) == static_cast<int>(pictures::Fit::center_crop));

namespace {

constexpr int64_t kLongestSide = 65536;
constexpr std::string_view kFourLetters[] = {"420v", "420f", "y420", "f420", "x420", "xf20"};

pictures::Format format_of(PixelBufferFormat format) { return static_cast<pictures::Format>(format); }

Status check_sides(int64_t width, int64_t height, std::string_view what) {
  if (width >= 1 && height >= 1 && width <= kLongestSide && height <= kLongestSide) return {};
  return fail(ErrorCode::invalid_argument, what, ": expected sizes of 1 to ", kLongestSide, ", got ", width, " x ",
              height);
}

Status check_format(const PixelBuffer& b) {
  if (static_cast<int>(b.format) >= pictures::kFormats)
    return fail(ErrorCode::invalid_argument, "pixel buffer: expected a format of PixelBufferFormat, got ",
                static_cast<int>(b.format));
  if (b.matrix > YCbCrMatrix::bt2020)
    return fail(ErrorCode::invalid_argument, "pixel buffer: expected a matrix of YCbCrMatrix, got ",
                static_cast<int>(b.matrix));
  if (b.fit > ImageFit::center_crop)
    return fail(ErrorCode::invalid_argument, "pixel buffer: expected a fit of ImageFit, got ", static_cast<int>(b.fit));
  return check_sides(b.width, b.height, cat("pixel buffer (", pictures::name_of(format_of(b.format)), ")"));
}

void raise_if(const Status& status) {
  if (!status.ok()) boundary::raise(status.error());
}

}  // namespace

namespace boundary {

std::string text_of(const PixelBuffer& b) { return cat(to_string(b.format), " ", b.width, " x ", b.height); }

Result<pictures::Frame> frame_of(const PixelBuffer& b) {
  MOKA_TRY(check_format(b));
  pictures::Frame frame{format_of(b.format), static_cast<pictures::Matrix>(b.matrix), b.width, b.height, {}, {}};
  for (int p = 0; p < pictures::planes_of(frame.format); p++) {
    const auto i = static_cast<size_t>(p);
    const PixelPlane& plane = b.planes[i];
    const int64_t least = pictures::row_bytes_of(frame.format, p, b.width);
    const auto where = [&] {
      return cat("pixel buffer (", text_of(b), "): plane ", p, " (", pictures::plane_name(frame.format, p), "): ");
    };
    if (plane.data == nullptr) return fail(ErrorCode::invalid_argument, where(), "expected samples, got none");
    if (plane.row_bytes != 0 && plane.row_bytes < least)
      return fail(ErrorCode::invalid_argument, where(), "expected rows of at least ", least, " bytes, got ",
                  plane.row_bytes);
    frame.data[i] = plane.data.get();
    frame.row_bytes[i] = plane.row_bytes == 0 ? least : plane.row_bytes;
  }
  return frame;
}

Result<pictures::Placement> placement_of(const PixelBuffer& b, int64_t width, int64_t height) {
  MOKA_TRY(check_sides(width, height, "resize"));
  return pictures::place(b.width, b.height, width, height, static_cast<pictures::Fit>(b.fit),
                         {b.region.x, b.region.y, b.region.width, b.region.height});
}

}  // namespace boundary

std::string_view to_string(PixelBufferFormat format) { return pictures::name_of(format_of(format)); }

PixelBufferFormat pixel_buffer_format(std::string_view name) {
  std::string all;
  for (int i = 0; i < pictures::kFormats; i++) {
    const auto format = static_cast<PixelBufferFormat>(i);
    if (name == to_string(format) || name == kFourLetters[i]) return format;
    all += cat(i == 0 ? "" : i + 1 == pictures::kFormats ? " or " : ", ", to_string(format));
  }
  throw Exception(ErrorKind::invalid_argument, cat("pixel format: expected ", all, ", got '", name, "'"));
}

std::string_view to_string(YCbCrMatrix matrix) {
  return matrix == YCbCrMatrix::bt601 ? "bt601" : matrix == YCbCrMatrix::bt709 ? "bt709" : "bt2020";
}

YCbCrMatrix ycbcr_matrix(std::string_view name) {
  for (const YCbCrMatrix matrix : {YCbCrMatrix::bt601, YCbCrMatrix::bt709, YCbCrMatrix::bt2020})
    if (name == to_string(matrix)) return matrix;
  throw Exception(ErrorKind::invalid_argument, cat("matrix: expected bt601, bt709 or bt2020, got '", name, "'"));
}

PixelBuffer::PixelBuffer(int64_t w, int64_t h, PixelBufferFormat f, std::span<const PixelPlane> given)
    : width(w), height(h), format(f) {
  raise_if(check_format(*this));
  const auto wanted = static_cast<size_t>(pictures::planes_of(format_of(f)));
  if (given.size() != wanted)
    throw Exception(ErrorKind::invalid_argument, cat("pixel buffer (", boundary::text_of(*this), "): expected ", wanted,
                                                     " planes, got ", given.size()));
  std::copy(given.begin(), given.end(), planes.begin());
  const Result<pictures::Frame> frame = boundary::frame_of(*this);
  if (!frame.ok()) boundary::raise(frame.error());
  for (size_t p = 0; p < wanted; p++) planes[p].row_bytes = frame->row_bytes[p];
}

PixelBuffer::PixelBuffer(int64_t w, int64_t h, PixelBufferFormat f, std::shared_ptr<const uint8_t> samples,
                         size_t bytes)
    : width(w), height(h), format(f) {
  raise_if(check_format(*this));
  const size_t wanted = contiguous_bytes(w, h, f);
  if (samples == nullptr || bytes != wanted)
    throw Exception(ErrorKind::invalid_argument,
                    cat("pixel buffer (", boundary::text_of(*this), "): expected ", wanted,
                        " bytes of planes without gaps, got ", samples == nullptr ? 0 : bytes));
  const uint8_t* at = samples.get();
  for (int p = 0; p < pictures::planes_of(format_of(f)); p++) {
    const int64_t row = pictures::row_bytes_of(format_of(f), p, w);
    planes[static_cast<size_t>(p)] = {std::shared_ptr<const uint8_t>(samples, at), row};
    at += row * pictures::rows_of(p, h);
  }
}

size_t PixelBuffer::contiguous_bytes(int64_t width, int64_t height, PixelBufferFormat format) {
  raise_if(check_sides(width, height, "pixel buffer"));
  return static_cast<size_t>(pictures::contiguous_bytes(format_of(format), width, height));
}

PixelBuffer copied(const PixelBuffer& buffer) {
  const Result<pictures::Frame> frame = boundary::frame_of(buffer);
  if (!frame.ok()) boundary::raise(frame.error());
  const size_t bytes = PixelBuffer::contiguous_bytes(buffer.width, buffer.height, buffer.format);
  const std::shared_ptr<uint8_t> samples(new uint8_t[bytes], std::default_delete<uint8_t[]>());
  uint8_t* to = samples.get();
  for (int p = 0; p < pictures::planes_of(frame->format); p++) {
    const auto i = static_cast<size_t>(p);
    const auto row = static_cast<size_t>(pictures::row_bytes_of(frame->format, p, buffer.width));
    for (int64_t y = 0; y < pictures::rows_of(p, buffer.height); y++, to += row)
      std::memcpy(to, frame->data[i] + y * frame->row_bytes[i], row);
  }
  PixelBuffer copy(buffer.width, buffer.height, buffer.format, samples, bytes);
  copy.matrix = buffer.matrix;
  copy.fit = buffer.fit;
  copy.region = buffer.region;
  return copy;
}

namespace {

bool is_gray_format(PixelFormat format) {
  return format == PixelFormat::gray8 || format == PixelFormat::gray_float32 || format == PixelFormat::gray_float16;
}

}  // namespace

Image image_of(const PixelBuffer& buffer, PixelFormat format) {
  const Result<pictures::Frame> frame = boundary::frame_of(buffer);
  if (!frame.ok()) boundary::raise(frame.error());
  const bool is_gray = is_gray_format(format);
  Image image(buffer.width, buffer.height, is_gray ? PixelFormat::gray8 : PixelFormat::rgb8);
  (is_gray ? pictures::to_gray : pictures::to_rgb)(*frame, image.pixels.get());
  return converted(image, format);
}

Image fitted(const PixelBuffer& buffer, int64_t width, int64_t height, PixelFormat format) {
  const Result<pictures::Frame> frame = boundary::frame_of(buffer);
  if (!frame.ok()) boundary::raise(frame.error());
  const Result<pictures::Placement> placement = boundary::placement_of(buffer, width, height);
  if (!placement.ok()) boundary::raise(placement.error());
  const bool is_gray = is_gray_format(format);
  pictures::Fitter fitter(buffer.width, buffer.height, *placement, is_gray ? 1 : 3);
  if (is_gray && format != PixelFormat::gray8) {
    Image image(width, height, PixelFormat::gray_float32);
    pictures::fit_planes(fitter, *frame, width, height,
                         {reinterpret_cast<float*>(image.pixels.get()), nullptr, nullptr});
    return converted(image, format);
  }
  Image image(width, height, is_gray ? PixelFormat::gray8 : PixelFormat::rgb8);
  pictures::fit_bytes(fitter, *frame, width, height, image.pixels.get());
  return converted(image, format);
}

}  // namespace moka
