// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel.h"

namespace moka::kernel {

/// Copies tiles [begin, end) of convert_tiles() from `in`, in layout `from`, to `out`, in layout `to`. Both have the
/// same dtype, whose elements are whole bytes, and the same logical shape. Padding channels of `out` become zeros.
void convert_layout(const ir::TensorView& in, Layout from, const ir::TensorView& out, Layout to, int64_t begin,
                    int64_t end);
int64_t convert_tiles(const ir::Shape& shape, Layout from, Layout to);

}  // namespace moka::kernel
