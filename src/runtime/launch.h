// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel.h"

namespace moka::runtime {

/// Runs a kernel as a step of a plan does: its tiles over `threads`, then the epilogues that it leaves. Allocates
/// nothing. `whole`: of all tiles. `in_few_parts`: for a kernel that is not prepared, and packs weights for each part.
Status launch(const kernel::KernelChoice& choice, const kernel::KernelArgs& whole, int threads,
              std::span<const ir::Epilogue> epilogue, bool in_few_parts = false);
/// Converts a value to another layout, over `threads`.
void launch_conversion(const ir::TensorView& in, kernel::Layout from, const ir::TensorView& out, kernel::Layout to,
                       int threads);

}  // namespace moka::runtime
