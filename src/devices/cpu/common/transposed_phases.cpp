// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/transposed_phases.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace moka::devices::cpu {

using ops::Window;

namespace {

/// Sets an axis of the phase with remainder r by the stride. Result r + m * stride is the sum over i of tap
/// first + i * step times an input, the last one first, and inputs are `dilations` apart.
void set_axis(const Window& w, int i, int64_t r, TransposedPhase& phase) {
  const int64_t stride = w.strides[i], dilation = w.dilations[i], both = std::gcd(stride, dilation);
  const int64_t step = stride / both, at = r + w.pads_begin[i];
  int64_t first = 0;
  while (first < step && (at - first * dilation) % stride != 0) first++;
  const int64_t taps = first < std::min(step, w.kernel[i]) ? (w.kernel[i] - first - 1) / step + 1 : 0;
  phase.axes[static_cast<size_t>(i)] = {first, step, r};
  phase.empty |= taps == 0;
  Window& to = phase.w;
  to.kernel[i] = std::max<int64_t>(taps, 1);
  to.strides[i] = 1;
  to.dilations[i] = dilation / both;
  to.out[i] = (w.out[i] - r - 1) / stride + 1;
  to.pads_begin[i] = taps == 0 ? 0 : ((first + (taps - 1) * step) * dilation - at) / stride;
  to.pads_end[i] = (to.out[i] - 1) + to.extent(i) - w.in[i] - to.pads_begin[i];
}

int64_t phases_along(const Window& w, int axis) { return std::min(w.strides[axis], w.out[axis]); }

template <int block>
void copy_pixels(const float* from, int64_t n, int64_t step, float* to) {
  for (int64_t i = 0; i < n; i++, from += block, to += step) std::memcpy(to, from, block * sizeof(float));
}

}  // namespace

std::string too_many_phases(const Window& w) {
  constexpr int64_t kMost = 1 << 12;
  int64_t count = 1;
  for (int i = 0; i < w.rank; i++) count = std::min(kMost + 1, count * phases_along(w, i));
  return count > kMost ? "very large strides" : "";
}

std::vector<TransposedPhase> phases_of(const Window& w) {
  std::vector<TransposedPhase> all;
  for (int64_t i = 0; i < phases_along(w, 0); i++)
    for (int64_t j = 0; j < phases_along(w, 1); j++)
      for (int64_t k = 0; k < phases_along(w, 2); k++) {
        TransposedPhase& phase = all.emplace_back(TransposedPhase{w, {}, false});
        set_axis(w, 0, i, phase);
        set_axis(w, 1, j, phase);
        set_axis(w, 2, k, phase);
      }
  return all;
}

std::string phases_text(const ops::Window& w) {
  std::string text;
  for (int i = 0; i < 3; i++)
    text += cat(", ", w.strides[i], " ", w.dilations[i], " ", w.pads_begin[i], " ", phases_along(w, i));
  return text;
}

void gather_taps(const Window& w, const TransposedPhase& phase, const float* from, int64_t inputs, int64_t columns,
                 float* to) {
  constexpr int64_t kInputs = 16;  // whose windows stay in the cache
  const int64_t taps = w.taps(), of_phase = phase.w.taps();
  std::vector<int64_t> at;  // the taps of the phase in a window
  for (int64_t i = 0; i < phase.w.kernel[0]; i++)
    for (int64_t j = 0; j < phase.w.kernel[1]; j++)
      for (int64_t k = 0; k < phase.w.kernel[2]; k++)
        at.push_back((phase.tap(0, i) * w.kernel[1] + phase.tap(1, j)) * w.kernel[2] + phase.tap(2, k));
  for (int64_t first = 0; first < inputs; first += kInputs)
    for (int64_t o = 0; o < columns; o++)
      for (int64_t c = first; c < std::min(inputs, first + kInputs); c++) {
        const float* window = from + (c * columns + o) * taps;
        float* put = to + (o * inputs + c) * of_phase;
        for (const int64_t tap : at) *put++ = window[tap];
      }
}

void interleave(const Window& w, const TransposedPhase& phase, const float* from, int64_t first, int64_t n,
                int64_t block, int64_t used, float* plane) {
  const Window& of = phase.w;
  const int64_t step = w.strides[2] * block;
  const auto place = [&](int axis, int64_t m) {
    return phase.axes[static_cast<size_t>(axis)].place + m * w.strides[axis];
  };
  for (int64_t i = first, some; i < first + n; i += some, from += some * block) {
    const int64_t column = i % of.out[2], row = i / of.out[2];
    some = std::min(of.out[2] - column, first + n - i);
    const int64_t line = place(0, row / of.out[1]) * w.out[1] + place(1, row % of.out[1]);
    float* to = plane + (line * w.out[2] + place(2, column)) * block;
    if (used < block)
      for (int64_t j = 0; j < some; j++)
        std::fill_n(std::copy_n(from + j * block, used, to + j * step), block - used, 0.0f);
    else if (block == 16)
      copy_pixels<16>(from, some, step, to);
    else
      copy_pixels<8>(from, some, step, to);
  }
}

}  // namespace moka::devices::cpu
