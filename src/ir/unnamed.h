// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"

/// Operations without a name in their source. In Moka they have the name of their first output, but the written text or
/// specification must have no name. To mark them, Op::attributes holds an empty `name`.
namespace moka::ir {

inline void mark_unnamed(Op& op) { op.attributes.emplace("name", Tensor::text("")); }
inline bool is_unnamed(const Op& op) { return op.attributes.contains("name"); }

}  // namespace moka::ir
