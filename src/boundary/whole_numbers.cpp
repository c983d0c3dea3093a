// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "base/half.h"
#include "base/whole.h"
#include "boundary/arrays.h"
#include "boundary/inputs.h"

namespace moka::boundary {

namespace {

/// The numbers of an integer type.
struct Whole {
  int64_t least;
  uint64_t greatest;
  double end;  ///< greatest + 1

  bool holds(double v) const { return v >= static_cast<double>(least) && v < end && v == std::trunc(v); }
  bool holds(float v) const { return holds(static_cast<double>(v)); }
  bool holds(half v) const { return holds(static_cast<double>(static_cast<float>(v))); }
  bool holds(uint64_t v) const { return v <= greatest; }
  bool holds(int64_t v) const { return v >= least && (v < 0 || static_cast<uint64_t>(v) <= greatest); }
};

template <class T>
constexpr Whole whole = {static_cast<int64_t>(std::numeric_limits<T>::min()), std::numeric_limits<T>::max(),
                         static_cast<double>(std::numeric_limits<T>::max() / 2 + 1) * 2};

const Whole* whole_of(ir::DType type) {
  switch (type) {
    case ir::DType::int8: return &whole<int8_t>;
    case ir::DType::int16: return &whole<int16_t>;
    case ir::DType::int32: return &whole<int32_t>;
    case ir::DType::int64: return &whole<int64_t>;
    case ir::DType::uint8: return &whole<uint8_t>;
    case ir::DType::uint16: return &whole<uint16_t>;
    case ir::DType::uint32: return &whole<uint32_t>;
    case ir::DType::uint64: return &whole<uint64_t>;
    default: return nullptr;
  }
}

/// The position of the first element that is not in `to`, in row-major order; -1: there is none.
template <class T, class As>
int64_t first_outside(const ir::ArrayView& a, const Whole& to) {
  const T* data = static_cast<const T*>(a.data);
  const bool is_dense = a.strides.empty();
  int64_t index[ir::kMaxRank] = {}, offset = 0;
  for (int64_t i = 0, count = a.count(); i < count; i++) {
    if (!to.holds(static_cast<As>(data[is_dense ? i : offset]))) return i;
    if (is_dense) continue;
    for (size_t d = a.shape.size(); d-- > 0;) {
      offset += a.strides[d];
      if (++index[d] < a.shape[d]) break;
      offset -= a.strides[d] * a.shape[d];
      index[d] = 0;
    }
  }
  return -1;
}

int64_t first_outside(const ir::ArrayView& a, const Whole& to) {
  switch (a.dtype) {
    case ir::DType::fp16: return first_outside<half, half>(a, to);
    case ir::DType::fp32: return first_outside<float, float>(a, to);
    case ir::DType::fp64: return first_outside<double, double>(a, to);
    case ir::DType::int8: return first_outside<int8_t, int64_t>(a, to);
    case ir::DType::int16: return first_outside<int16_t, int64_t>(a, to);
    case ir::DType::int32: return first_outside<int32_t, int64_t>(a, to);
    case ir::DType::int64: return first_outside<int64_t, int64_t>(a, to);
    case ir::DType::uint8: return first_outside<uint8_t, uint64_t>(a, to);
    case ir::DType::uint16: return first_outside<uint16_t, uint64_t>(a, to);
    case ir::DType::uint32: return first_outside<uint32_t, uint64_t>(a, to);
    case ir::DType::uint64: return first_outside<uint64_t, uint64_t>(a, to);
    default: return -1;
  }
}

/// All digits of element `i`: a double has too few for some of 64 bits.
std::string text_of(const ir::ArrayView& a, int64_t i) {
  const int64_t at = a.offset(i);
  if (a.dtype == ir::DType::int64) return cat(static_cast<const int64_t*>(a.data)[at]);
  if (a.dtype == ir::DType::uint64) return cat(static_cast<const uint64_t*>(a.data)[at]);
  const double v = a.load_f64(at);
  return is_int64(v) ? cat(static_cast<int64_t>(v)) : cat(v);
}

/// "[0, 2]", the place of element `i`.
std::string place_of(const ir::ArrayView& a, int64_t i, int64_t first_row) {
  std::string out;
  for (size_t d = a.shape.size(); d-- > 0;) {
    const int64_t at = i % a.shape[d] + (d == 0 ? first_row : 0);
    out = cat(at, out.empty() ? "" : ", ", out);
    i /= a.shape[d];
  }
  return cat("[", out, "]");
}

Error refusal(ir::DType to, std::string_view got, std::string_view place = {}) {
  return fail(ErrorCode::invalid_argument, "expected whole numbers of type ", to, ", got ", got,
              place.empty() ? "" : " at ", place);
}

template <class T>
Status check_number(T number, ir::DType to) {
  const Whole* type = whole_of(to);
  return type == nullptr || type->holds(number) ? Status{} : refusal(to, cat(number));
}

}  // namespace

Status check_whole(const ir::ArrayView& from, ir::DType to, int64_t first_row) {
  const Whole* type = from.dtype == to ? nullptr : whole_of(to);
  if (type == nullptr) return {};
  const int64_t i = first_outside(from, *type);
  if (i < 0) return {};
  const bool is_one = from.count() == 1 && first_row == 0;
  return refusal(to, text_of(from, i), is_one ? "" : place_of(from, i, first_row));
}

Status check_numbers(const import::FeatureDescription& f, ir::DType to, const ir::ArrayView& array, int64_t first_row) {
  if (f.kind == import::FeatureKind::multi_array) MOKA_TRY(check_whole(array, f.array.dtype, first_row));
  return check_whole(array, to, first_row);
}

Status check_numbers(const import::FeatureDescription& f, ir::DType to, const FeatureValue& value) {
  if (const auto* array = std::get_if<MultiArray>(&value)) return check_numbers(f, to, view_of(*array));
  const ir::DType described = f.kind == import::FeatureKind::multi_array ? f.array.dtype : to;
  for (ir::DType type : {described, to}) {
    if (const auto* number = std::get_if<int64_t>(&value)) MOKA_TRY(check_number(*number, type));
    if (const auto* number = std::get_if<double>(&value)) MOKA_TRY(check_number(*number, type));
  }
  return {};
}

}  // namespace moka::boundary
