// SPDX-License-Identifier: Apache-2.0
#include "ops/common/strided.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "ops/common/common.h"

namespace moka::ops {

namespace {

using Walk = StridedCopy::Axis;

/// Calls fn(to, from) for each step of the `n` axes, the last one fastest.
template <class Fn>
void for_each_step(const Walk* axes, int n, int64_t to, int64_t from, Fn fn) {
  int64_t at[StridedCopy::kMaxDims] = {};
  for (;;) {
    fn(to, from);
    int k = n - 1;
    for (; k >= 0; k--) {
      to += axes[k].to;
      from += axes[k].from;
      if (++at[k] < axes[k].size) break;
      to -= axes[k].to * axes[k].size;
      from -= axes[k].from * axes[k].size;
      at[k] = 0;
    }
    if (k < 0) return;
  }
}

template <class T>
void copy_typed(Walk* axes, int n, T* dst, int64_t to, const T* src, int64_t from) {
  const Walk last = axes[n - 1];
  if (last.to == 1 && last.from == 1) {
    const auto count = static_cast<size_t>(last.size);
    for_each_step(axes, n - 1, to, from, [=](int64_t q, int64_t p) {
      if constexpr (std::is_trivially_copyable_v<T>) {
        if (count * sizeof(T) >= 32) {
          std::memcpy(dst + q, src + p, count * sizeof(T));
          return;
        }
      }
      for (size_t i = 0; i < count; i++) dst[q + static_cast<int64_t>(i)] = src[p + static_cast<int64_t>(i)];
    });
    return;
  }
  int dense = -1;
  for (int k = 0; k < n - 1; k++)
    if (axes[k].from == 1) dense = k;
  if (dense < 0 || last.to != 1) {
    for_each_step(axes, n - 1, to, from, [=](int64_t q, int64_t p) {
      for (int64_t i = 0; i < last.size; i++) dst[q + i * last.to] = src[p + i * last.from];
    });
    return;
  }
  // A transposition works on squares that fit in the cache, so that neither side strides through memory.
  constexpr int64_t kSide = 32;
  const Walk column = axes[dense];
  std::copy(axes + dense + 1, axes + n - 1, axes + dense);
  for_each_step(axes, n - 2, to, from, [=](int64_t q, int64_t p) {
    for (int64_t c0 = 0; c0 < column.size; c0 += kSide) {
      const int64_t c1 = std::min(c0 + kSide, column.size);
      for (int64_t i0 = 0; i0 < last.size; i0 += kSide) {
        const int64_t i1 = std::min(i0 + kSide, last.size);
        for (int64_t c = c0; c < c1; c++)
          for (int64_t i = i0; i < i1; i++) dst[q + c * column.to + i] = src[p + i * last.from + c];
      }
    }
  });
}

}  // namespace

void StridedCopy::add(const Shape& s, const int64_t* to_steps, const int64_t* from_steps) {
  for (int i = 0; i < s.rank(); i++) add(s[i], to_steps[i], from_steps[i]);
}

StridedCopy StridedCopy::merged() const {
  StridedCopy m;
  for (const Axis& a : axes()) {
    if (a.size == 1) continue;
    if (m.n_ > 0 && m.axes_[m.n_ - 1].to == a.size * a.to && m.axes_[m.n_ - 1].from == a.size * a.from)
      m.axes_[m.n_ - 1] = {m.axes_[m.n_ - 1].size * a.size, a.to, a.from};
    else
      m.axes_[m.n_++] = a;
  }
  if (m.n_ == 0) m.axes_[m.n_++] = {1, 1, 1};
  return m;
}

void StridedCopy::run(const TensorView& dst, int64_t to, const TensorView& src, int64_t from) const {
  for (const Axis& a : axes())
    if (a.size <= 0) return;
  StridedCopy m = merged();
  Axis* axes = m.axes_;
  const int n = m.n_;
  if (src.dtype == DType::string) {
    copy_typed(axes, n, dst.as<std::string>(), to, src.as<std::string>(), from);
    return;
  }
  switch (bits(src.dtype)) {
    case 8: copy_typed(axes, n, dst.as<uint8_t>(), to, src.as<uint8_t>(), from); return;
    case 16: copy_typed(axes, n, dst.as<uint16_t>(), to, src.as<uint16_t>(), from); return;
    case 32: copy_typed(axes, n, dst.as<uint32_t>(), to, src.as<uint32_t>(), from); return;
    case 64: copy_typed(axes, n, dst.as<uint64_t>(), to, src.as<uint64_t>(), from); return;
    default: for_each_step(axes, n, to, from, [&](int64_t q, int64_t p) { store_i64(dst, q, load_i64(src, p)); });
  }
}

void fill_elements(const TensorView& dst, int64_t at, int64_t n, const TensorView& value) {
  if (n <= 0) return;
  if (dst.dtype == value.dtype) {
    copy_elements(dst, at, value, 0, 1);
  } else if (is_float(value.dtype)) {
    store_f64(dst, at, load_f64(value, 0));
  } else {
    store_i64(dst, at, load_i64(value, 0));
  }
  auto spread = [&](auto* p) { std::fill(p + at + 1, p + at + n, p[at]); };
  if (dst.dtype == DType::string) return spread(dst.as<std::string>());
  switch (bits(dst.dtype)) {
    case 8: return spread(dst.as<uint8_t>());
    case 16: return spread(dst.as<uint16_t>());
    case 32: return spread(dst.as<uint32_t>());
    case 64: return spread(dst.as<uint64_t>());
    default:
      for (int64_t i = 1; i < n; i++) store_i64(dst, at + i, load_i64(dst, at));
  }
}

void zero_elements(const TensorView& dst, int64_t at, int64_t n) {
  if (n <= 0) return;
  if (dst.dtype == DType::string) {
    std::fill_n(dst.as<std::string>() + at, n, std::string());
  } else if (is_sub_byte(dst.dtype)) {
    for (int64_t i = 0; i < n; i++) store_i64(dst, at + i, 0);
  } else {
    const int64_t size = bits(dst.dtype) / 8;
    std::memset(dst.as<char>() + at * size, 0, static_cast<size_t>(n * size));
  }
}

void copy_all(const TensorView& dst, const TensorView& src) {
  const int64_t n = src.count();
  if (n == 0 || dst.data == src.data) return;
  if (is_sub_byte(src.dtype)) {
    const size_t size = (static_cast<size_t>(n) * static_cast<size_t>(bits(src.dtype)) + 7) / 8;
    std::memmove(dst.data, src.data, size);
    return;
  }
  copy_elements(dst, 0, src, 0, n);
}

}  // namespace moka::ops
