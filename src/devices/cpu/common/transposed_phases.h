// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "ops/common/window.h"

/// A transposed convolution as several ordinary ones. All results whose positions have the same remainders by the
/// strides (a phase) need the same taps. Each phase is therefore an ordinary convolution without the zeros between
/// input pixels, and the results of all phases are interleaved.
namespace moka::devices::cpu {

struct TransposedPhase {
  /// Along an axis, tap i of the phase, counted from the last one, is tap first + i * step of the window, and result m
  /// is result place + m * stride.
  struct Axis {
    int64_t first, step, place;
  };
  ops::Window w;  ///< of the phase, with rank 3; has a window of one tap if there are none
  std::array<Axis, 3> axes;
  bool empty;  ///< whether there are no taps, so that all results are the bias

  /// The tap of the whole window that is tap i of the phase.
  int64_t tap(int axis, int64_t i) const {
    const Axis& a = axes[static_cast<size_t>(axis)];
    return a.first + (w.kernel[axis] - 1 - i) * a.step;
  }
};

/// Why there are no phases; empty: there are.
std::string too_many_phases(const ops::Window& w);
/// The phases of a window of rank 3.
std::vector<TransposedPhase> phases_of(const ops::Window& w);

/// What the phases of a window of rank 3 depend on besides its taps, for keys of packed weights.
std::string phases_text(const ops::Window& w);

/// Gathers the taps of a phase from [inputs][columns][window] as [columns][inputs][taps of the phase].
void gather_taps(const ops::Window& w, const TransposedPhase& phase, const float* from, int64_t inputs, int64_t columns,
                 float* to);

/// Writes n results of a phase from number `first` on, blocks of channels, to their places in a plane. The channels
/// from `used` on become zeros.
void interleave(const ops::Window& w, const TransposedPhase& phase, const float* from, int64_t first, int64_t n,
                int64_t block, int64_t used, float* plane);

}  // namespace moka::devices::cpu
