#pragma once

#include "devices/vulkan/kernels/common.h"

namespace moka::devices::vulkan {

std::span<const KernelDef> attention_kernels();
std::span<const KernelDef> concat_kernels();
std::span<const KernelDef> conv_kernels();
std::span<const KernelDef> conv_transpose_kernels();
std::span<const KernelDef> elementwise_kernels();
std::span<const KernelDef> fill_kernels();
std::span<const KernelDef> gather_kernels();
std::span<const KernelDef> host_kernels();
std::span<const KernelDef> matmul_kernels();
std::span<const KernelDef> movement_kernels();
std::span<const KernelDef> norm_kernels();
std::span<const KernelDef> order_kernels();
std::span<const KernelDef> pad_kernels();
std::span<const KernelDef> pool_kernels();
std::span<const KernelDef> quantize_kernels();
std::span<const KernelDef> recurrent_kernels();
std::span<const KernelDef> reduce_kernels();
std::span<const KernelDef> registered_kernels();
std::span<const KernelDef> resize_kernels();
std::span<const KernelDef> sample_kernels();

/// Applies the epilogues that a kernel did not apply itself to `y`, in place.
Status record_epilogues(Recorder& recorder, std::span<const ir::Epilogue> epilogues, const BufferView& y);
/// Matches the conversion of a packed picture to planes.
Match match_unpack(kernel::PlaneOrder order, const ir::Type& planes);
/// Matches a conversion of row-major elements between fp32 and float16, or a copy.
Match match_conversion(ir::DType dtype, const ir::Shape& shape, Layout from, Layout to);

}  // namespace moka::devices::vulkan
