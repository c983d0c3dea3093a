#include "import/neuralnetwork/spatial.h"

namespace moka::import::nn {

namespace {

/// Whether the last window may lie past the input, where it has no maximum and no mean. Without padding, Core ML's rule
/// drops no window, so this happens when the stride exceeds the window size.
Result<bool> windows_may_miss(const Layer& l, Value* x, const Ints& kernel, const Ints& stride, const Ints& pad) {
  bool may = false;
  for (int i = 0; i < 2 && pad[0] == 0 && pad[1] == 0; i++) {
    int64_t size = x->type.shape()[2 + i];
    if (stride[i] <= kernel[i]) continue;
    if (size > kernel[i] && (size - kernel[i] + stride[i] - 1) / stride[i] * stride[i] >= size)
      return l.unsupported(cat("includeLastPixel without padding, kernel size ", kernel[i], ", stride ", stride[i],
                               ": the last window would lie behind an input of size ", size));
    may |= size < 0;
  }
  return may;
}

/// Returns y with a run-time check that all its windows begin inside x.
Result<Value*> expect_windows(Layer& l, Value* x, Value* y, const Ints& kernel, const Ints& stride) {
  const std::string name = cat(l.p.name(), "_with_windows_inside_the_input");
  std::vector<Dim> of_x = dims_of(x), of_y = dims_of(y);
  // The formula (size + shift) / stride + 1 counts all windows that begin inside or, where windows overlap, as many as
  // cover the input.
  auto shift = [&](int i) { return stride[i] > kernel[i] ? -1 : stride[i] - kernel[i] - 1; };
  Value* lead = MOKA_TRY(l.net.shape_value(std::span(of_y).first(2), name));
  Value* n = MOKA_TRY(l.net.shape_value(std::span(of_x).subspan(2), name));
  n = MOKA_TRY(l.net.op("add", {{"x", n}, {"y", Tensor::i32({shift(0), shift(1)})}}, name));
  n = MOKA_TRY(l.net.op("floor_div", {{"x", n}, {"y", Tensor::i32({stride[0], stride[1]})}}, name));
  n = MOKA_TRY(l.net.op("add", {{"x", n}, {"y", 1}}, name));
  Value* shape = MOKA_TRY(l.net.op("concat", {{"values", std::vector<Value*>{lead, n}}, {"axis", 0}}, name));
  return l.net.op("reshape", {{"x", y}, {"shape", shape}}, name, &y->type);
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
  bool ceil = false, check_windows = false;
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
    check_windows = MOKA_TRY(windows_may_miss(l, x, kernel, stride, pad));
    padding = {"custom", Ints{pad[0], pad[0], pad[1], pad[1]}};
    ceil = true;
  } else {
    padding = MOKA_TRY(valid_padding(l, p.valid()));
  }
  Value* y = MOKA_TRY(pool(l, x, op, kernel, stride, padding, p.avgpoolexcludepadding(), ceil));
  if (check_windows) y = MOKA_TRY(expect_windows(l, x, y, kernel, stride));
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
