// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind_frame.h"

#include <cmath>

#include "base/half.h"
#include "kernel/pixels.h"
#include "trace/data_copy.h"

namespace moka::runtime {

namespace {

struct PlaneSize {
  int64_t width, height, channels;
  int64_t count() const { return width * height; }
};

PlaneSize plane_size(const FittedFrame& value, const ir::Shape& shape) {
  return {shape[shape.rank() - 1], shape[shape.rank() - 2], value.planes == kernel::PlaneOrder::gray ? 1 : 3};
}

pictures::Fitter& fitter_for(const FittedFrame& value, const PlaneSize& size, std::unique_ptr<pictures::Fitter>& kept) {
  const pictures::Frame& f = value.frame;
  const auto channels = static_cast<int>(size.channels);
  if (kept == nullptr || !kept->is_for(f.width, f.height, value.placement, channels))
    kept = std::make_unique<pictures::Fitter>(f.width, f.height, value.placement, channels);
  return *kept;
}

void fit_floats(const FittedFrame& value, const PlaneSize& size, pictures::Fitter& fitter, float* to) {
  const int64_t n = size.count();
  std::array<float*, 3> planes{to, to + n, to + 2 * n};
  if (value.planes == kernel::PlaneOrder::bgr) std::swap(planes[0], planes[2]);
  pictures::fit_planes(fitter, value.frame, size.width, size.height, planes);
}

/// Numbers of other types become floats first.
void fit_numbers(const FittedFrame& value, const PlaneSize& size, pictures::Fitter& fitter, const ir::TensorView& to) {
  std::vector<float> floats(static_cast<size_t>(to.count()));
  fit_floats(value, size, fitter, floats.data());
  if (to.dtype == ir::DType::fp16)
    float_to_half(floats.data(), to.as<uint16_t>(), floats.size());
  else
    for (int64_t k = 0; k < to.count(); k++)
      ir::store_f64(to, k, static_cast<double>(ir::is_float(to.dtype) ? floats[k] : std::nearbyint(floats[k])));
}

/// For a device that unpacks pixels, and from the same pixels for the host where it reads planes, too.
Status bind_pixels(const FittedFrame& value, const PlaneSize& size, pictures::Fitter& fitter, const ir::Type& type,
                   size_t i, Session& s) {
  const bool takes_planes = s.frame->takes_planes(i);
  const auto planes = takes_planes ? static_cast<int64_t>(MOKA_TRY(ir::storage_bytes(type.dtype(), type.shape()))) : 0;
  const auto all = ir::Type::tensor(ir::DType::uint8, ir::Shape{planes + size.count() * size.channels});
  std::byte* memory = MOKA_TRY(s.staging_for(i, all));
  auto* pixels = reinterpret_cast<uint8_t*>(memory + planes);
  pictures::fit_bytes(fitter, value.frame, size.width, size.height, pixels);
  const kernel::Pixels picture{size.channels == 1 ? kernel::PixelFormat::gray8 : kernel::PixelFormat::rgb8, size.width,
                               size.height, size.width * size.channels, pixels};
  s.frame->set_pixels(i, picture);
  if (!takes_planes) return {};
  kernel::unpack(picture, value.planes, {type.dtype(), type.shape(), memory});
  s.frame->set_input(i, memory);
  return {};
}

}  // namespace

Status bind_frame(const FittedFrame& value, const ir::Type& type, std::string_view name, size_t i, Session& s) {
  const trace::DataCopy copy;
  const PlaneSize size = plane_size(value, type.shape());
  pictures::Fitter& fitter = fitter_for(value, size, s.fitters[i]);
  const auto record = [&](std::string_view to, ir::DType dtype) {
    if (!copy.is_recorded()) return;
    const pictures::Frame& f = value.frame;
    if (const auto bytes = ir::storage_bytes(dtype, type.shape()); bytes.ok())
      copy.record(name, "convert", *bytes,
                  cat(pictures::name_of(f.format), " ", f.width, " x ", f.height, " to ", to, " ", size.width, " x ",
                      size.height));
  };
  if (s.frame->takes_pixels(i)) {
    MOKA_TRY(bind_pixels(value, size, fitter, type, i, s));
    record("pixels", ir::DType::uint8);
    return {};
  }
  const ir::TensorView to{type.dtype(), type.shape(), MOKA_TRY(s.staging_for(i, type))};
  if (to.dtype == ir::DType::fp32)
    fit_floats(value, size, fitter, to.as<float>());
  else
    fit_numbers(value, size, fitter, to);
  s.frame->set_input(i, to.data);
  record(cat("planes of ", to.dtype), to.dtype);
  return {};
}

}  // namespace moka::runtime
