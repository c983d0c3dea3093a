// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/spatial.h"

namespace moka::import::nn {

namespace {

/// Sets the padding for the number of windows that Core ML's rule for includeLastPixel gives without padding: all
/// windows that are needed to reach the last pixel, and one behind the input if the stride leaps over the last pixel.
/// That one has no maximum, and its mean is 0.
Result<bool> pad_for_last_window(const Layer& l, Value* x, const Ints& kernel, const Ints& stride, Padding& padding) {
  Ints end{0, 0};
  bool is_behind = false, is_known = true;
  for (int i = 0; i < 2; i++) {
    const int64_t size = x->type.shape()[2 + i];
    is_known &= size >= 0;
    const int64_t steps = std::max<int64_t>(size - kernel[i] + stride[i] - 1, 0) / stride[i];
    end[i] = steps * stride[i] + kernel[i] - size;
    is_behind |= size < 0 ? stride[i] > kernel[i] : end[i] >= kernel[i];
  }
  if (!is_behind) return false;
  if (!is_known)
    return l.unsupported(cat("includeLastPixel without padding, kernel size ", kernel[0], " x ", kernel[1], ", stride ",
                             stride[0], " x ", stride[1], ", for an input of unknown size"));
  padding = {"custom", Ints{0, end[0], 0, end[1]}};
  return true;
}

Result<Value*> pool(Layer& l, Value* x, std::string_view op, const Ints& kernel, const Ints& stride,
                    const Padding& padding, bool exclude, bool ceil) {
  std::vector<NamedArg> args{{"x", x}, {"kernel_sizes", kernel}, {"strides", stride}};
  padding.append(args);
  if (op == "avg_pool") args.emplace_back("exclude_padding_from_average", exclude);
  if (ceil) args.emplace_back("ceil_mode", true);
  return l.op(op, std::move(args));
}

Status global(Layer& l, Value* x, std::string_view op, const Ints& axes) {
  std::string_view reduce = op == "avg_pool" ? "reduce_mean" : op == "max_pool" ? "reduce_max" : "reduce_l2_norm";
  Value* y = MOKA_TRY(l.op(reduce, {{"x", x}, {"axes", axes}, {"keep_dims", true}}));
  return axes.size() == 2 ? l.set(0, y, Form::nchw) : l.set(0, y);
}

Status pooling(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.pooling();
  std::string_view op;
  switch (p.type()) {
    case proto::PoolingLayerParams::MAX: op = "max_pool"; break;
    case proto::PoolingLayerParams::AVERAGE: op = "avg_pool"; break;
    case proto::PoolingLayerParams::L2: op = "l2_pool"; break;
    default: return l.malformed(cat("unknown pooling type ", static_cast<int>(p.type())));
  }
  Value* x = MOKA_TRY(l.nchw(0));
  if (p.globalpooling()) return global(l, x, op, Ints{2, 3});
  Ints kernel = MOKA_TRY(pair(l, p.kernelsize(), "kernel size", 3));
  Ints stride = MOKA_TRY(pair(l, p.stride(), "stride", 1));
  Padding padding;
  bool ceil = false;
  if (p.has_same()) {
    padding = same_padding(p.same());
  } else if (p.has_includelastpixel()) {
    const auto& amounts = p.includelastpixel().paddingamounts();
    Ints pad{0, 0};
    if (amounts.size() != 0 && amounts.size() != 2)
      return l.malformed(cat("includeLastPixel: expected 2 paddings, got ", amounts.size()));
    for (int i = 0; i < amounts.size(); i++) {
      if (amounts[i] > (uint64_t{1} << 31) - 1) return l.malformed(cat("includeLastPixel: a padding of ", amounts[i]));
      pad[i] = static_cast<int64_t>(amounts[i]);
    }
    padding = {"custom", Ints{pad[0], pad[0], pad[1], pad[1]}};
    ceil = pad[0] != 0 || pad[1] != 0 || !MOKA_TRY(pad_for_last_window(l, x, kernel, stride, padding));
  } else {
    padding = MOKA_TRY(valid_padding(l, p.valid()));
  }
  Value* y = MOKA_TRY(pool(l, x, op, kernel, stride, padding, p.avgpoolexcludepadding(), ceil));
  return l.set(0, y, Form::nchw);
}

Status pooling3d(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.pooling3d();
  auto at_least_one = [](int v) { return static_cast<int64_t>(v == 0 ? 1 : v); };
  Ints kernel{p.kerneldepth(), p.kernelheight(), p.kernelwidth()};
  Ints stride{at_least_one(p.stridedepth()), at_least_one(p.strideheight()), at_least_one(p.stridewidth())};
  for (const Ints* list : {&kernel, &stride})
    for (int64_t v : *list)
      if (v < 1) return l.malformed(cat("a kernel or stride of ", v));
  Padding padding;
  switch (p.paddingtype()) {
    case proto::Pooling3DLayerParams::VALID: break;
    case proto::Pooling3DLayerParams::SAME: padding.type = "same"; break;
    default:
      padding = {"custom", Ints{p.custompaddingfront(), p.custompaddingback(), p.custompaddingtop(),
                                p.custompaddingbottom(), p.custompaddingleft(), p.custompaddingright()}};
      for (int64_t v : padding.pad)
        if (v < 0) return l.malformed(cat("a padding of ", v));
  }
  Value* x = MOKA_TRY(l.in(0));
  if (x->type.rank() != 5) return l.malformed(cat("expected an input of rank 5, got ", x->type));
  std::string_view op = p.type() == proto::Pooling3DLayerParams::MAX ? "max_pool" : "avg_pool";
  return l.set(0, MOKA_TRY(pool(l, x, op, kernel, stride, padding, p.countexcludepadding(), false)));
}

Status global_pooling3d(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  Value* x = MOKA_TRY(l.in(0));
  if (x->type.rank() != 5) return l.malformed(cat("expected an input of rank 5, got ", x->type));
  bool max = l.p.globalpooling3d().type() == proto::GlobalPooling3DLayerParams::MAX;
  return global(l, x, max ? "max_pool" : "avg_pool", Ints{2, 3, 4});
}

}  // namespace

std::span<const LayerImport> layers_pooling() {
  static const LayerImport list[] = {
      {proto::NeuralNetworkLayer::kPooling, "pooling", pooling},
      {proto::NeuralNetworkLayer::kPooling3D, "pooling3d", pooling3d},
      {proto::NeuralNetworkLayer::kGlobalPooling3D, "globalPooling3d", global_pooling3d},
  };
  return list;
}

}  // namespace moka::import::nn
