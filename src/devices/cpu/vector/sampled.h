// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Gradients of samples of images at given places, compiled once for each instruction set.
namespace moka::devices::cpu::vector {

struct Sampled {
  int64_t block;  ///< channels per block

  /// Where a sample is: between four pixels of a plane.
  struct Place {
    int32_t at[4];       ///< top left, top right, bottom left, bottom right; -1: outside of the plane
    float across, down;  ///< the shares of the right and of the bottom pixels
  };

  /// Samples of a block of channels, or of one channel.
  struct Call {
    const Place* places;
    int64_t count;
    const float* dy;  ///< [count][channel]
    float* dx;        ///< of the plane, [pixel][channel]; grows
    const float* x;   ///< the plane; only for `slopes`
    float pad;        ///< what pixels outside of it are; only for `slopes`
    float* slopes;    ///< [count][2]: how the sum of dy * sample changes with the place, across and down
  };
  /// The places of bilinear samples at these columns and rows.
  void (*find)(const double* columns, const double* rows, int64_t count, int64_t height, int64_t width, Place* to);
  void (*spread)(const Call& call);        ///< dx of a block
  void (*spread_all)(const Call& call);    ///< dx and slopes
  void (*spread_plane)(const Call& call);  ///< the same of one channel
  void (*spread_plane_all)(const Call& call);
};

/// The table for this processor.
const Sampled& sampled();

const Sampled& sampled_base();
const Sampled& sampled_avx2();
const Sampled& sampled_avx512();

}  // namespace moka::devices::cpu::vector
