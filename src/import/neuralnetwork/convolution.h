// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/neuralnetwork/spatial.h"

/// Shared by convolutions and deconvolutions.
namespace moka::import::nn {

/// The parameters of a convolution or deconvolution with n spatial axes.
struct Convolution {
  uint64_t in = 0, out = 0, groups = 1;
  Ints kernel, stride, dilation;
  Padding padding;
  Ints output;  ///< spatial sizes of a deconvolution's output; empty: the padding determines them
  const proto::WeightParams* weights = nullptr;
  const proto::WeightParams* bias = nullptr;
  Value* computed_weights = nullptr;  ///< in place of `weights`
  Value* computed_bias = nullptr;     ///< in place of `bias`, of rank 1 or [channels, 1, ...]

  std::vector<NamedArg> args(Value* x, Value* weight) const {
    return {{"x", x},
            {"weight", weight},
            {"strides", stride},
            {"dilations", dilation},
            {"groups", static_cast<int>(groups)}};
  }
};

/// Adds the bias as a parameter, unless it is computed.
Status add_bias(Layer& l, std::vector<NamedArg>& args, const Convolution& c);
/// The weights, [channels..., kernel...].
Result<Value*> weights_of(Layer& l, const Convolution& c, std::initializer_list<uint64_t> channels, int channel_axis);
/// Adds the bias as an operation of its own, with a size of 1 along each spatial axis.
Result<Value*> with_bias(Layer& l, Value* y, const Convolution& c);

/// `x`: [batch, channels, spatial axes].
Result<Value*> deconvolve(Layer& l, Value* x, const Convolution& c);

}  // namespace moka::import::nn
