// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/onnx/call.h"
#include "ops/common/convolution.h"

namespace moka::compiler::onnx {
namespace {

std::vector<int64_t> list(const ir::Ints& v) { return {v.begin(), v.end()}; }

/// The attributes of a window apart from padding.
std::vector<ox::Attribute> window_attributes(const ops::Window& w) {
  std::vector<ox::Attribute> out;
  const auto several = [](const ir::Ints& v) {
    return std::any_of(v.begin(), v.end(), [](int64_t x) { return x != 1; });
  };
  if (std::all_of(w.kernel.begin(), w.kernel.end(), [](int64_t k) { return k >= 0; }))
    out.push_back(attr("kernel_shape", list(w.kernel)));
  if (several(w.strides)) out.push_back(attr("strides", list(w.strides)));
  if (several(w.dilations)) out.push_back(attr("dilations", list(w.dilations)));
  if (w.groups != 1) out.push_back(attr("group", w.groups));
  return out;
}

bool is_known(const ops::Window& w) {
  for (int i = 0; i < w.rank; i++)
    if (w.in[i] < 0 || w.out[i] < 0) return false;
  return true;
}

/// Adds the padding of a convolution. Windows of unknown sizes with the padding `same` use auto_pad.
void add_padding(Call& c, const ops::Window& w, std::vector<ox::Attribute>& attributes) {
  const std::string type = c.text("pad_type");
  std::vector<int64_t> begin(static_cast<size_t>(w.rank)), end(static_cast<size_t>(w.rank));
  if (type == "custom") {
    const std::vector<int64_t> pad = c.has("pad") ? c.ints("pad") : std::vector<int64_t>();
    for (size_t i = 0; 2 * i + 1 < pad.size() && i < begin.size(); i++) begin[i] = pad[2 * i], end[i] = pad[2 * i + 1];
  } else if (type != "valid") {
    const bool lower = type == "same_lower";
    const bool unit = std::all_of(w.strides.begin(), w.strides.end(), [](int64_t s) { return s == 1; });
    if (!is_known(w) && !unit) {
      attributes.push_back(attr("auto_pad", lower ? "SAME_LOWER" : "SAME_UPPER"));
      return;
    }
    for (int i = 0; i < w.rank; i++) {
      const auto at = static_cast<size_t>(i);
      const int64_t total =
          unit ? w.extent(i) - 1 : std::max<int64_t>(0, (w.out[i] - 1) * w.strides[i] + w.extent(i) - w.in[i]);
      begin[at] = lower ? (total + 1) / 2 : total / 2;
      end[at] = total - begin[at];
    }
  }
  begin.insert(begin.end(), end.begin(), end.end());
  if (std::any_of(begin.begin(), begin.end(), [](int64_t p) { return p != 0; }))
    attributes.push_back(attr("pads", begin));
}

void conv(Call& c) {
  auto w = ops::conv_window(c.known());
  if (!w) return c.refuse(w.error().to_string());
  std::vector<ox::Attribute> attributes = window_attributes(*w);
  add_padding(c, *w, attributes);
  const DType t = c.dtype("x");
  const Name x = c.x("x"), weight = c.x_as("weight", t), bias = c.x_as("bias", t);
  c.set(c.node("Conv", {x, weight, bias}, std::move(attributes)));
}

void conv_transpose(Call& c) {
  auto w = ops::conv_transpose_window(c.known());
  if (!w) return c.refuse(w.error().to_string());
  std::vector<ox::Attribute> attributes = window_attributes(*w);
  std::vector<int64_t> pads(static_cast<size_t>(2 * w->rank)), extra(static_cast<size_t>(w->rank));
  for (int i = 0; i < w->rank; i++) {
    const auto at = static_cast<size_t>(i);
    const bool known = w->in[i] >= 0 && w->out[i] >= 0;
    const bool custom = c.text("pad_type") != "same" && !c.has("output_shape");
    if (!known && !custom) return c.refuse("the sizes of its result are not known, and its padding depends on them");
    int64_t before = w->pads_begin[i], after = w->pads_end[i];
    if (!known) {
      const std::vector<int64_t> pad = c.text("pad_type") == "custom" && c.has("pad") ? c.ints("pad") : pads;
      before = pad[2 * at], after = pad[2 * at + 1];
    }
    pads[at] = before;
    pads[at + static_cast<size_t>(w->rank)] = std::max<int64_t>(after, 0);
    extra[at] = std::max<int64_t>(-after, 0);
    if (before < 0 || (extra[at] > 0 && extra[at] >= std::max(w->strides[i], w->dilations[i])))
      return c.refuse(cat("its result extends the input by ", extra[at], " elements, expected fewer than its stride"));
  }
  if (std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; })) attributes.push_back(attr("pads", pads));
  if (std::any_of(extra.begin(), extra.end(), [](int64_t p) { return p != 0; }))
    attributes.push_back(attr("output_padding", extra));
  const DType t = c.dtype("x");
  const Name x = c.x("x"), weight = c.x_as("weight", t), bias = c.x_as("bias", t);
  c.set(c.node("ConvTranspose", {x, weight, bias}, std::move(attributes)));
}

/// conv with weights quant_scale * weight + quant_bias.
void conv_quantized(Call& c) {
  auto w = ops::conv_window(c.known());
  if (!w) return c.refuse(w.error().to_string());
  std::vector<ox::Attribute> attributes = window_attributes(*w);
  add_padding(c, *w, attributes);
  const DType t = c.dtype("x");
  const auto per_filter = [&](const char* param) -> Name {
    const auto v = c.constant(param);
    if (!v || v->count() == 1) return c.x(param);
    ir::Shape s{v->count()};
    for (int i = 1; i < c.rank("weight"); i++) s.push_back(1);
    return c.graph.tensor(v->reshaped(s));
  };
  const Name scaled = c.node("Mul", {c.x_as("weight", t), per_filter("quant_scale")});
  const Name weight = c.node("Add", {scaled, per_filter("quant_bias")});
  const Name x = c.x("x"), bias = c.x_as("bias", t);
  c.set(c.node("Conv", {x, weight, bias}, std::move(attributes)));
}

/// A factor for each window: the number of its elements over the number of those inside the input. It turns the mean of
/// a window that is padded with zeros into the mean of the elements inside. 0: the window is outside.
Name elements_in(Call& c, const ops::Window& window) {
  const ops::Window w = window.as_3d();
  ir::Shape shape{1, 1};
  for (int64_t n : window.out) shape.push_back(n);
  ir::Tensor out = c.take(ir::Tensor::zeros(c.dtype("x"), shape));
  if (c.refused()) return {};
  for (int64_t i = 0; i < out.count(); i++) {
    int64_t rest = i, inside = 1;
    for (int d = 2; d >= 0; d--) {
      const int64_t first = rest % w.out[d] * w.strides[d] - w.pads_begin[d];
      rest /= w.out[d];
      inside *= std::max<int64_t>(0, std::min(first + w.kernel[d], w.in[d]) - std::max<int64_t>(first, 0));
    }
    if (inside > 0) ir::store_f64(out.view(), i, static_cast<double>(w.taps()) / static_cast<double>(inside));
  }
  return c.graph.tensor(out);
}

/// A pool. Padding that is not below the kernel's size becomes a node of its own with elements `outside`.
void pool(Call& c, const char* node, double outside) {
  auto w = ops::pool_window(c.known());
  if (!w) return c.refuse(w.error().to_string());
  std::vector<ox::Attribute> attributes = window_attributes(*w);
  const bool average = c.op.type_name() == "avg_pool";
  const bool exclude = average && c.flag("exclude_padding_from_average");
  Name x = c.x(), rest;
  if (!is_known(*w)) {
    add_padding(c, *w, attributes);
    if (c.flag("ceil_mode")) {
      if (average || std::string_view(node) == "LpPool")
        return c.refuse("the sizes of its input are not known, and its ceil_mode depends on them");
      attributes.push_back(attr("ceil_mode", true));
    }
  } else {
    std::vector<int64_t> pads, ends, both(4);
    bool wide = false;
    for (int i = 0; i < w->rank; i++) {
      const int64_t end = std::max<int64_t>(0, w->pads_end[i]);
      pads.push_back(w->pads_begin[i]);
      ends.push_back(end);
      wide |= w->pads_begin[i] >= w->kernel[i] || end >= w->kernel[i];
    }
    if (wide && exclude) rest = elements_in(c, *w);
    if (wide) {
      std::vector<int64_t> all{0, 0};
      all.insert(all.end(), pads.begin(), pads.end());
      all.insert(all.end(), {0, 0});
      all.insert(all.end(), ends.begin(), ends.end());
      x = c.pad(x, all, outside, c.dtype("x"));
    } else {
      pads.insert(pads.end(), ends.begin(), ends.end());
      if (std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; }))
        attributes.push_back(attr("pads", pads));
    }
  }
  if (average && !exclude) attributes.push_back(attr("count_include_pad", true));
  const Name y = c.node(node, {x}, std::move(attributes));
  c.set(rest.empty() ? y : c.node("Mul", {y, rest}));
}

void max_pool(Call& c) {
  const double lowest = c.dtype("x") == DType::fp16 ? -65504 : -3.4028234663852886e38;
  pool(c, "MaxPool", lowest);
}
void avg_pool(Call& c) { pool(c, "AveragePool", 0); }
void l2_pool(Call& c) { pool(c, "LpPool", 0); }

}  // namespace

std::span<const OpWriter> writers_conv();
std::span<const OpWriter> writers_conv() {
  static constexpr OpWriter list[] = {
      {"conv", conv},
      {"conv_transpose", conv_transpose},
      {"conv_quantized", conv_quantized},
      {"max_pool", max_pool},
      {"avg_pool", avg_pool},
      {"l2_pool", l2_pool},
  };
  return list;
}

}  // namespace moka::compiler::onnx
