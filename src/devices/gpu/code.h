// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <vector>

namespace moka::devices::gpu {

constexpr int kMostBindings = 8;             ///< buffers of a dispatch
constexpr size_t kMostParameterBytes = 128;  ///< of a dispatch

/// What runs in a dispatch, in whatever form a backend has it: a variant of a shader, a function of a module.
struct Code {
  std::string_view name;  ///< "binary_f32"
  int bindings;
  /// Parameters begin with the first element of each binding, one uint each. Then bindings may start where the device
  /// can bind, before the value that is meant.
  bool has_starts = true;
};

/// Code and the values of its specialization constants, which are numbered from 0.
struct Specialized {
  const Code* code = nullptr;
  std::vector<uint32_t> constants;
  auto operator<=>(const Specialized&) const = default;
};

}  // namespace moka::devices::gpu
