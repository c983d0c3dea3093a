// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/gpu/common/common.h"

namespace moka::devices::gpu {

/// The kernels of one file in this folder. The file x.cpp defines `KernelFamily family_x()`, and the build generates
/// the list of all files. No two families run the same operation. Code that several families need is in
/// devices/gpu/common. Names of kernels are without that of the API: "conv.winograd".
struct KernelFamily {
  std::span<const KernelDef> kernels;
};

/// All families, by name.
std::span<const KernelFamily> kernel_families();

}  // namespace moka::devices::gpu
