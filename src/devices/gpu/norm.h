// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "base/error.h"
#include "devices/gpu/use.h"

namespace moka::devices::gpu {

/// Multiplies and shifts each channel of a value, as a batch norm with known statistics does. A dispatch that writes
/// the value can do so itself instead (shaders/norms.glsl).
struct Norm {
  Use scales;  ///< a factor and an addend for each channel, float32
  Use from, out;
  int64_t channels = 0, inner = 0;  ///< `inner`: neighboring elements of a channel
};

/// A dispatch that can apply a norm to its result.
struct Normed {
  int64_t channels = 0, inner = 0;  ///< of its result, as in Norm
  /// Records the dispatch again, so that it applies the norm and writes what the norm would write.
  std::function<Status(kernel::Recorder&, const Norm&)> record;
};

}  // namespace moka::devices::gpu
