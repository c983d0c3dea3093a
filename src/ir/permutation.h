// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/program.h"

/// Permutations of axes. Axis i of the result of a `transpose` is axis permutation[i] of its operand.
namespace moka::ir {

using Permutation = std::vector<int64_t>;

/// The permutation of a `transpose`, with axes counted from the front. nullopt: it is not constant, or not valid.
std::optional<Permutation> permutation_of(const Op& transpose);
/// The permutation that applies `first`, then `second`. nullopt: their ranks differ.
std::optional<Permutation> composed(const Permutation& first, const Permutation& second);
/// Whether no axis moves.
bool is_identity(const Permutation& permutation);
/// Whether `second` is the inverse of `first`.
bool undoes(const Permutation& first, const Permutation& second);

}  // namespace moka::ir
