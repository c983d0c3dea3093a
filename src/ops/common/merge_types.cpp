// SPDX-License-Identifier: Apache-2.0
#include "ops/common/merge_types.h"

#include <utility>
#include <vector>

namespace moka::ops {

using ir::Type;

namespace {

std::optional<Type> merge_tensors(const Type& a, const Type& b) {
  if (a.dtype() != b.dtype()) return std::nullopt;
  if (!a.is_ranked() || !b.is_ranked() || a.rank() != b.rank()) return Type::unranked(a.dtype());
  ir::Shape shape = a.shape();
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] != b.shape()[i]) shape[i] = ir::kAnyDim;
  return Type::tensor(a.dtype(), shape);
}

}  // namespace

std::optional<Type> merge_types(const Type& a, const Type& b) {
  if (a.kind() != b.kind() || a.is_none()) return std::nullopt;
  if (a.is_tensor()) return merge_tensors(a, b);
  if (a.elements().size() != b.elements().size()) return std::nullopt;
  std::vector<Type> parts;
  parts.reserve(a.elements().size());
  for (size_t i = 0; i < a.elements().size(); ++i) {
    auto part = merge_types(a.element(i), b.element(i));
    if (!part) return std::nullopt;
    parts.push_back(std::move(*part));
  }
  switch (a.kind()) {
    case Type::Kind::list: return Type::list(std::move(parts[0]), a.length() == b.length() ? a.length() : ir::kAnyDim);
    case Type::Kind::tuple: return Type::tuple(std::move(parts));
    case Type::Kind::dict: return Type::dict(std::move(parts[0]), std::move(parts[1]));
    case Type::Kind::state: return Type::state(std::move(parts[0]));
    default: return std::nullopt;
  }
}

}  // namespace moka::ops
