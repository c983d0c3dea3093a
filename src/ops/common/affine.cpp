// SPDX-License-Identifier: Apache-2.0
#include "ops/common/affine.h"

#include <algorithm>

namespace moka::ops {

Status check_affine(const OpCall& call, const Type& x) {
  if (!x.is_ranked()) return {};
  if (call.has("axis")) MOKA_TRY(axis_of(call, "axis", std::max(x.rank(), 1)));
  for (std::string_view p : {"scale", "zero_point"}) {
    if (!call.has(p)) continue;
    const Type& t = call.type(p);
    if (!t.is_ranked() || t.rank() > 1) return call.error(p, "a scalar or a vector", cat(t));
    if (t.rank() == 0) continue;
    if (!call.has("axis")) return call.error("axis", cat("an axis for the vector ", p), "nothing");
    const int axis = MOKA_TRY(axis_of(call, "axis", x.rank()));
    if (x.shape()[axis] >= 0 && t.shape()[0] != x.shape()[axis]) {
      return call.error(p, cat(x.shape()[axis], " entries, the size of axis ", axis), cat(t.shape()[0]));
    }
  }
  return {};
}

Result<Affine> affine_of(const OpCall& call, const Shape& x) {
  const TensorView& scale = call.in("scale");
  const TensorView* zero = call.has("zero_point") ? &call.in("zero_point") : nullptr;
  Affine a;
  a.groups = x;
  for (int i = 0; i < x.rank(); i++) a.groups[i] = 1;
  int64_t n = 1;
  if (scale.shape.rank() == 1 || (zero != nullptr && zero->shape.rank() == 1)) {
    const int axis = MOKA_TRY(axis_of(call, "axis", x.rank()));
    n = a.groups[axis] = x[axis];
  }
  auto spread = [n](const TensorView* v, std::vector<float>& out) {
    out.resize(static_cast<size_t>(n));
    if (v == nullptr) return;
    if (v->shape.rank() == 1 && v->count() == n) return load_floats(*v, 0, n, out.data());
    std::fill(out.begin(), out.end(), v->count() > 0 ? static_cast<float>(load_f64(*v, 0)) : 0.0f);
  };
  spread(&scale, a.scales);
  spread(zero, a.zeros);
  return a;
}

}  // namespace moka::ops
