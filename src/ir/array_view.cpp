// SPDX-License-Identifier: Apache-2.0
#include "ir/array_view.h"

#include <algorithm>
#include <cstring>

#include "base/half.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace moka::ir {

namespace {

#if defined(__x86_64__)
__attribute__((target("avx"))) int64_t widen_avx(const float* from, double* to, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256d a = _mm256_cvtps_pd(_mm_loadu_ps(from + i)), b = _mm256_cvtps_pd(_mm_loadu_ps(from + i + 4)),
                  c = _mm256_cvtps_pd(_mm_loadu_ps(from + i + 8)), d = _mm256_cvtps_pd(_mm_loadu_ps(from + i + 12));
    _mm256_storeu_pd(to + i, a);
    _mm256_storeu_pd(to + i + 4, b);
    _mm256_storeu_pd(to + i + 8, c);
    _mm256_storeu_pd(to + i + 12, d);
  }
  return i;
}
#endif

/// Several numbers at a time: this library is compiled without vectorization.
void widen(const float* from, double* to, int64_t n) {
  typedef float Floats __attribute__((vector_size(8)));
  typedef double Doubles __attribute__((vector_size(16)));
  int64_t i = 0;
#if defined(__x86_64__)
  static const bool has_avx = __builtin_cpu_supports("avx");
  if (has_avx) i = widen_avx(from, to, n);
#endif
  for (; i + 2 <= n; i += 2) {
    Floats some;
    std::memcpy(&some, from + i, sizeof some);
    const Doubles wide = __builtin_convertvector(some, Doubles);
    std::memcpy(to + i, &wide, sizeof wide);
  }
  if (i < n) to[i] = static_cast<double>(from[i]);
}

}  // namespace

int64_t ArrayView::count() const {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

int64_t ArrayView::offset(int64_t i) const {
  if (strides.empty()) return i;
  int64_t at = 0;
  for (size_t d = shape.size(); d-- > 0;) {
    at += i % shape[d] * strides[d];
    i /= shape[d];
  }
  return at;
}

double ArrayView::load_f64(int64_t offset) const { return ir::load_f64(dtype, data, offset); }

void copy_array(const ArrayView& from, const TensorView& to) {
  const int64_t n = from.count();
  if (from.strides.empty()) {
    if (from.dtype == to.dtype) {
      std::copy_n(from.as<std::byte>(), static_cast<size_t>(n) * static_cast<size_t>(bits(from.dtype) / 8),
                  to.as<std::byte>());
      return;
    }
    if (from.dtype == DType::fp16 && to.dtype == DType::fp32)
      return half_to_float(from.as<uint16_t>(), to.as<float>(), static_cast<size_t>(n));
    if (from.dtype == DType::fp32 && to.dtype == DType::fp64) return widen(from.as<float>(), to.as<double>(), n);
    if (from.dtype == DType::fp32 && to.dtype == DType::fp16)
      return float_to_half(from.as<float>(), to.as<uint16_t>(), static_cast<size_t>(n));
  }
  // Numbers of uint64 from 2^63 on do not fit into int64.
  const bool whole = !is_float(from.dtype) && (from.dtype != DType::uint64 || !is_float(to.dtype));
  int64_t index[kMaxRank] = {};
  int64_t offset = 0;
  for (int64_t i = 0; i < n; i++) {
    if (whole)
      store_i64(to, i, load_i64(from.dtype, from.data, offset));
    else
      store_f64(to, i, from.load_f64(offset));
    if (from.strides.empty()) {
      ++offset;
      continue;
    }
    for (size_t d = from.shape.size(); d-- > 0;) {
      offset += from.strides[d];
      if (++index[d] < from.shape[d]) break;
      offset -= from.strides[d] * from.shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace moka::ir
