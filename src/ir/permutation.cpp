// SPDX-License-Identifier: Apache-2.0
#include "ir/permutation.h"

#include <algorithm>

namespace moka::ir {

std::optional<Permutation> permutation_of(const Op& transpose) {
  const Value* perm = transpose.input("perm");
  if (perm == nullptr || perm->constant() == nullptr) return std::nullopt;
  const TensorView axes = perm->constant()->tensor.view();
  const int64_t rank = axes.count();
  Permutation out;
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i) {
    int64_t axis = load_i64(axes, i);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || seen[static_cast<size_t>(axis)]) return std::nullopt;
    seen[static_cast<size_t>(axis)] = true;
    out.push_back(axis);
  }
  return out;
}

std::optional<Permutation> composed(const Permutation& first, const Permutation& second) {
  if (first.size() != second.size()) return std::nullopt;
  Permutation out;
  for (int64_t axis : second) out.push_back(first[static_cast<size_t>(axis)]);
  return out;
}

bool is_identity(const Permutation& permutation) { return std::is_sorted(permutation.begin(), permutation.end()); }

bool undoes(const Permutation& first, const Permutation& second) {
  const std::optional<Permutation> both = composed(first, second);
  return both && is_identity(*both);
}

}  // namespace moka::ir
