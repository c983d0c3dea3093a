// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "devices/cpu/common/common.h"

/// Weights that the file stores as float16, and that are packed as float16.
namespace moka::devices::cpu {

/// Whether the file stores a constant input as float16, so that float16 holds each value exactly, and this processor
/// converts float16.
bool stores_halves(const MatchCall& m, int arg);

/// Writes elements [first, first + n) of the weights to `to`.
using LoadValues = std::function<void(int64_t first, int64_t n, float* to)>;

/// Packs such an input. `fill` reads the weights with `load`, so that they never exist as floats at once. `key` is as
/// in PrepareContext::pack.
Result<std::shared_ptr<const std::byte>> pack_from_halves(
    kernel::PrepareContext& context, const kernel::StoredConstant& stored, int arg, std::string_view key, size_t bytes,
    const std::function<void(const LoadValues& load, std::byte* to)>& fill);

}  // namespace moka::devices::cpu
