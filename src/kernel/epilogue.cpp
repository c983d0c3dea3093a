// SPDX-License-Identifier: Apache-2.0
#include "kernel/epilogue.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "base/scalar_math.h"

namespace moka::kernel {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::optional<Limits> kNoLimits;

template <class T>
using Apply = void (*)(T* data, int64_t n, T a, T b);

template <class T, auto F>
void each(T* data, int64_t n, T a, T b) {
  for (int64_t i = 0; i < n; i++) data[i] = F(data[i], a, b);
}

template <class T>
struct Row {
  std::string_view op;
  bool exact;
  std::optional<Limits> (*limits)(float a, float b);
  Apply<T> apply;
};

#define MOKA_EPILOGUE(name, exact, limits, vector, expression, ...)                                                  \
  {#name, exact, []([[maybe_unused]] float a, [[maybe_unused]] float b) -> std::optional<Limits> { return limits; }, \
   each<T, []([[maybe_unused]] T x, [[maybe_unused]] T a, [[maybe_unused]] T b) { return expression; }>},
template <class T>
constexpr Row<T> kTable[] = {
#include "kernel/epilogues.inc"
};
#undef MOKA_EPILOGUE

template <class T>
const Row<T>* find(std::string_view op) {
  for (const Row<T>& row : kTable<T>)
    if (row.op == op) return &row;
  return nullptr;
}

template <class T>
void apply(const ir::Epilogue& e, T* data, int64_t n) {
  if (const Row<T>* row = find<T>(e.op)) row->apply(data, n, static_cast<T>(e.alpha), static_cast<T>(e.beta));
}

}  // namespace

bool is_epilogue(std::string_view op) { return find<float>(op) != nullptr; }

bool is_exact(const ir::Epilogue& e) {
  const auto* row = find<float>(e.op);
  return row != nullptr && row->exact;
}

std::optional<Limits> limits_of(const ir::Epilogue& e) {
  const auto* row = find<float>(e.op);
  return row == nullptr ? std::nullopt : row->limits(e.alpha, e.beta);
}

void apply_epilogue(const ir::Epilogue& e, float* data, int64_t n) { apply(e, data, n); }

void apply_epilogues(std::span<const ir::Epilogue> epilogues, const ir::TensorView& in_place) {
  if (epilogues.empty() || !ir::is_float(in_place.dtype)) return;
  const int64_t n = in_place.count();
  if (in_place.dtype == ir::DType::fp64) {
    for (const ir::Epilogue& e : epilogues) apply(e, in_place.as<double>(), n);
    return;
  }
  constexpr int64_t kBlock = 1024;
  float block[kBlock];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t m = std::min(kBlock, n - at);
    float* data = block;
    if (in_place.dtype == ir::DType::fp32) {
      data = in_place.as<float>() + at;
    } else if (in_place.dtype == ir::DType::fp16) {
      half_to_float(in_place.as<uint16_t>() + at, block, static_cast<size_t>(m));
    } else {
      for (int64_t i = 0; i < m; i++) block[i] = static_cast<float>(ir::load_f64(in_place, at + i));
    }
    for (const ir::Epilogue& e : epilogues) apply(e, data, m);
    if (in_place.dtype == ir::DType::fp16) {
      float_to_half(block, in_place.as<uint16_t>() + at, static_cast<size_t>(m));
    } else if (in_place.dtype != ir::DType::fp32) {
      for (int64_t i = 0; i < m; i++) ir::store_f64(in_place, at + i, static_cast<double>(block[i]));
    }
  }
}

}  // namespace moka::kernel
