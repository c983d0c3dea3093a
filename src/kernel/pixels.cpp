// SPDX-License-Identifier: Apache-2.0
#include "kernel/pixels.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "ir/tensor.h"

namespace moka::kernel {

namespace {

struct Rgb {
  float r, g, b;
};

Rgb read_pixel(const uint8_t* p, PixelFormat format) {
  switch (format) {
    case PixelFormat::gray8: return {static_cast<float>(p[0]), static_cast<float>(p[0]), static_cast<float>(p[0])};
    case PixelFormat::rgb8:
    case PixelFormat::rgba8: return {static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2])};
    case PixelFormat::bgra8: return {static_cast<float>(p[2]), static_cast<float>(p[1]), static_cast<float>(p[0])};
    case PixelFormat::gray_float32: {
      float v;
      std::memcpy(&v, p, sizeof v);
      return {v, v, v};
    }
    case PixelFormat::gray_float16: {
      uint16_t bits;
      std::memcpy(&bits, p, sizeof bits);
      const float v = half::to_float(bits);
      return {v, v, v};
    }
  }
  return {};
}

/// ITU-R BT.601 luma, the customary grayscale conversion of 8-bit pictures.
float luma(Rgb c) { return 0.299f * c.r + 0.587f * c.g + 0.114f * c.b; }

template <class Store>
void write_planes(const Pixels& image, PlaneOrder order, const Store& store) {
  const int64_t count = image.width * image.height;
  const size_t step = bytes_per_pixel(image.format);
  const bool bgr = order == PlaneOrder::bgr;
  for (int64_t y = 0; y < image.height; y++) {
    const uint8_t* p = image.data + y * image.row_bytes;
    for (int64_t x = 0; x < image.width; x++, p += step) {
      const Rgb c = read_pixel(p, image.format);
      const int64_t i = y * image.width + x;
      if (order == PlaneOrder::gray) {
        store(i, is_gray(image.format) ? c.r : std::round(luma(c)));
      } else {
        store(i, bgr ? c.b : c.r);
        store(i + count, c.g);
        store(i + 2 * count, bgr ? c.r : c.b);
      }
    }
  }
}

}  // namespace

size_t bytes_per_pixel(PixelFormat format) {
  switch (format) {
    case PixelFormat::gray8: return 1;
    case PixelFormat::gray_float16: return 2;
    case PixelFormat::rgb8: return 3;
    case PixelFormat::rgba8:
    case PixelFormat::bgra8:
    case PixelFormat::gray_float32: return 4;
  }
  return 0;
}

bool is_gray(PixelFormat format) {
  return format == PixelFormat::gray8 || format == PixelFormat::gray_float32 || format == PixelFormat::gray_float16;
}

ir::DType element_of(PixelFormat format) {
  switch (format) {
    case PixelFormat::gray8: return ir::DType::uint8;
    case PixelFormat::gray_float32: return ir::DType::fp32;
    case PixelFormat::gray_float16: return ir::DType::fp16;
    case PixelFormat::rgb8:
    case PixelFormat::rgba8:
    case PixelFormat::bgra8: break;
  }
  return ir::DType::none;
}

const void* plane_of(const Pixels& pixels, PlaneOrder order, ir::DType dtype) {
  const size_t size = bytes_per_pixel(pixels.format);
  const bool is_plane = order == PlaneOrder::gray && element_of(pixels.format) == dtype &&
                        pixels.row_bytes == pixels.width * static_cast<int64_t>(size) &&
                        reinterpret_cast<uintptr_t>(pixels.data) % size == 0;
  return is_plane ? pixels.data : nullptr;
}

void unpack(const Pixels& pixels, PlaneOrder order, const ir::TensorView& to) {
  if (order == PlaneOrder::gray && element_of(pixels.format) == to.dtype) {
    const size_t row = static_cast<size_t>(pixels.width) * bytes_per_pixel(pixels.format);
    for (int64_t y = 0; y < pixels.height; y++)
      std::memcpy(to.as<std::byte>() + static_cast<size_t>(y) * row, pixels.data + y * pixels.row_bytes, row);
    return;
  }
  if (order == PlaneOrder::gray && pixels.format == PixelFormat::gray_float16 && to.dtype == ir::DType::fp32) {
    std::vector<uint16_t> row(static_cast<size_t>(pixels.width));  // rows may begin at any byte
    for (int64_t y = 0; y < pixels.height; y++) {
      std::memcpy(row.data(), pixels.data + y * pixels.row_bytes, row.size() * sizeof(uint16_t));
      half_to_float(row.data(), to.as<float>() + y * pixels.width, row.size());
    }
    return;
  }
  if (to.dtype == ir::DType::fp32)
    write_planes(pixels, order, [p = to.as<float>()](int64_t i, float v) { p[i] = v; });
  else
    write_planes(pixels, order, [&to](int64_t i, float v) { ir::store_f64(to, i, static_cast<double>(v)); });
}

size_t packed_pixels(const ir::Shape& planes) {
  return kPixelHeader + 4 * static_cast<size_t>(planes[planes.rank() - 1] * planes[planes.rank() - 2]);
}

void pack(const Pixels& pixels, std::byte* to) {
  const auto format = static_cast<uint32_t>(pixels.format);
  std::memset(to, 0, kPixelHeader);
  std::memcpy(to, &format, sizeof format);
  to += kPixelHeader;
  const size_t row = static_cast<size_t>(pixels.width) * bytes_per_pixel(pixels.format);
  for (int64_t y = 0; y < pixels.height; y++, to += row) std::memcpy(to, pixels.data + y * pixels.row_bytes, row);
}

Pixels packed(const std::byte* from, const ir::Shape& planes) {
  uint32_t format = 0;
  std::memcpy(&format, from, sizeof format);
  Pixels p;
  p.format = static_cast<PixelFormat>(format);
  p.width = planes[planes.rank() - 1];
  p.height = planes[planes.rank() - 2];
  p.row_bytes = p.width * static_cast<int64_t>(bytes_per_pixel(p.format));
  p.data = reinterpret_cast<const uint8_t*>(from) + kPixelHeader;
  return p;
}

}  // namespace moka::kernel
