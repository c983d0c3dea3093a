// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "import/onnx/operators/window.h"

namespace moka::import::onnx {

bool Window::is_padded() const {
  return std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; });
}

Window window_of(const Node& n, const Value* x, std::vector<int64_t> kernel) {
  Window w;
  w.kernel = n.integers_or("kernel_shape", std::move(kernel));
  const size_t axes = w.kernel.size();
  if (axes + 2 != static_cast<size_t>(n.rank(x)))
    n.malformed(cat("a window over ", axes, " axes of an input of rank ", n.rank(x)));
  w.strides = n.integers_or("strides", std::vector<int64_t>(axes, 1));
  w.dilations = n.integers_or("dilations", std::vector<int64_t>(axes, 1));
  const std::vector<int64_t> pads = n.integers_or("pads", std::vector<int64_t>(2 * axes, 0));
  if (w.strides.size() != axes || w.dilations.size() != axes || pads.size() != 2 * axes)
    n.malformed("strides, dilations or pads have another number of axes than the kernel");
  constexpr int64_t most = int64_t{1} << 24;
  const auto fits = [](int64_t least) { return [least](int64_t v) { return v >= least && v <= most; }; };
  for (const auto* list : {&w.kernel, &w.strides, &w.dilations})
    if (!std::all_of(list->begin(), list->end(), fits(1))) n.malformed("kernel, strides and dilations begin at 1");
  if (!std::all_of(pads.begin(), pads.end(), fits(-most))) n.malformed("pads are too large");
  w.pads.assign(2 * axes, 0);
  const std::string mode = n.text_or("auto_pad", "NOTSET");
  w.pad_type = "custom";
  if (mode == "NOTSET")
    for (size_t i = 0; i < axes; ++i) w.pads[2 * i] = pads[i], w.pads[2 * i + 1] = pads[axes + i];
  if (mode == "VALID") w.pad_type = "valid";
  if (mode == "SAME_UPPER") w.pad_type = "same";
  if (mode == "SAME_LOWER") w.pad_type = "same_lower";
  if (!w.is_padded() && w.pad_type == "custom") w.pad_type = "valid";
  // If the sizes are known, the padding is, too.
  if (w.pad_type.starts_with("same"))
    for (size_t i = 0; i < axes; ++i) {
      const int64_t d = x->type.shape()[static_cast<int>(i) + 2];
      if (d < 0) return w;
      const int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
      const int64_t total =
          std::max<int64_t>(0, ((d + w.strides[i] - 1) / w.strides[i] - 1) * w.strides[i] + reach - d);
      const bool lower = w.pad_type == "same_lower";
      w.pads[2 * i] = lower ? total - total / 2 : total / 2;
      w.pads[2 * i + 1] = total - w.pads[2 * i];
    }
  if (w.pad_type.starts_with("same")) w.pad_type = w.is_padded() ? "custom" : "valid";
  return w;
}

Value* padded(const Node& n, Value* x, const std::vector<int64_t>& pads, double value) {
  std::vector<int64_t> all(2 * static_cast<size_t>(n.rank(x)) - pads.size(), 0);
  all.insert(all.end(), pads.begin(), pads.end());
  return n.op("pad", {{"x", x}, {"pad", Tensor::i32(all)}, {"mode", "constant"}, n.arg("constant_val", value, x)});
}

Value* with_bias(const Node& n, Value* x, Value* bias) {
  std::vector<int64_t> dims(static_cast<size_t>(n.rank(x)), 1);
  dims[1] = -1;
  return n.add(x, n.reshape(bias, dims));
}

namespace {

std::vector<int64_t> kernel_of(const Node& n, const Value* w) {
  const std::vector<int64_t> dims = n.known_shape(w, "a convolution's weight").to_vector();
  if (dims.size() < 3) n.malformed(cat("a weight of shape ", w->type));
  return {dims.begin() + 2, dims.end()};
}

}  // namespace

Value* convolution(const Node& n, Value* x, Value* weight, Value* bias) {
  const Window w = window_of(n, x, kernel_of(n, weight));
  if (w.kernel.size() > 3) n.unsupported(cat("a convolution over ", w.kernel.size(), " axes"));
  std::vector<NamedArg> args{{"x", x}};
  args.emplace_back("weight", weight);
  args.emplace_back("strides", Tensor::i32(w.strides));
  args.emplace_back("pad_type", w.pad_type);
  if (w.pad_type == "custom") args.emplace_back("pad", Tensor::i32(w.pads));
  args.emplace_back("dilations", Tensor::i32(w.dilations));
  args.emplace_back("groups", static_cast<int>(n.integer_or("group", 1)));
  if (bias != nullptr) args.emplace_back("bias", bias);
  return n.op("conv", std::move(args));
}

namespace {

void conv(Node& n) {
  Value *x = n.in(0), *weight = n.in(1), *bias = n.has(2) ? n.in(2) : nullptr;
  const bool is_constant = bias != nullptr && n.constant(2) != nullptr;
  Value* v = convolution(n, x, weight, is_constant ? bias : nullptr);
  n.set(0, bias != nullptr && !is_constant ? with_bias(n, v, bias) : v);
}

/// The padding of a transposed convolution: how much is cut off its full result at the begin and end of each axis, and
/// how much is then appended.
struct Cut {
  std::vector<int64_t> pads, extra;
};

Cut cut_of(const Node& n, const Value* x, const Window& w) {
  const size_t axes = w.kernel.size();
  Cut out{w.pads, n.integers_or("output_padding", std::vector<int64_t>(axes, 0))};
  if (out.extra.size() != axes) n.malformed("output_padding has another number of axes than the kernel");
  const std::string mode = n.text_or("auto_pad", "NOTSET");
  const std::vector<int64_t> wanted = n.integers_or("output_shape");
  if (mode == "VALID") out.pads.assign(2 * axes, 0);
  if (wanted.empty() && mode != "SAME_UPPER" && mode != "SAME_LOWER") return out;
  const Shape& s = n.known_shape(x, "ConvTranspose with an output_shape or auto_pad");
  for (size_t i = 0; i < axes; ++i) {
    const int64_t d = s[static_cast<int>(i) + 2];
    const int64_t size = wanted.empty() ? d * w.strides[i] : wanted[wanted.size() - axes + i];
    const int64_t full = w.strides[i] * (d - 1) + out.extra[i] + (w.kernel[i] - 1) * w.dilations[i] + 1;
    const int64_t total = full - size;
    // The larger half is at the end for SAME_UPPER and at the beginning otherwise.
    const int64_t begin = total < 0 ? 0 : mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    out.pads[2 * i] = begin;
    out.pads[2 * i + 1] = total - begin;
  }
  return out;
}

void conv_transpose(Node& n) {
  Value *x = n.in(0), *weight = n.in(1);
  Window w = window_of(n, x, kernel_of(n, weight));
  const Cut cut = cut_of(n, x, w);
  std::vector<NamedArg> args{{"x", x}};
  args.emplace_back("weight", weight);
  args.emplace_back("strides", Tensor::i32(w.strides));
  args.emplace_back("pad_type", "valid");
  args.emplace_back("dilations", Tensor::i32(w.dilations));
  args.emplace_back("groups", static_cast<int>(n.integer_or("group", 1)));
  const bool bias_last = n.has(2) && n.constant(2) == nullptr;
  // MIL has no output padding: the end of the full result is cut off less, or padded with the bias.
  std::vector<int64_t> more, pads = cut.pads;
  bool grows = false, cuts = false;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    int64_t end = pads[2 * i + 1] - cut.extra[i];
    more.push_back(0);
    more.push_back(std::max<int64_t>(0, -end));
    pads[2 * i + 1] = std::max<int64_t>(0, end);
    if (pads[2 * i] < 0) more[2 * i] = -pads[2 * i], pads[2 * i] = 0;
    grows |= more[2 * i + 1] > 0 || more[2 * i] > 0;
    cuts |= pads[2 * i] > 0 || pads[2 * i + 1] > 0;
  }
  if (cuts) {
    for (NamedArg& a : args)
      if (a.name == "pad_type") a = NamedArg("pad_type", "custom");
    args.emplace_back("pad", Tensor::i32(pads));
  }
  if (n.has(2) && !bias_last && !grows) args.emplace_back("bias", n.in(2));
  Value* v = n.op("conv_transpose", std::move(args));
  if (grows) v = padded(n, v, more, 0);
  n.set(0, n.has(2) && (bias_last || grows) ? with_bias(n, v, n.in(2)) : v);
}

constexpr OperatorImport kConvolutionOperators[] = {{"Conv", conv}, {"ConvTranspose", conv_transpose}};

}  // namespace

std::span<const OperatorImport> operators_convolution() { return kConvolutionOperators; }

}  // namespace moka::import::onnx
