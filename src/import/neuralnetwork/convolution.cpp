// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/convolution.h"

namespace moka::import::nn {

namespace {

Shape weight_shape(const Shape& channels, const Ints& kernel) {
  Shape s = channels;
  for (int64_t k : kernel) s.push_back(k);
  return s;
}

}  // namespace

Status add_bias(Layer& l, std::vector<NamedArg>& args, const Convolution& c) {
  if (c.bias == nullptr || c.computed_bias != nullptr) return {};
  Shape shape = MOKA_TRY(l.shape({c.out}, "bias"));
  args.emplace_back("bias", MOKA_TRY(l.weight(*c.bias, shape, "bias")));
  return {};
}

Result<Value*> weights_of(Layer& l, const Convolution& c, std::initializer_list<uint64_t> channels, int channel_axis) {
  if (c.computed_weights != nullptr) return c.computed_weights;
  return l.weight(*c.weights, weight_shape(MOKA_TRY(l.shape(channels, "weights")), c.kernel), "weights", channel_axis);
}

Result<Value*> with_bias(Layer& l, Value* y, const Convolution& c) {
  Value* b = c.computed_bias;
  if (b != nullptr && b->type.rank() == 1) {
    Ints axes;
    for (int i = 0; i < c.kernel.size(); i++) axes.push_back(1 + i);
    b = MOKA_TRY(l.op("expand_dims", {{"x", b}, {"axes", axes}}));
  } else if (b == nullptr && c.bias != nullptr) {
    Shape shape = MOKA_TRY(l.shape({c.out}, "bias"));
    for (int i = 0; i < c.kernel.size(); i++) shape.push_back(1);
    b = MOKA_TRY(l.weight(*c.bias, shape, "bias"));
  }
  return b == nullptr ? Result<Value*>(y) : l.op("add", {{"x", y}, {"y", b}});
}

}  // namespace moka::import::nn
