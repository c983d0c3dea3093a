// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/conversions.h"

namespace moka::devices::gpu {

Match match_unpack(const GpuDevice& device, kernel::PlaneOrder order, const ir::Type& planes) {
  const auto e = element_of(device.features(), planes.dtype());
  if (!e || (*e != Element::f32 && *e != Element::f16)) return Match::no(cat("element type ", planes.dtype()));
  const ir::Shape& s = planes.shape();
  const int64_t count = s[s.rank() - 1] * s[s.rank() - 2];
  if (count == 0 || count > INT32_MAX / 16) return Match::no(cat("a picture of ", count, " pixels"));
  KernelChoice c;
  c.kernel = device.kernel_name("unpack");
  c.record = [=, e = *e](Recorder& recorder, const RecordArgs& args) -> Status {
    Use pixels = Use::read(args.in[0]);
    pixels.element = 4;
    const auto n = static_cast<uint64_t>(count);
    return recorder_of(recorder).dispatch(shader_name("pixels", e), {static_cast<uint32_t>(order)},
                                          {pixels, Use::write(args.out[0])}, static_cast<uint32_t>(n),
                                          CommandRecorder::lines(n));
  };
  return Match::yes(std::move(c));
}

}  // namespace moka::devices::gpu
