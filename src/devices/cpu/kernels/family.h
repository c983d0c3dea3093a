// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/cpu/common/common.h"

namespace moka::devices::cpu {

/// The kernels of one file in this folder. The file x.cpp defines `KernelFamily family_x()`, and the build generates
/// the list of all files (src/CMakeLists.txt). Code that several families need is in devices/cpu/common.
struct KernelFamily {
  /// Families are asked in ascending order. The order matters only between families that can run the same operation:
  /// the faster one comes first.
  int order;
  std::span<const KernelDef> kernels;
};

/// All families, by name.
std::span<const KernelFamily> kernel_families();

}  // namespace moka::devices::cpu
