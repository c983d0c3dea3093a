// SPDX-License-Identifier: Apache-2.0
#include "convert.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "io/io_error.h"

namespace moka::cli {
namespace {

constexpr std::pair<DataType, io::ElementType> kTypes[] = {
    {DataType::float16, io::ElementType::float16}, {DataType::float32, io::ElementType::float32},
    {DataType::float64, io::ElementType::float64}, {DataType::int8, io::ElementType::int8},
    {DataType::int16, io::ElementType::int16},     {DataType::int32, io::ElementType::int32},
    {DataType::int64, io::ElementType::int64},     {DataType::uint8, io::ElementType::uint8},
    {DataType::uint16, io::ElementType::uint16},   {DataType::uint32, io::ElementType::uint32},
    {DataType::uint64, io::ElementType::uint64},   {DataType::boolean, io::ElementType::boolean},
};

}  // namespace

MultiArray to_multi_array(const io::Array& array) {
  for (const auto& [ours, theirs] : kTypes) {
    if (theirs != array.type) continue;
    MultiArray out(ours, {array.shape.begin(), array.shape.end()});
    if (!array.bytes.empty()) std::memcpy(out.data(), array.bytes.data(), array.bytes.size());
    return out;
  }
  io::fail("array", "expected numbers, got ", io::element_name(array.type));
}

io::Array to_array(const MultiArray& array) {
  const MultiArray dense = array.is_contiguous() ? array : array.converted(array.type());
  io::Array out;
  for (const auto& [ours, theirs] : kTypes)
    if (ours == array.type()) out.type = theirs;
  out.shape.assign(array.shape().begin(), array.shape().end());
  out.bytes.resize(static_cast<size_t>(array.count()) * size_of(array.type()));
  if (!out.bytes.empty()) std::memcpy(out.bytes.data(), dense.data(), out.bytes.size());
  return out;
}

Image to_image(const io::Picture& picture) {
  const io::Picture plain = picture.channels == 4 ? io::with_channels(picture, 3) : picture;
  Image image(static_cast<int64_t>(plain.width), static_cast<int64_t>(plain.height),
              plain.channels == 1 ? PixelFormat::gray8 : PixelFormat::rgb8);
  const size_t row = plain.width * plain.channels;
  for (size_t y = 0; y < plain.height; ++y)
    std::memcpy(image.pixels.get() + y * static_cast<size_t>(image.row_bytes), plain.at(0, y), row);
  return image;
}

io::Picture to_picture(const Image& image) {
  if (image.format == PixelFormat::gray_float32) io::fail("image", "expected 8 bits a channel, got float32");
  const size_t channels = bytes_per_pixel(image.format);
  auto picture = io::Picture::blank(static_cast<size_t>(image.width), static_cast<size_t>(image.height), channels);
  bool opaque = channels == 4;
  for (size_t y = 0; y < picture.height; ++y) {
    uint8_t* to = picture.at(0, y);
    std::memcpy(to, image.pixels.get() + y * static_cast<size_t>(image.row_bytes), picture.width * channels);
    if (channels != 4) continue;
    for (size_t x = 0; x < picture.width; ++x, to += 4) {
      if (image.format == PixelFormat::bgra8) std::swap(to[0], to[2]);
      opaque &= to[3] == 255;
    }
  }
  return opaque ? io::with_channels(picture, 3) : picture;
}

io::Array to_float_array(const Image& image) {
  io::Array out{
      io::ElementType::float32, {static_cast<size_t>(image.height), static_cast<size_t>(image.width)}, {}, {}};
  const size_t row = out.shape[1] * sizeof(float);
  out.bytes.resize(out.shape[0] * row);
  for (size_t y = 0; y < out.shape[0]; ++y)
    std::memcpy(out.bytes.data() + y * row, image.pixels.get() + y * static_cast<size_t>(image.row_bytes), row);
  return out;
}

double shortest(double value, DataType type) {
  if (type != DataType::float32 && type != DataType::float16) return value;
  if (!std::isfinite(value)) return value;
  char text[48];
  char* end = text;
  if (type == DataType::float32) {
    end = std::to_chars(text, text + sizeof text, static_cast<float>(value)).ptr;
  } else {
    // Adjacent float16 numbers have a relative distance of at least 2^-10, so five digits distinguish them.
    end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 5).ptr;
  }
  double out = value;
  std::from_chars(text, end, out);
  return out;
}

}  // namespace moka::cli
