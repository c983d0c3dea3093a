#pragma once

#include "ir/program.h"

/// Operations without a name in their source. They get the name of their first output, but the text and the
/// specification of the model have none. The map Op::attributes holds an empty `name` for them.
namespace moka::ir {

inline void mark_unnamed(Op& op) { op.attributes.emplace("name", Tensor::text("")); }
inline bool is_unnamed(const Op& op) { return op.attributes.contains("name"); }

}  // namespace moka::ir
