// SPDX-License-Identifier: Apache-2.0
#include "ops/common/slicing.h"

#include <algorithm>

#include "ops/common/common.h"
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

/// The size of a slice of an unknown dimension.
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
      if (dim < 0 || (!b.known && !b.open)) continue;
      axis.start = b.open ? 0 : b.at < 0 ? b.at + dim : b.at;
      if (axis.start < 0 || axis.start >= dim) {
        return fail(ErrorCode::data, "operation '", call.name(), "' (", call.version().def->name,
                    "), parameter 'begin': index ", b.open ? 0 : b.at, " is outside of axis ", i, " of size ", dim);
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

namespace {

std::optional<Slice> slice_unchecked(const OpCall& call, const Shape& x) {
  const std::string& op = call.version().def->name;
  if (op == "slice_by_index") {
    for (const char* p : {"begin", "end", "stride"})
      if (call.has(p) && !call.is_known(p)) return std::nullopt;
    auto slice = resolve_slice(call, x);
    if (!slice.ok()) return std::nullopt;
    return std::move(*slice);
  }
  Slice s;
  s.rank = x.rank();
  for (int i = 0; i < s.rank; i++) s.axes[i] = {0, 1, x[i], false};
  if (op == "reverse") {
    const auto turn = [&](int i) { s.axes[i] = {x[i] - 1, -1, x[i], false}; };
    if (!call.has("axes")) {
      for (int i = 0; i < s.rank; i++) turn(i);
      return s;
    }
    auto axes = axes_of(call, "axes", s.rank);
    if (!axes.ok()) return std::nullopt;
    for (int64_t a : *axes) turn(static_cast<int>(a));
    return s;
  }
  if (op == "crop") {
    const TensorView* cuts[] = {call.value("crop_height"), call.value("crop_width")};
    for (int i = 0; i < 2; i++) {
      Slice::Axis& axis = s.axes[s.rank - 2 + i];
      if (cuts[i] == nullptr || cuts[i]->count() != 2) return std::nullopt;
      axis.start = load_i64(*cuts[i], 0);
      axis.size -= axis.start + load_i64(*cuts[i], 1);
    }
    return s;
  }
  const TensorView *begin = call.value("begin"), *size = call.value("size");
  if (begin == nullptr || size == nullptr || begin->count() != s.rank || size->count() != s.rank) return std::nullopt;
  for (int i = 0; i < s.rank; i++) {
    const int64_t b = load_i64(*begin, i), n = load_i64(*size, i), first = b < 0 ? b + x[i] : b;
    s.axes[i] = {first, 1, n == -1 ? x[i] - first : n, false};
  }
  return s;
}

}  // namespace

std::optional<Slice> known_slice(const OpCall& call) {
  const Shape& x = call.shape("x");
  auto slice = slice_unchecked(call, x);
  for (int i = 0; slice && i < slice->rank; i++) {
    const Slice::Axis& a = slice->axes[i];
    const int64_t last = a.start + (a.size - 1) * a.step;
    if (a.size < 1 || std::min(a.start, last) < 0 || std::max(a.start, last) >= x[i]) return std::nullopt;
  }
  return slice;
}

int64_t first_of(const Slice& slice, const Shape& x) {
  const auto strides = x.strides();
  int64_t at = 0;
  for (int i = 0; i < slice.rank; i++) at += slice.axes[i].start * strides[static_cast<size_t>(i)];
  return at;
}

StridedCopy copy_of(const Slice& slice, const Shape& x) {
  const auto from = x.strides();
  int64_t to = 1;
  for (int i = 0; i < slice.rank; i++) to *= slice.axes[i].size;
  StridedCopy copy;
  for (int i = 0; i < slice.rank; i++) {
    const Slice::Axis& a = slice.axes[i];
    to /= a.size;
    copy.add(a.size, to, a.step * from[static_cast<size_t>(i)]);
  }
  return copy;
}

bool is_run(const Slice& slice, const Shape& x) {
  bool inside = false;  // whether an earlier axis keeps several elements
  for (int i = 0; i < slice.rank; i++) {
    const Slice::Axis& a = slice.axes[i];
    if (inside && (a.size != x[i] || a.step != 1)) return false;
    if (a.size > 1 && a.step != 1) return false;
    inside |= a.size > 1;
  }
  return true;
}

OpBuilder& slice_masks(OpBuilder& builder) {
  return builder.constant("begin_mask", kBool)
      .optional()
      .constant("end_mask", kBool)
      .optional()
      .constant("squeeze_mask", kBool)
      .optional();
}

}  // namespace moka::ops
