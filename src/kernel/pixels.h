// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel.h"

/// Converts between pictures of callers and planes of tensors.
namespace moka::kernel {

/// In the order of moka::PixelFormat.
enum class PixelFormat : uint8_t { gray8, rgb8, rgba8, bgra8, gray_float32, gray_float16 };

/// Rows from top to bottom in host memory.
struct Pixels {
  PixelFormat format = PixelFormat::rgba8;
  int64_t width = 0, height = 0, row_bytes = 0;
  const uint8_t* data = nullptr;
};

size_t bytes_per_pixel(PixelFormat format);
bool is_gray(PixelFormat format);
/// The type of a gray picture's numbers; none: its pixels are not one number each.
ir::DType element_of(PixelFormat format);
/// The plane that the pixels already are, if they are in memory as a tensor of this type; else null.
const void* plane_of(const Pixels& pixels, PlaneOrder order, ir::DType dtype);
/// Writes the planes to `to`, row-major with height and width last.
void unpack(const Pixels& pixels, PlaneOrder order, const ir::TensorView& to);

/// A packed picture is a header, whose first word is the format, and dense rows.
inline constexpr size_t kPixelHeader = 16;
/// Room for a picture with these planes in any format.
size_t packed_pixels(const ir::Shape& planes);
void pack(const Pixels& pixels, std::byte* to);
/// The picture that `pack` wrote to `from`.
Pixels packed(const std::byte* from, const ir::Shape& planes);

}  // namespace moka::kernel
