// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/convolution.h"

namespace moka::import::nn {

namespace {

Result<Value*> convolve(Layer& l, Value* x, const Convolution& c) {
  std::vector<NamedArg> args = c.args(x, MOKA_TRY(weights_of(l, c, {c.out, c.in}, 0)));
  c.padding.append(args);
  MOKA_TRY(add_bias(l, args, c));
  Value* y = MOKA_TRY(l.op("conv", std::move(args)));
  return c.computed_bias == nullptr ? Result<Value*>(y) : with_bias(l, y, c);
}

Status convolution(Layer& l) {
  MOKA_TRY(l.arity(1, 3));
  const auto& p = l.p.convolution();
  Convolution c;
  c.in = p.kernelchannels();
  c.out = p.outputchannels();
  c.groups = std::max<uint64_t>(p.ngroups(), 1);
  if (c.groups > (uint64_t{1} << 31) - 1) return l.malformed(cat(c.groups, " groups"));
  c.kernel = MOKA_TRY(pair(l, p.kernelsize(), "kernel size", 3));
  c.stride = MOKA_TRY(pair(l, p.stride(), "stride", 1));
  c.dilation = MOKA_TRY(pair(l, p.dilationfactor(), "dilation", 1));
  if (p.has_same())
    c.padding = same_padding(p.same());
  else
    c.padding = MOKA_TRY(valid_padding(l, p.valid()));
  c.weights = &p.weights();
  if (p.hasbias()) c.bias = &p.bias();
  Value* x = MOKA_TRY(l.nchw(0));
  if (l.inputs() > 1) c.computed_weights = MOKA_TRY(l.with_rank(1, 4));
  if (l.inputs() > 2) c.computed_bias = MOKA_TRY(l.in(2));
  if (p.isdeconvolution()) {
    if (p.outputshape_size() != 0) c.output = MOKA_TRY(pair(l, p.outputshape(), "output shape", 1));
    return l.set(0, MOKA_TRY(deconvolve(l, x, c)), Form::nchw);
  }
  return l.set(0, MOKA_TRY(convolve(l, x, c)), Form::nchw);
}

Status convolution3d(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.convolution3d();
  Convolution c;
  c.in = static_cast<uint64_t>(std::max(p.inputchannels(), 0));
  c.out = static_cast<uint64_t>(std::max(p.outputchannels(), 0));
  c.groups = static_cast<uint64_t>(std::max(p.ngroups(), 1));
  c.kernel = Ints{p.kerneldepth(), p.kernelheight(), p.kernelwidth()};
  auto at_least_one = [](int v) { return static_cast<int64_t>(v == 0 ? 1 : v); };
  c.stride = Ints{at_least_one(p.stridedepth()), at_least_one(p.strideheight()), at_least_one(p.stridewidth())};
  c.dilation = Ints{at_least_one(p.dilationdepth()), at_least_one(p.dilationheight()), at_least_one(p.dilationwidth())};
  for (const Ints* list : {&c.kernel, &c.stride, &c.dilation})
    for (int64_t v : *list)
      if (v < 1) return l.malformed(cat("a kernel, stride or dilation of ", v));
  switch (p.paddingtype()) {
    case proto::Convolution3DLayerParams::VALID: break;
    case proto::Convolution3DLayerParams::SAME: c.padding.type = "same"; break;
    default:
      c.padding = {"custom", Ints{p.custompaddingfront(), p.custompaddingback(), p.custompaddingtop(),
                                  p.custompaddingbottom(), p.custompaddingleft(), p.custompaddingright()}};
      for (int64_t v : c.padding.pad)
        if (v < 0) return l.malformed(cat("a padding of ", v));
  }
  c.weights = &p.weights();
  if (p.hasbias()) c.bias = &p.bias();
  Value* x = MOKA_TRY(l.in(0));
  if (x->type.rank() != 5) return l.malformed(cat("expected an input of rank 5, got ", x->type));
  if (!p.isdeconvolution()) {
    c.in /= c.groups;
    return l.set(0, MOKA_TRY(convolve(l, x, c)));
  }
  if (p.outputshape_size() == 3) {
    for (uint64_t v : p.outputshape()) {
      if (v == 0 || v > (uint64_t{1} << 31)) return l.malformed(cat("an output size of ", v));
      c.output.push_back(static_cast<int64_t>(v));
    }
  } else if (p.outputshape_size() != 0) {
    return l.malformed(cat("expected 3 output sizes, got ", p.outputshape_size()));
  }
  return l.set(0, MOKA_TRY(deconvolve(l, x, c)));
}

}  // namespace

std::span<const LayerImport> layers_convolution() {
  static const LayerImport list[] = {
      {proto::NeuralNetworkLayer::kConvolution, "convolution", convolution},
      {proto::NeuralNetworkLayer::kConvolution3D, "convolution3d", convolution3d},
  };
  return list;
}

}  // namespace moka::import::nn
