#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/program.h"

/// Orders of axes, as operations `transpose` have them: axis i of the result is axis permutation[i] of the operand.
namespace moka::ir {

using Permutation = std::vector<int64_t>;

/// The known order of a `transpose`, counted from the front. nullopt: it is computed, or no order of axes.
std::optional<Permutation> permutation_of(const Op& transpose);
/// What `first` and then `second` do together. nullopt: their ranks differ.
std::optional<Permutation> composed(const Permutation& first, const Permutation& second);
/// Whether all axes stay where they are.
bool is_identity(const Permutation& permutation);
/// Whether `second` moves all axes back.
bool undoes(const Permutation& first, const Permutation& second);

}  // namespace moka::ir
