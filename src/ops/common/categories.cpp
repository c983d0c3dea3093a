// SPDX-License-Identifier: Apache-2.0
#include "ops/common/categories.h"

#include <algorithm>
#include <string>

namespace moka::ops {
namespace {

std::string quoted(const TensorView& t, int64_t i) {
  if (t.dtype == DType::string) return cat("'", t.as<std::string>()[i], "'");
  return is_float(t.dtype) ? cat(load_f64(t, i)) : cat(load_i64(t, i));
}

}  // namespace

Error unknown_category(const OpCall& call, std::string_view keys, const TensorView& x, int64_t i) {
  constexpr int64_t kShown = 12;
  const TensorView& known = call.in(keys);
  std::string list;
  for (int64_t k = 0; k < std::min(known.count(), kShown); ++k) list += cat(k > 0 ? ", " : "", quoted(known, k));
  if (known.count() > kShown) list += cat(" and ", known.count() - kShown, " more");
  return fail(ErrorCode::data, "operation '", call.name(), "' (", call.version().def->name,
              "): expected one of the categories ", list, ", got ", quoted(x, i));
}

}  // namespace moka::ops
