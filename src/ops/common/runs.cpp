// SPDX-License-Identifier: Apache-2.0
#include "ops/common/runs.h"

namespace moka::ops {

using namespace ir;

void load_run(const TensorView& t, int64_t start, int64_t step, int64_t n, double* to) {
  if (t.dtype == DType::fp32) {
    const float* p = t.as<const float>() + start;
    if (step == 1) {
      for (int64_t j = 0; j < n; ++j) to[j] = p[j];
    } else {
      for (int64_t j = 0; j < n; ++j) to[j] = p[j * step];
    }
    return;
  }
  if (t.dtype == DType::fp16) {
    const uint16_t* p = t.as<const uint16_t>() + start;
    if (step == 1) {
      float chunk[64];
      for (int64_t done = 0; done < n;) {
        int64_t count = n - done < 64 ? n - done : 64;
        half_to_float(p + done, chunk, static_cast<size_t>(count));
        for (int64_t j = 0; j < count; ++j) to[done + j] = chunk[j];
        done += count;
      }
    } else {
      for (int64_t j = 0; j < n; ++j) to[j] = half::to_float(p[j * step]);
    }
    return;
  }
  for (int64_t j = 0; j < n; ++j) to[j] = load_f64(t, start + j * step);
}

void load_run(const TensorView& t, int64_t start, int64_t step, int64_t n, int64_t* to) {
  if (t.dtype == DType::int32) {
    const int32_t* p = t.as<const int32_t>() + start;
    for (int64_t j = 0; j < n; ++j) to[j] = p[j * step];
    return;
  }
  for (int64_t j = 0; j < n; ++j) to[j] = load_i64(t, start + j * step);
}

void store_run(const TensorView& t, int64_t start, int64_t step, int64_t n, const double* from) {
  if (t.dtype == DType::fp32) {
    float* p = t.as<float>() + start;
    for (int64_t j = 0; j < n; ++j) p[j * step] = static_cast<float>(from[j]);
    return;
  }
  if (t.dtype == DType::fp16) {
    half* p = t.as<half>() + start;
    for (int64_t j = 0; j < n; ++j) p[j * step] = half(from[j]);
    return;
  }
  for (int64_t j = 0; j < n; ++j) store_f64(t, start + j * step, from[j]);
}

void store_run(const TensorView& t, int64_t start, int64_t step, int64_t n, const int64_t* from) {
  for (int64_t j = 0; j < n; ++j) store_i64(t, start + j * step, from[j]);
}

double dot_run(const TensorView& t, int64_t start, int64_t n, const double* x) {
  constexpr int kLanes = 8;
  double lane[kLanes] = {};
  double chunk[256];
  for (int64_t done = 0; done < n;) {
    int64_t count = n - done < 256 ? n - done : 256;
    load_run(t, start + done, 1, count, chunk);
    int64_t j = 0;
    for (; j + kLanes <= count; j += kLanes) {
      for (int l = 0; l < kLanes; ++l) lane[l] += chunk[j + l] * x[done + j + l];
    }
    for (; j < count; ++j) lane[0] += chunk[j] * x[done + j];
    done += count;
  }
  double sum = 0;
  for (double l : lane) sum += l;
  return sum;
}

}  // namespace moka::ops
