#include "import/neuralnetwork/spatial.h"

namespace moka::import::nn {

namespace {

constexpr std::string_view kAxes[3] = {"depth", "height", "width"};

/// The parameters of a convolution or deconvolution with n spatial axes.
struct Convolution {
  uint64_t in = 0, out = 0, groups = 1;
  Ints kernel, stride, dilation;
  Padding padding;
  Ints output;  ///< spatial sizes of a deconvolution's output; empty: the padding determines them
  const proto::WeightParams* weights = nullptr;
  const proto::WeightParams* bias = nullptr;
};

Status add_bias(Layer& l, std::vector<NamedArg>& args, const Convolution& c) {
  if (c.bias == nullptr) return {};
  Shape shape = MOKA_TRY(l.shape({c.out}, "bias"));
  args.emplace_back("bias", MOKA_TRY(l.weight(*c.bias, shape, "bias")));
  return {};
}

Shape weight_shape(const Shape& channels, const Ints& kernel) {
  Shape s = channels;
  for (int64_t k : kernel) s.push_back(k);
  return s;
}

Result<Value*> convolve(Layer& l, Value* x, const Convolution& c) {
  Shape shape = weight_shape(MOKA_TRY(l.shape({c.out, c.in}, "weights")), c.kernel);
  Value* w = MOKA_TRY(l.weight(*c.weights, shape, "weights"));
  std::vector<NamedArg> args{{"x", x},
                             {"weight", w},
                             {"strides", c.stride},
                             {"dilations", c.dilation},
                             {"groups", static_cast<int>(c.groups)}};
  c.padding.append(args);
  MOKA_TRY(add_bias(l, args, c));
  return l.op("conv", std::move(args));
}

/// Amounts [before, after] per spatial axis to cut off the full deconvolution. Negative amounts add zeros.
Result<Ints> deconvolution_cuts(Layer& l, Value* x, const Convolution& c) {
  Ints cuts;
  int n = c.kernel.size();
  for (int i = 0; i < n; i++) {
    int64_t kernel = (c.kernel[i] - 1) * c.dilation[i] + 1;
    int64_t total;
    if (!c.output.empty()) {
      int64_t size = x->type.shape()[2 + i];
      if (size < 0)
        return l.unsupported(cat("a deconvolution's output shape for an input of unknown ", kAxes[3 - n + i]));
      total = (size - 1) * c.stride[i] + kernel - c.output[i];
    } else if (c.padding.type == "valid") {
      total = 0;
    } else if (c.padding.type == "custom") {
      cuts.push_back(c.padding.pad[2 * i]);
      cuts.push_back(c.padding.pad[2 * i + 1]);
      continue;
    } else {
      total = kernel - c.stride[i];
    }
    int64_t less = total >= 0 ? total / 2 : -((-total + 1) / 2);
    bool start_heavy = c.padding.type == "same_lower" && c.output.empty();
    cuts.push_back(start_heavy ? total - less : less);
    cuts.push_back(start_heavy ? less : total - less);
  }
  return cuts;
}

Result<Value*> deconvolve(Layer& l, Value* x, const Convolution& c) {
  if (c.out % c.groups != 0)
    return l.malformed(cat(c.out, " output channels do not divide into ", c.groups, " groups"));
  Shape shape = weight_shape(MOKA_TRY(l.shape({c.in, c.out / c.groups}, "weights")), c.kernel);
  Value* w = MOKA_TRY(l.weight(*c.weights, shape, "weights", 1));
  Ints cuts = MOKA_TRY(deconvolution_cuts(l, x, c));
  Ints pad, grow;
  bool grows = false, pads = false;
  for (int64_t cut : cuts) {
    pad.push_back(std::max<int64_t>(cut, 0));
    grow.push_back(std::max<int64_t>(-cut, 0));
    grows |= cut < 0;
    pads |= cut > 0;
  }
  std::vector<NamedArg> args{{"x", x},
                             {"weight", w},
                             {"strides", c.stride},
                             {"dilations", c.dilation},
                             {"groups", static_cast<int>(c.groups)}};
  (pads ? Padding{"custom", pad} : Padding{}).append(args);
  if (!grows) MOKA_TRY(add_bias(l, args, c));
  Value* y = MOKA_TRY(l.op("conv_transpose", std::move(args)));
  if (!grows) return y;
  Ints amounts{0, 0, 0, 0};
  for (int64_t g : grow) amounts.push_back(g);
  y = MOKA_TRY(l.op("pad", {{"x", y}, {"pad", amounts}, {"mode", "constant"}, {"constant_val", 0.0f}}));
  if (c.bias == nullptr) return y;
  Shape bias = weight_shape(MOKA_TRY(l.shape({c.out}, "bias")), {});
  for (int i = 0; i < c.kernel.size(); i++) bias.push_back(1);
  Value* b = MOKA_TRY(l.weight(*c.bias, bias, "bias"));
  return l.op("add", {{"x", y}, {"y", b}});
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
  if (l.inputs() > 1) {
    if (p.isdeconvolution()) return l.unsupported("a deconvolution whose weights are an input");
    Value* weight = MOKA_TRY(l.in(1));
    std::vector<NamedArg> args{{"x", x},
                               {"weight", weight},
                               {"strides", c.stride},
                               {"dilations", c.dilation},
                               {"groups", static_cast<int>(c.groups)}};
    c.padding.append(args);
    if (l.inputs() == 2) MOKA_TRY(add_bias(l, args, c));
    Value* y = MOKA_TRY(l.op("conv", std::move(args)));
    if (l.inputs() > 2) {
      Value* bias = MOKA_TRY(l.in(2));
      if (bias->type.rank() == 1) bias = MOKA_TRY(l.op("expand_dims", {{"x", bias}, {"axes", Ints{1, 2}}}));
      y = MOKA_TRY(l.op("add", {{"x", y}, {"y", bias}}));
    }
    return l.set(0, y, Form::nchw);
  }
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
