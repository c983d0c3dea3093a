// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"

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

/// What code says of itself, for people.
struct CodeFacts {
  struct Number {
    std::string name;
    ir::DType type = ir::DType::none;  ///< of 4 bytes, or boolean
    uint32_t at = 0;                   ///< of a constant its number, of a parameter its offset in bytes
    uint32_t count = 1;                ///< of an array
    uint32_t step = 4;                 ///< bytes from one element to the next
    uint32_t value = 0;                ///< of a constant that is not given
  };
  struct Binding {
    std::string name;
    ir::DType element = ir::DType::none;
  };
  /// Invocations of a workgroup, or the constants that say it.
  std::array<uint32_t, 3> group{};
  std::array<int, 3> group_constants{-1, -1, -1};
  std::vector<Number> constants, parameters;
  std::vector<Binding> bindings;
};

}  // namespace moka::devices::gpu
