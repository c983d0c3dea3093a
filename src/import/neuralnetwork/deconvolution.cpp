// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "import/neuralnetwork/convolution.h"

namespace moka::import::nn {

namespace {

/// Amounts [before, after] per spatial axis to cut off the full deconvolution. Negative amounts add zeros.
Ints deconvolution_cuts(const Value* x, const Convolution& c) {
  Ints cuts;
  int n = c.kernel.size();
  for (int i = 0; i < n; i++) {
    int64_t kernel = (c.kernel[i] - 1) * c.dilation[i] + 1;
    int64_t total;
    if (!c.output.empty()) {
      const int64_t size = x->type.shape()[2 + i];
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

/// The middle of the full result, of the layer's output shape, for an input whose size is known only at run time. The
/// result may be the smaller one, so zeros are added on all sides before the cut.
Result<Value*> cut_at_run_time(Layer& l, Value* full, const Convolution& c) {
  const int n = c.kernel.size();
  std::vector<int64_t> sizes, margins;
  Ints pad{0, 0, 0, 0}, size{-1, -1};
  for (int64_t out : c.output) {
    sizes.push_back(out);
    margins.push_back(out);
    for (int side = 0; side < 2; side++) pad.push_back(out);
    size.push_back(out);
  }
  const std::vector<Dim> dims = dims_of(full);
  Value* spare = MOKA_TRY(l.net.shape_value(std::span(dims).last(static_cast<size_t>(n)), l.p.name()));
  spare = MOKA_TRY(l.op("sub", {{"x", spare}, {"y", Tensor::i32(sizes)}}));
  spare = MOKA_TRY(l.op("floor_div", {{"x", spare}, {"y", 2}}));
  spare = MOKA_TRY(l.op("add", {{"x", spare}, {"y", Tensor::i32(margins)}}));
  Value* zeros = MOKA_TRY(l.constant(Tensor::i32({0, 0}), "begin"));
  Value* begin = MOKA_TRY(l.op("concat", {{"values", std::vector<Value*>{zeros, spare}}, {"axis", 0}}));
  Value* wide = MOKA_TRY(l.op("pad", {{"x", full}, {"pad", pad}, {"mode", "constant"}, {"constant_val", 0.0f}}));
  return l.op("slice_by_size", {{"x", wide}, {"begin", begin}, {"size", size}});
}

/// The full result without what the padding or the output shape cuts off.
Result<Value*> cut(Layer& l, const Value* x, Value* full, const Convolution& c) {
  bool known = true;
  for (int i = 0; i < c.kernel.size(); i++) known &= x->type.shape()[2 + i] >= 0;
  if (!c.output.empty() && !known) return cut_at_run_time(l, full, c);
  const Ints cuts = deconvolution_cuts(x, c);
  Ints grow{0, 0, 0, 0}, begin{0, 0}, end{0, 0};
  std::vector<bool> to_end{true, true};
  for (int i = 0; i < cuts.size(); i += 2) {
    for (int side = 0; side < 2; side++) grow.push_back(std::max<int64_t>(-cuts[i + side], 0));
    begin.push_back(std::max<int64_t>(cuts[i], 0));
    end.push_back(-std::max<int64_t>(cuts[i + 1], 0));
    to_end.push_back(cuts[i + 1] <= 0);
  }
  Tensor mask = MOKA_TRY(Tensor::zeros(DType::boolean, Shape{static_cast<int64_t>(to_end.size())}));
  std::copy(to_end.begin(), to_end.end(), mask.mut<uint8_t>().begin());
  Value* y = MOKA_TRY(l.op("pad", {{"x", full}, {"pad", grow}, {"mode", "constant"}, {"constant_val", 0.0f}}));
  return l.op("slice_by_index", {{"x", y}, {"begin", begin}, {"end", end}, {"end_mask", mask}});
}

/// Puts zeros between the elements along spatial axis `i`, stride - 1 of them.
Result<Value*> spread(Layer& l, Value* x, int i, int64_t stride) {
  if (stride == 1) return x;
  const int rank = x->type.rank(), axis = 2 + i;
  Ints pad, begin, end;
  Tensor whole = MOKA_TRY(Tensor::zeros(DType::boolean, Shape{rank}));
  for (int k = 0; k <= rank; k++) {
    pad.push_back(0);
    pad.push_back(k == axis + 1 ? stride - 1 : 0);
  }
  for (int k = 0; k < rank; k++) {
    begin.push_back(0);
    end.push_back(k == axis ? 1 - stride : 0);
    whole.mut<uint8_t>()[static_cast<size_t>(k)] = k != axis;
  }
  const std::vector<Dim> dims = dims_of(x);
  const std::span<const Dim> all(dims);
  std::vector<Value*> parts{MOKA_TRY(l.net.shape_value(all.first(static_cast<size_t>(axis)), l.p.name())),
                            MOKA_TRY(l.constant(Tensor::i32({-1}), "spread"))};
  if (axis + 1 < rank)
    parts.push_back(MOKA_TRY(l.net.shape_value(all.subspan(static_cast<size_t>(axis) + 1), l.p.name())));
  Value* shape = MOKA_TRY(l.op("concat", {{"values", parts}, {"axis", 0}}));
  Value* y = MOKA_TRY(l.op("expand_dims", {{"x", x}, {"axes", Ints{axis + 1}}}));
  y = MOKA_TRY(l.op("pad", {{"x", y}, {"pad", pad}, {"mode", "constant"}, {"constant_val", 0.0f}}));
  y = MOKA_TRY(l.op("reshape", {{"x", y}, {"shape", shape}}));
  return l.op("slice_by_index", {{"x", y}, {"begin", begin}, {"end", end}, {"end_mask", whole}});
}

/// A deconvolution whose weights are computed: a convolution of the input, with zeros between its elements, by the
/// weights in reverse. The weights become [out, in / groups, kernel...].
Result<Value*> deconvolve_by_convolution(Layer& l, Value* x, const Convolution& c) {
  const int n = c.kernel.size();
  const auto groups = static_cast<int64_t>(c.groups), in = static_cast<int64_t>(c.in) / groups;
  const auto out = static_cast<int64_t>(c.out) / groups;
  if (static_cast<int64_t>(c.in) % groups != 0)
    return l.malformed(cat(c.in, " input channels do not divide into ", groups, " groups"));
  Ints split{groups, in, out}, turn{0, 2, 1}, joined{groups * out, in}, axes, pad;
  for (int i = 0; i < n; i++) {
    split.push_back(c.kernel[i]);
    turn.push_back(3 + i);
    joined.push_back(c.kernel[i]);
    axes.push_back(2 + i);
    for (int side = 0; side < 2; side++) pad.push_back((c.kernel[i] - 1) * c.dilation[i]);
  }
  Value* w = MOKA_TRY(l.op("reshape", {{"x", c.computed_weights}, {"shape", split}}));
  w = MOKA_TRY(l.op("transpose", {{"x", w}, {"perm", turn}}));
  w = MOKA_TRY(l.op("reshape", {{"x", w}, {"shape", joined}}));
  w = MOKA_TRY(l.op("reverse", {{"x", w}, {"axes", axes}}));
  Value* wide = x;
  for (int i = 0; i < n; i++) wide = MOKA_TRY(spread(l, wide, i, c.stride[i]));
  Value* y = MOKA_TRY(l.op("conv", {{"x", wide},
                                    {"weight", w},
                                    {"dilations", c.dilation},
                                    {"groups", static_cast<int>(c.groups)},
                                    {"pad_type", "custom"},
                                    {"pad", pad}}));
  return with_bias(l, MOKA_TRY(cut(l, x, y, c)), c);
}

}  // namespace

Result<Value*> deconvolve(Layer& l, Value* x, const Convolution& c) {
  if (c.out % c.groups != 0)
    return l.malformed(cat(c.out, " output channels do not divide into ", c.groups, " groups"));
  if (c.computed_weights != nullptr) return deconvolve_by_convolution(l, x, c);
  Value* w = MOKA_TRY(weights_of(l, c, {c.in, c.out / c.groups}, 1));
  bool known = true;
  for (int i = 0; i < c.kernel.size(); i++) known &= x->type.shape()[2 + i] >= 0;
  if (!c.output.empty() && !known) {
    Value* full = MOKA_TRY(l.op("conv_transpose", c.args(x, w)));
    return with_bias(l, MOKA_TRY(cut_at_run_time(l, full, c)), c);
  }
  const Ints cuts = deconvolution_cuts(x, c);
  Ints pad, grow;
  bool grows = false, pads = false;
  for (int64_t cut : cuts) {
    pad.push_back(std::max<int64_t>(cut, 0));
    grow.push_back(std::max<int64_t>(-cut, 0));
    grows |= cut < 0;
    pads |= cut > 0;
  }
  std::vector<NamedArg> args = c.args(x, w);
  (pads ? Padding{"custom", pad} : Padding{}).append(args);
  if (!grows) MOKA_TRY(add_bias(l, args, c));
  Value* y = MOKA_TRY(l.op("conv_transpose", std::move(args)));
  if (!grows) return y;
  Ints amounts{0, 0, 0, 0};
  for (int64_t g : grow) amounts.push_back(g);
  y = MOKA_TRY(l.op("pad", {{"x", y}, {"pad", amounts}, {"mode", "constant"}, {"constant_val", 0.0f}}));
  return with_bias(l, y, c);
}

}  // namespace moka::import::nn
