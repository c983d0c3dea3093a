// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/gpu/common/product.h"
#include "devices/gpu/common/window.h"

namespace moka::devices::gpu {

/// A convolution whose constants are known.
struct Conv {
  ops::Window window;             ///< of rank 3
  int64_t batch, channels, made;  ///< `channels`, `made`: channels of a group in x and in y
  int x, weight, bias, addend;    ///< inputs; -1: none
  Element floats;
  const Features* card;

  int64_t depth() const { return channels * window.taps(); }
  double multiply_adds() const {
    return static_cast<double>(batch * window.groups * made * depth()) * static_cast<double>(window.out_count());
  }
  Use use(std::span<const BufferView> in, int arg) const { return arg < 0 ? Use{} : Use::read(view(in, arg)); }
  Normed normed(std::function<Status(Recorder&, const Norm&)> record) const {
    return {made * window.groups, window.out_count(), std::move(record)};
  }
  /// As use(), but an input that is absent becomes an unused binding of `other`'s buffer.
  Use use_or(std::span<const BufferView> in, int arg, const Use& other) const {
    return arg < 0 ? other.unused() : Use::read(view(in, arg));
  }
};

/// Sets `refusal` when the device cannot run it.
std::optional<Conv> conv_of(const MatchCall& m, std::string& refusal);

/// Parameters of shaders/conv.comp.
struct ConvParams {
  AfterParams after;
  uint32_t channels, made, groups;
  WindowParams window;
  uint32_t has;
};

/// Large convolutions of 3 x 3 without strides by Winograd's transforms.
Match match_conv_winograd(const MatchCall& m);

}  // namespace moka::devices::gpu
