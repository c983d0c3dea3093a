// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/gpu/common/common.h"

/// What a device does beside the operations of a program.
namespace moka::devices::gpu {

/// Applies the epilogues that a kernel did not apply itself to `y`, in place.
Status record_epilogues(Recorder& recorder, std::span<const ir::Epilogue> epilogues, const BufferView& y);
/// Matches the conversion of a packed picture to planes.
Match match_unpack(const GpuDevice& device, kernel::PlaneOrder order, const ir::Type& planes);
/// Matches a conversion of row-major elements between fp32 and float16, or a copy.
Match match_conversion(const GpuDevice& device, ir::DType dtype, const ir::Shape& shape, Layout from, Layout to);

}  // namespace moka::devices::gpu
