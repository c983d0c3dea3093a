// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/common/packed.h"

namespace moka::ops {

inline constexpr DTypes kBlockwiseData =
    any_of(DType::int4, DType::uint4, DType::int8, DType::uint8, DType::fp16, DType::fp32);

/// Checks `scale` and `offset` of the blockwise operations against data of this shape and type.
Status check_blockwise(const OpCall& call, const Shape& data, DType type);

}  // namespace moka::ops
