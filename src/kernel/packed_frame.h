// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel.h"
#include "pictures/fitter.h"

/// Pictures of cameras as they are uploaded: a packed picture (kernel/pixels.h) whose format says so, and which a
/// device crops, resizes and converts while it unpacks it.
namespace moka::kernel {

/// A picture of a camera for planes of width x height, and where its part goes in them.
struct FramePicture {
  pictures::Frame frame;
  pictures::Placement placement;
  int64_t width = 0, height = 0;
};

/// The words before the samples of a packed frame. shaders/pixels.comp reads them, too.
struct FrameHeader {
  uint32_t format;                    ///< kFrameFormat + pictures::Format
  int32_t frame_width, frame_height;  ///< of luma
  int32_t luma_row, chroma_row;       ///< bytes from row to row
  int32_t u_at, v_at;                 ///< where chroma begins, in bytes behind luma's begin
  int32_t width, height;              ///< of the planes
  int32_t x, y, placed_width, placed_height;
  float source_x, source_y, step_x, step_y;  ///< the part of the frame, and of it what a pixel of the placement covers
  float luma, offset, red_v, green_u, green_v, blue_u;  ///< red = luma * y + offset + red_v * (v - 128)
  uint32_t unused[9];
};
static_assert(sizeof(FrameHeader) == 128);
inline constexpr uint32_t kFrameFormat = 16;  ///< above those of kernel::PixelFormat

/// Room for a packed frame of this format and size.
size_t packed_frame_bytes(pictures::Format format, int64_t width, int64_t height);
void pack_frame(const FramePicture& picture, std::byte* to);
/// Whether memory that `pack` or `pack_frame` wrote to has a frame.
bool is_packed_frame(const std::byte* from);
/// The picture that `pack_frame` wrote to `from`.
FramePicture packed_frame(const std::byte* from);
/// Writes the planes to `to`, row-major with height and width last. `fitter`: of the picture, for as many channels.
void unpack_frame(const FramePicture& picture, pictures::Fitter& fitter, PlaneOrder order, const ir::TensorView& to);

}  // namespace moka::kernel
