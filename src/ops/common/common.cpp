// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"

#include <array>
#include <cstring>
#include <utility>

namespace moka::ops {

namespace {

/// Element strides of `s`, aligned to the right of `rank` dimensions; 0 where `s` is broadcast.
std::array<int64_t, kMaxRank> broadcast_strides(const Shape& s, int rank) {
  std::array<int64_t, kMaxRank> strides{};
  int64_t step = 1;
  for (int i = s.rank() - 1, o = rank - 1; i >= 0 && o >= 0; i--, o--) {
    strides[static_cast<size_t>(o)] = s[i] == 1 ? 0 : step;
    step *= s[i];
  }
  return strides;
}

}  // namespace

InferFn same_as(std::string param) {
  return [param = std::move(param)](const OpCall& call) -> Result<std::vector<Type>> { return one(call.type(param)); };
}

Result<int> axis_of(const OpCall& call, std::string_view param, int rank) {
  int64_t axis = MOKA_TRY(call.integer(param));
  if (rank == 0) return call.error(param, "an input of rank 1 or more", "rank 0");
  if (axis < -rank || axis >= rank) {
    return call.error(param, cat("an axis from ", -rank, " to ", rank - 1), cat(axis));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<Ints> axes_of(const OpCall& call, std::string_view param, int rank) {
  Ints given = MOKA_TRY(call.ints(param));
  Ints axes;
  unsigned seen = 0;
  for (int64_t axis : given) {
    if (axis < -rank || axis >= rank) {
      return call.error(param, cat("axes from ", -rank, " to ", rank - 1), cat(axis));
    }
    if (axis < 0) axis += rank;
    if (seen & (1u << axis)) return call.error(param, "each axis at most once", cat("axis ", axis, " twice"));
    seen |= 1u << axis;
    axes.push_back(axis);
  }
  return axes;
}

void for_each_broadcast(const Shape& out, const Shape& a, const Shape& b,
                        const std::function<void(int64_t, int64_t, int64_t)>& fn) {
  const int rank = out.rank();
  const int64_t n = out.count();
  if (n <= 0) return;
  if (rank == 0) {
    fn(0, 0, 0);
    return;
  }
  const auto as = broadcast_strides(a, rank), bs = broadcast_strides(b, rank);
  const auto last = static_cast<size_t>(rank - 1);
  const int64_t row = out[rank - 1];
  std::array<int64_t, kMaxRank> at{};
  int64_t ia = 0, ib = 0;
  for (int64_t o = 0; o < n;) {
    for (int64_t i = 0; i < row; i++, o++) fn(o, ia + i * as[last], ib + i * bs[last]);
    for (int d = rank - 2; d >= 0; d--) {
      const auto k = static_cast<size_t>(d);
      ia += as[k];
      ib += bs[k];
      if (++at[k] < out[d]) break;
      ia -= as[k] * out[d];
      ib -= bs[k] * out[d];
      at[k] = 0;
    }
  }
}

void copy_element(const TensorView& dst, int64_t to, const TensorView& src, int64_t from) {
  copy_elements(dst, to, src, from, 1);
}

void copy_elements(const TensorView& dst, int64_t to, const TensorView& src, int64_t from, int64_t n) {
  if (n <= 0) return;
  if (src.dtype == DType::string) {
    for (int64_t i = 0; i < n; i++) dst.as<std::string>()[to + i] = src.as<std::string>()[from + i];
    return;
  }
  if (is_sub_byte(src.dtype)) {
    for (int64_t i = 0; i < n; i++) store_i64(dst, to + i, load_i64(src, from + i));
    return;
  }
  const int64_t size = bits(src.dtype) / 8;
  std::memmove(dst.as<char>() + to * size, src.as<char>() + from * size, static_cast<size_t>(n * size));
}

}  // namespace moka::ops
