// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "base/half.h"
#include "ops/common/common.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

/// Rounds to the element type. The number of elements is computed in this type.
double rounded(DType dtype, double v) {
  if (dtype == DType::fp16) return static_cast<double>(static_cast<float>(half(v)));
  if (dtype == DType::fp32) return static_cast<double>(static_cast<float>(v));
  return v;
}

Result<int64_t> length(const OpCall& call, DType dtype) {
  const double start = MOKA_TRY(call.number("start")), end = MOKA_TRY(call.number("end")),
               step = MOKA_TRY(call.number("step"));
  if (step == 0 || std::isnan(step)) return call.error("step", "a number other than 0", cat(step));
  double n = 0;
  if (is_float(dtype)) {
    const double way = rounded(dtype, end - start), quotient = rounded(dtype, way / step);
    n = quotient == 0 && way != 0 && !std::signbit(quotient) ? 1 : std::ceil(quotient);
  } else {
    const int64_t a = MOKA_TRY(call.integer("start")), b = MOKA_TRY(call.integer("end")),
                  s = MOKA_TRY(call.integer("step"));
    n = std::ceil((static_cast<double>(b) - static_cast<double>(a)) / static_cast<double>(s));
  }
  if (std::isnan(n) || n > static_cast<double>(std::numeric_limits<int32_t>::max())) {
    return call.error("end", "a range of less than 2^31 numbers", cat(start, " to ", end, " by ", step));
  }
  return n > 0 ? static_cast<int64_t>(n) : 0;
}

Result<std::vector<Type>> infer_range_1d(const OpCall& call) {
  const DType dtype = call.dtype("start");
  int64_t n = kAnyDim;
  if (call.is_known("start") && call.is_known("end") && call.is_known("step")) n = MOKA_TRY(length(call, dtype));
  return tensor_result(call, dtype, {n});
}

Status range_1d_reference(const OpCall& call, std::span<const TensorView> out) {
  const int64_t n = out[0].count();
  if (is_float(out[0].dtype)) {
    const double start = MOKA_TRY(call.number("start")), step = MOKA_TRY(call.number("step"));
    if (n > 0) store_f64(out[0], 0, start);
    for (int64_t i = 1; i < n; i++) store_f64(out[0], i, start + static_cast<double>(i) * step);
  } else {
    const auto start = static_cast<uint64_t>(MOKA_TRY(call.integer("start")));
    const auto step = static_cast<uint64_t>(MOKA_TRY(call.integer("step")));
    for (int64_t i = 0; i < n; i++) store_i64(out[0], i, static_cast<int64_t>(start + static_cast<uint64_t>(i) * step));
  }
  return {};
}

}  // namespace

OpDef define_range_1d() {
  return OpBuilder("range_1d", "The numbers start, start + step, ... before `end`.")
      .type_var("T", kNumbers15)
      .in("end", "T")
      .in("start", "T")
      .in("step", "T")
      .infer(infer_range_1d)
      .reference(range_1d_reference)
      .note(
          "The number of elements is ceil((end - start) / step), computed in the element type, and 1 where the "
          "quotient "
          "of a way that is not 0 is positive but rounds to 0, as with an infinite step. Element i is start + i * "
          "step, rounded once.",
          "coremltools' value inference, numpy.arange")
      .build();
}

}  // namespace moka::ops
