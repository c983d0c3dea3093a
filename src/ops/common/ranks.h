// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string_view>

#include "ir/op_def.h"

/// Small helpers of inference functions.
namespace moka::ops {

/// Whether one of these parameters is present and has an unknown rank.
inline bool any_unranked(const ir::OpCall& call, std::initializer_list<std::string_view> params) {
  for (std::string_view p : params) {
    for (const ir::Arg& a : call.args(p)) {
      if (!a.type->is_ranked()) return true;
    }
  }
  return false;
}

/// Whether two sizes may be equal: they are equal, or one of them is unknown.
inline bool may_equal(int64_t a, int64_t b) { return a < 0 || b < 0 || a == b; }

/// Of two equal sizes, the more specific one.
inline int64_t known_of(int64_t a, int64_t b) { return a >= 0 ? a : b; }

}  // namespace moka::ops
