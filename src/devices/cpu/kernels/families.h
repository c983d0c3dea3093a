#pragma once

#include "devices/cpu/kernels/common.h"

namespace moka::devices::cpu {

std::span<const KernelDef> attention_kernels();
std::span<const KernelDef> concat_kernels();  ///< and split
std::span<const KernelDef> conv_kernels();    ///< and average pools
std::span<const KernelDef> depthwise_kernels();
std::span<const KernelDef> elementwise_kernels();
std::span<const KernelDef> byte_kernels();  ///< products and convolutions with integers
std::span<const KernelDef> gather_kernels();
std::span<const KernelDef> gemm_kernels();    ///< linear and matmul by panels
std::span<const KernelDef> groups_kernels();  ///< convolutions with groups that fill no blocks
std::span<const KernelDef> line_kernels();    ///< convolutions along a line
std::span<const KernelDef> lrn_kernels();
std::span<const KernelDef> matmul_kernels();  ///< of operands that are not constant
std::span<const KernelDef> max_pool_kernels();
std::span<const KernelDef> norm_kernels();     ///< and softmax
std::span<const KernelDef> permute_kernels();  ///< transpose, and pixels to channels and back
std::span<const KernelDef> narrow_kernels();   ///< convolutions with few output channels
std::span<const KernelDef> planes_kernels();   ///< convolutions of few channels
std::span<const KernelDef> pointwise_kernels();
std::span<const KernelDef> quantize_kernels();
std::span<const KernelDef> recurrent_kernels();
std::span<const KernelDef> reduce_kernels();
std::span<const KernelDef> sample_kernels();  ///< resizing and padding of images
std::span<const KernelDef> slice_kernels();
std::span<const KernelDef> slice_update_kernels();
std::span<const KernelDef> strassen_kernels();  ///< linear and matmul of many rows
std::span<const KernelDef> stream_kernels();    ///< products with constant weights that are read as stored
std::span<const KernelDef> taps_kernels();
std::span<const KernelDef> transposed_pixels_kernels();
std::span<const KernelDef> transposed_phases_kernels();
std::span<const KernelDef> winograd_kernels();

}  // namespace moka::devices::cpu
