#pragma once

#include "kernel/kernel.h"

namespace moka::kernel {

/// Copies `in` (in layout `from`) to `out` (in layout `to`): same dtype and logical shape, elements of whole bytes.
/// Padding channels of a blocked layout are written as zeros. Tiles: [begin, end) of `convert_tiles`.
void convert_layout(const ir::TensorView& in, Layout from, const ir::TensorView& out, Layout to, int64_t begin,
                    int64_t end);
int64_t convert_tiles(const ir::Shape& shape, Layout from, Layout to);

}  // namespace moka::kernel
