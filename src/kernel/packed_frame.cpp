// SPDX-License-Identifier: Apache-2.0
#include "kernel/packed_frame.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "ir/tensor.h"

namespace moka::kernel {

namespace {

/// Planes begin at whole words.
constexpr int64_t whole_words(int64_t bytes) { return (bytes + 3) / 4 * 4; }

int64_t plane_bytes(pictures::Format format, int plane, int64_t width, int64_t height) {
  return whole_words(pictures::row_bytes_of(format, plane, width) * pictures::rows_of(plane, height));
}

}  // namespace

size_t packed_frame_bytes(pictures::Format format, int64_t width, int64_t height) {
  size_t bytes = sizeof(FrameHeader);
  for (int p = 0; p < pictures::planes_of(format); p++)
    bytes += static_cast<size_t>(plane_bytes(format, p, width, height));
  return bytes;
}

void pack_frame(const FramePicture& picture, std::byte* to) {
  const pictures::Frame& f = picture.frame;
  const pictures::Placement& p = picture.placement;
  const pictures::Coefficients c = pictures::coefficients_of(f.format, f.matrix);
  const auto word = [](int64_t n) { return static_cast<int32_t>(n); };
  const auto number = [](double n) { return static_cast<float>(n); };
  const int64_t sample = pictures::bytes_per_sample(f.format), luma = plane_bytes(f.format, 0, f.width, f.height);
  FrameHeader h{};
  h.format = kFrameFormat + static_cast<uint32_t>(f.format);
  h.frame_width = word(f.width);
  h.frame_height = word(f.height);
  h.luma_row = word(pictures::row_bytes_of(f.format, 0, f.width));
  h.chroma_row = word(pictures::row_bytes_of(f.format, 1, f.width));
  h.u_at = word(luma);
  h.v_at = word(luma + (pictures::is_biplanar(f.format) ? sample : plane_bytes(f.format, 1, f.width, f.height)));
  h.width = word(picture.width);
  h.height = word(picture.height);
  h.x = word(p.x);
  h.y = word(p.y);
  h.placed_width = word(p.width);
  h.placed_height = word(p.height);
  h.source_x = number(p.source_x);
  h.source_y = number(p.source_y);
  h.step_x = number(p.source_width / static_cast<double>(p.width));
  h.step_y = number(p.source_height / static_cast<double>(p.height));
  h.luma = number(c.luma);
  h.offset = number(-c.luma * c.black);
  h.red_v = number(c.red_v);
  h.green_u = number(c.green_u);
  h.green_v = number(c.green_v);
  h.blue_u = number(c.blue_u);
  std::memcpy(to, &h, sizeof h);
  to += sizeof h;
  for (int plane = 0; plane < pictures::planes_of(f.format); plane++) {
    const auto i = static_cast<size_t>(plane);
    const auto row = static_cast<size_t>(pictures::row_bytes_of(f.format, plane, f.width));
    const int64_t rows = pictures::rows_of(plane, f.height);
    if (f.row_bytes[i] == static_cast<int64_t>(row))
      std::memcpy(to, f.data[i], row * static_cast<size_t>(rows));
    else
      for (int64_t y = 0; y < rows; y++)
        std::memcpy(to + static_cast<size_t>(y) * row, f.data[i] + y * f.row_bytes[i], row);
    to += plane_bytes(f.format, plane, f.width, f.height);
  }
}

bool is_packed_frame(const std::byte* from) {
  uint32_t format = 0;
  std::memcpy(&format, from, sizeof format);
  return format >= kFrameFormat;
}

FramePicture packed_frame(const std::byte* from) {
  FrameHeader h;
  std::memcpy(&h, from, sizeof h);
  FramePicture out;
  pictures::Frame& f = out.frame;
  f.format = static_cast<pictures::Format>(h.format - kFrameFormat);
  f.width = h.frame_width;
  f.height = h.frame_height;
  const auto* samples = reinterpret_cast<const uint8_t*>(from) + sizeof h;
  f.data = {samples, samples + h.u_at, pictures::is_biplanar(f.format) ? nullptr : samples + h.v_at};
  f.row_bytes = {h.luma_row, h.chroma_row, h.chroma_row};
  for (const pictures::Matrix m : {pictures::Matrix::bt601, pictures::Matrix::bt709, pictures::Matrix::bt2020})
    if (static_cast<float>(pictures::coefficients_of(f.format, m).red_v) == h.red_v) f.matrix = m;
  out.width = h.width;
  out.height = h.height;
  out.placement = {static_cast<double>(h.source_x),
                   static_cast<double>(h.source_y),
                   static_cast<double>(h.step_x) * h.placed_width,
                   static_cast<double>(h.step_y) * h.placed_height,
                   h.x,
                   h.y,
                   h.placed_width,
                   h.placed_height};
  return out;
}

void unpack_frame(const FramePicture& picture, pictures::Fitter& fitter, PlaneOrder order, const ir::TensorView& to) {
  const int64_t n = picture.width * picture.height;
  std::vector<float> room(to.dtype == ir::DType::fp32 ? 0 : static_cast<size_t>(n * fitter.channels()));
  float* floats = to.dtype == ir::DType::fp32 ? to.as<float>() : room.data();
  std::array<float*, 3> planes{floats, floats + n, floats + 2 * n};
  if (order == PlaneOrder::bgr) std::swap(planes[0], planes[2]);
  pictures::fit_planes(fitter, picture.frame, picture.width, picture.height, planes);
  if (to.dtype == ir::DType::fp32) return;
  if (to.dtype == ir::DType::fp16) return float_to_half(floats, to.as<uint16_t>(), room.size());
  for (size_t i = 0; i < room.size(); i++)
    ir::store_f64(to, static_cast<int64_t>(i),
                  static_cast<double>(ir::is_float(to.dtype) ? room[i] : std::nearbyint(room[i])));
}

}  // namespace moka::kernel
