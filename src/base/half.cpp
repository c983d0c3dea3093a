// SPDX-License-Identifier: Apache-2.0
#include "base/half.h"

#include <cmath>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace moka {

uint16_t half::from_float(float f) {
  uint32_t x = std::bit_cast<uint32_t>(f);
  uint32_t sign = (x >> 16) & 0x8000u;
  uint32_t abs = x & 0x7fffffffu;
  if (abs > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((abs >> 13) & 0x3ffu));
  if (abs >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (abs < 0x38800000u) {
    if (abs < 0x33000000u) return static_cast<uint16_t>(sign);
    uint32_t mant = (abs & 0x7fffffu) | 0x800000u;
    uint32_t shift = 126u - (abs >> 23);
    uint32_t q = mant >> shift;
    uint32_t rest = mant & ((1u << shift) - 1);
    uint32_t mid = 1u << (shift - 1);
    if (rest > mid || (rest == mid && (q & 1))) q++;
    return static_cast<uint16_t>(sign | q);
  }
  uint32_t r = abs - 0x38000000u;
  r += 0xfffu + ((r >> 13) & 1);
  return static_cast<uint16_t>(sign | (r >> 13));
}

float half::to_float(uint16_t h) {
  uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  uint32_t exp = (h >> 10) & 0x1f;
  uint32_t mant = h & 0x3ffu;
  if (exp == 0) {
    float v = std::ldexp(static_cast<float>(mant), -24);
    return sign ? -v : v;
  }
  if (exp == 31) {
    const uint32_t quiet = mant != 0 ? 0x200u : 0;  // result of F16C for a NaN
    return std::bit_cast<float>(sign | 0x7f800000u | ((mant | quiet) << 13));
  }
  return std::bit_cast<float>(sign | ((exp + 112) << 23) | (mant << 13));
}

float half::round_to_odd(double d) {
  auto f = static_cast<float>(d);
  if (std::isnan(d) || static_cast<double>(f) == d || std::isinf(f)) return f;
  uint32_t b = std::bit_cast<uint32_t>(f);
  if (b & 1) return f;
  bool away = std::fabs(static_cast<double>(f)) > std::fabs(d);
  return std::bit_cast<float>(away ? b - 1 : b | 1);
}

bfloat16::bfloat16(float f) {
  uint32_t x = std::bit_cast<uint32_t>(f);
  if ((x & 0x7fffffffu) > 0x7f800000u) {
    bits = static_cast<uint16_t>((x >> 16) | 0x40);
    return;
  }
  bits = static_cast<uint16_t>((x + 0x7fffu + ((x >> 16) & 1)) >> 16);
}

#if defined(__x86_64__)
bool converts_halves() {
  // clang 14 does not know "f16c" as a feature name of __builtin_cpu_supports.
  static const bool has = [] {
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
  }();
  return has;
}

namespace {
__attribute__((target("f16c,avx"))) void half_to_float_f16c(const uint16_t* in, float* out, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  for (; i < n; i++) out[i] = half::to_float(in[i]);
}
__attribute__((target("f16c,avx"))) void float_to_half_f16c(const float* in, uint16_t* out, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < n; i++) out[i] = half::from_float(in[i]);
}
}  // namespace
#endif

void half_to_float(const uint16_t* in, float* out, size_t n) {
#if defined(__x86_64__)
  if (converts_halves()) return half_to_float_f16c(in, out, n);
#endif
  for (size_t i = 0; i < n; i++) out[i] = half::to_float(in[i]);
}

void float_to_half(const float* in, uint16_t* out, size_t n) {
#if defined(__x86_64__)
  if (converts_halves()) return float_to_half_f16c(in, out, n);
#endif
  for (size_t i = 0; i < n; i++) out[i] = half::from_float(in[i]);
}

}  // namespace moka
