#include "ops/common/slicing.h"

#include <algorithm>

#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

constexpr int64_t kFar = int64_t{1} << 48;

struct Bound {
  bool known = false, open = false;
  int64_t at = 0;
};

Result<const TensorView*> checked_value(const OpCall& call, std::string_view param, int rank) {
  if (!call.has(param)) return nullptr;
  MOKA_TRY(expect_vector(call, param));
  const int64_t n = length_of(call, param);
  if (n >= 0 && n != rank) return call.error(param, cat(rank, " entries, the rank of x"), cat(n));
  const TensorView* v = call.value(param);
  if (v != nullptr && v->count() != rank)
    return call.error(param, cat(rank, " entries, the rank of x"), cat(v->count()));
  return v;
}

int64_t entry(const TensorView* v, int i, int64_t absent) {
  return v == nullptr ? absent : std::clamp(load_i64(*v, i), -kFar, kFar);
}

/// The size of a slice of a dimension that is not known.
int64_t size_of_unknown(int64_t dim, const Bound& b, const Bound& e, int64_t step) {
  if (b.open && e.open) return step == 1 || step == -1 ? dim : kAnyDim;
  if (b.known && e.open) {
    if (b.at == 0 && step == 1) return dim;
    if ((b.at == 0 && step < 0) || (b.at == -1 && step > 0)) return 1;
  }
  if (b.known && e.known && !b.open && !e.open && (b.at < 0) == (e.at < 0)) {
    const int64_t span = step > 0 ? e.at - b.at : b.at - e.at;
    if (span <= 0) return 0;
    const int64_t n = (span - 1) / (step > 0 ? step : -step) + 1;
    if (n == 1) return 1;
  }
  return kAnyDim;
}

Slice::Axis resolve(int64_t dim, const Bound& b, const Bound& e, int64_t step) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
  auto place = [&](const Bound& v, int64_t open) {
    if (v.open) return open;
    return std::clamp(v.at < 0 ? v.at + dim : v.at, low, high);
  };
  const int64_t start = place(b, step > 0 ? low : high), end = place(e, step > 0 ? high : low);
  const int64_t span = step > 0 ? end - start : start - end;
  return {start, step, span > 0 ? (span - 1) / (step > 0 ? step : -step) + 1 : 0, false};
}

}  // namespace

Shape Slice::shape() const {
  Shape s;
  for (int i = 0; i < rank; i++)
    if (!axes[i].squeezed) s.push_back(axes[i].size);
  return s;
}

Result<Slice> resolve_slice(const OpCall& call, const Shape& x) {
  const int rank = x.rank();
  const TensorView* begin = MOKA_TRY(checked_value(call, "begin", rank));
  const TensorView* end = MOKA_TRY(checked_value(call, "end", rank));
  const TensorView* stride = MOKA_TRY(checked_value(call, "stride", rank));
  const TensorView* begin_mask = MOKA_TRY(checked_value(call, "begin_mask", rank));
  const TensorView* end_mask = MOKA_TRY(checked_value(call, "end_mask", rank));
  const TensorView* squeeze_mask = MOKA_TRY(checked_value(call, "squeeze_mask", rank));
  Slice out;
  out.rank = rank;
  for (int i = 0; i < rank; i++) {
    const int64_t dim = x[i], step = entry(stride, i, 1);
    Bound b{begin != nullptr, entry(begin_mask, i, 0) != 0, entry(begin, i, 0)};
    Bound e{end != nullptr, entry(end_mask, i, 0) != 0, entry(end, i, 0)};
    if (step == 0) return call.error("stride", "strides other than 0", cat("0 at axis ", i));
    Slice::Axis& axis = out.axes[i];
    if (entry(squeeze_mask, i, 0) != 0) {
      axis = {0, 1, 1, true};
      if (b.open || !b.known || dim < 0) continue;
      axis.start = b.at < 0 ? b.at + dim : b.at;
      if (axis.start < 0 || axis.start >= dim) {
        return fail(ErrorCode::data, "operation '", call.name(), "' (", call.version().def->name,
                    "), parameter 'begin': index ", b.at, " is outside of axis ", i, " of size ", dim);
      }
    } else if (dim < 0) {
      axis = {0, step, size_of_unknown(dim, b, e, step), false};
    } else if ((!b.known && !b.open) || (!e.known && !e.open)) {
      axis = {0, step, kAnyDim, false};
    } else {
      axis = resolve(dim, b, e, step);
    }
  }
  return out;
}

}  // namespace moka::ops
