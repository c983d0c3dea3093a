// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind_frame.h"

#include <bit>

#include "kernel/pixels.h"
#include "trace/data_copy.h"

namespace moka::runtime {

namespace {

pictures::Fitter& fitter_for(const FittedFrame& value, std::unique_ptr<pictures::Fitter>& kept) {
  const kernel::FramePicture& p = value.picture;
  if (kept == nullptr || !kept->is_for(p.frame.width, p.frame.height, p.placement, value.channels()))
    kept = std::make_unique<pictures::Fitter>(p.frame.width, p.frame.height, p.placement, value.channels());
  return *kept;
}

size_t packed_bytes(const FittedFrame& value) {
  const pictures::Frame& f = value.picture.frame;
  return kernel::packed_frame_bytes(f.format, f.width, f.height);
}

/// Pixels for a device that unpacks them, and where the host reads planes, too, those of the same pixels.
Status bind_pixels(const FittedFrame& value, const ir::Type& type, size_t i, Session& s) {
  const kernel::FramePicture& p = value.picture;
  const bool takes_planes = s.frame->takes_planes(i);
  const auto planes = takes_planes ? static_cast<int64_t>(MOKA_TRY(ir::storage_bytes(type.dtype(), type.shape()))) : 0;
  const auto all = ir::Type::tensor(ir::DType::uint8, ir::Shape{planes + p.width * p.height * value.channels()});
  std::byte* memory = MOKA_TRY(s.staging_for(i, all));
  auto* bytes = reinterpret_cast<uint8_t*>(memory + planes);
  pictures::fit_bytes(fitter_for(value, s.fitters[i]), p.frame, p.width, p.height, bytes);
  const kernel::Pixels pixels{value.channels() == 1 ? kernel::PixelFormat::gray8 : kernel::PixelFormat::rgb8, p.width,
                              p.height, p.width * value.channels(), bytes};
  s.frame->set_pixels(i, pixels);
  if (!takes_planes) return {};
  kernel::unpack(pixels, value.planes, {type.dtype(), type.shape(), memory});
  s.frame->set_input(i, memory);
  return {};
}

}  // namespace

size_t frame_room_for(const FittedFrame& value) {
  // The host copies each byte of a frame that a device unpacks. If the result is much smaller, the host had better read
  // the frame itself.
  constexpr int64_t kMostBytesForOne = 4;
  const kernel::FramePicture& p = value.picture;
  const size_t bytes = packed_bytes(value);
  constexpr size_t kMostBytes = size_t{64} << 20;  // every driver binds as many at once
  if (bytes > kMostBytes || static_cast<int64_t>(bytes) > kMostBytesForOne * p.width * p.height * value.channels())
    return 0;
  // Few different sizes, as each is another plan.
  const size_t step = std::max<size_t>(std::bit_floor(bytes) / 4, 4096);
  return (bytes + step - 1) / step * step;
}

Status bind_frame(const FittedFrame& value, const ir::Type& type, std::string_view name, size_t i, Session& s) {
  const trace::DataCopy copy;
  const kernel::FramePicture& p = value.picture;
  const auto record = [&](std::string_view to, ir::DType dtype) {
    if (!copy.is_recorded()) return;
    if (const auto bytes = ir::storage_bytes(dtype, type.shape()); bytes.ok())
      copy.record(name, "convert", *bytes,
                  cat(pictures::name_of(p.frame.format), " ", p.frame.width, " x ", p.frame.height, " to ", to, " ",
                      p.width, " x ", p.height));
  };
  if (s.frame->takes_pixels(i)) {
    if (!s.frame->takes_planes(i) && packed_bytes(value) <= s.frame->frame_room(i)) {
      s.frame->set_frame(i, p);
      return {};
    }
    MOKA_TRY(bind_pixels(value, type, i, s));
    record("pixels", ir::DType::uint8);
    return {};
  }
  const ir::TensorView to{type.dtype(), type.shape(), MOKA_TRY(s.staging_for(i, type))};
  kernel::unpack_frame(p, fitter_for(value, s.fitters[i]), value.planes, to);
  s.frame->set_input(i, to.data);
  record(cat("planes of ", to.dtype), to.dtype);
  return {};
}

}  // namespace moka::runtime
