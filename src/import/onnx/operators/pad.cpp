// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

/// Blocks of `fill` before and after x along an axis. Their sizes are vectors of one element; nullptr: no block.
Value* between_fills(const Node& n, Value* x, int64_t axis, Value* before, Value* after, const Tensor& fill) {
  const auto block = [&](Value* count) {
    std::vector<Value*> sizes;
    for (int i = 0; i < n.rank(x); ++i) sizes.push_back(i == axis ? count : n.expand_dims(n.size_of(x, i), {0}));
    return n.op("fill", {{"shape", n.concat(sizes, 0)}, {"value", fill}});
  };
  std::vector<Value*> parts;
  if (before != nullptr) parts.push_back(block(before));
  parts.push_back(x);
  if (after != nullptr) parts.push_back(block(after));
  return n.concat(parts, axis);
}

/// `pads`: begin and end of each axis. MIL pads floats; integers would lose digits as float32.
Value* filled(const Node& n, Value* x, const std::vector<int64_t>& pads, const Tensor& fill) {
  if (ir::is_float(x->type.dtype()))
    return n.op("pad", {{"x", x}, {"pad", Tensor::i32(pads)}, {"mode", "constant"}, {"constant_val", fill}});
  const auto size = [&](int64_t count) { return count > 0 ? n.integers_constant({count}) : nullptr; };
  for (size_t i = 0; 2 * i < pads.size(); ++i)
    x = between_fills(n, x, static_cast<int64_t>(i), size(pads[2 * i]), size(pads[2 * i + 1]), fill);
  return x;
}

/// Blocks whose sizes the model computes. It may not compute negative ones.
Value* filled(const Node& n, Value* x, Value* pads, const Tensor& fill) {
  const std::vector<Size> sizes = n.sizes_of(pads);
  const auto rank = static_cast<size_t>(n.rank(x));
  if (sizes.size() != 2 * rank) n.malformed(cat(sizes.size(), " pads for ", rank, " axes"));
  const auto size = [&](size_t i) -> Value* {
    if (sizes[i].known && sizes[i].value < 0) n.computed_parameter(1, "pads");
    if (sizes[i].known && sizes[i].value == 0) return nullptr;
    return n.slice(pads, 0, static_cast<int64_t>(i), static_cast<int64_t>(i) + 1);
  };
  for (size_t i = 0; i < rank; ++i) x = between_fills(n, x, static_cast<int64_t>(i), size(i), size(rank + i), fill);
  return x;
}

/// The mode edge or reflect along an axis of integers, whose size may be unknown.
Value* mirrored(const Node& n, Value* x, int64_t axis, int64_t before, int64_t after, bool edge) {
  const int64_t d = x->type.shape()[static_cast<int>(axis)], most = std::max(before, after);
  if (d >= 0 && (edge ? d == 0 : most >= d)) n.malformed(cat("padding by ", most, " of ", d, " elements"));
  std::vector<int64_t> first, last;
  for (int64_t k = before; k > 0; --k) first.push_back(edge ? 0 : k);
  for (int64_t k = 0; k < after; ++k) last.push_back(edge ? -1 : -2 - k);
  const auto taken = [&](const std::vector<int64_t>& at) {
    return n.op("gather", {{"x", x}, {"indices", Tensor::i32(at)}, {"axis", static_cast<int>(axis)}});
  };
  std::vector<Value*> parts;
  if (!first.empty()) parts.push_back(taken(first));
  parts.push_back(x);
  if (!last.empty()) parts.push_back(taken(last));
  return n.concat(parts, axis);
}

/// The number between the elements, in the type that they are computed in.
Tensor fill_of(const Node& n, DType type) {
  if (n.opset < 11) return Tensor::scalar(type, n.number_or("value", 0));
  if (!n.has(2)) return Tensor::scalar(type, 0);
  const Tensor* given = n.constant(2);
  if (given == nullptr) n.computed_parameter(2, "constant_value");
  if (given->count() != 1) n.malformed("constant_value: expected one number");
  return converted(computed(*given, "constant_value").reshaped(Shape()), type);
}

void pad(Node& n) {
  Value* given = n.in(0);
  const auto r = static_cast<size_t>(n.rank(given));
  const bool older = n.opset < 11;
  if (!older && n.constant(1) == nullptr && !n.has(3) && n.text_or("mode", "constant") == "constant") {
    Value* x = numbers(n, given);
    return n.set(0, n.cast(filled(n, x, n.in(1), fill_of(n, x->type.dtype())), given->type.dtype()));
  }
  const std::vector<int64_t> list = older ? n.integers_or("pads") : n.integers(1, "pads");
  std::vector<int64_t> axes = !older && n.has(3) ? n.integers(3, "axes") : std::vector<int64_t>();
  if (!n.has(3) || older)
    for (size_t i = 0; i < r; ++i) axes.push_back(static_cast<int64_t>(i));
  if (list.size() != 2 * axes.size()) n.malformed(cat(list.size(), " pads for ", axes.size(), " axes"));
  std::vector<int64_t> begins(r, 0), ends(r, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(n.axis(axes[i], given));
    constexpr int64_t most = int64_t{1} << 24;
    if (std::abs(list[i]) > most || std::abs(list[axes.size() + i]) > most) n.malformed("pads are too large");
    begins[a] = list[i], ends[a] = list[axes.size() + i];
  }
  const std::string mode = n.text_or("mode", "constant");
  const DType own = given->type.dtype();
  Value* x = numbers(n, given);
  const Tensor fill = fill_of(n, x->type.dtype());
  // Negative padding cuts off.
  for (size_t i = 0; i < r; ++i) {
    const auto a = static_cast<int64_t>(i);
    if (begins[i] >= 0 && ends[i] >= 0) continue;
    const int64_t d = n.known_shape(x, "negative padding")[static_cast<int>(i)];
    x = n.slice(x, a, std::max<int64_t>(0, -begins[i]), d - std::max<int64_t>(0, -ends[i]));
    begins[i] = std::max<int64_t>(0, begins[i]), ends[i] = std::max<int64_t>(0, ends[i]);
  }
  if (mode == "wrap") {
    for (size_t i = 0; i < r; ++i) {
      if (begins[i] == 0 && ends[i] == 0) continue;
      const int64_t d = n.known_shape(x, "wrapped padding")[static_cast<int>(i)];
      if (d < 1) n.malformed("wrapped padding of nothing");
      std::vector<int64_t> at;
      for (int64_t k = -begins[i]; k < d + ends[i]; ++k) at.push_back(((k % d) + d) % d);
      x = n.op("gather", {{"x", x}, {"indices", Tensor::i32(at)}, {"axis", static_cast<int>(i)}});
    }
    return n.set(0, n.cast(x, own));
  }
  std::vector<int64_t> pads;
  bool any = false;
  for (size_t i = 0; i < r; ++i) pads.push_back(begins[i]), pads.push_back(ends[i]), any |= begins[i] + ends[i] > 0;
  if (!any) return n.set(0, x == given ? n.unary("identity", x) : n.cast(x, own));
  const bool margins = mode != "constant";
  if (margins) {
    // MIL mirrors at most two axes at once.
    for (size_t i = 0; i < r; ++i) {
      if (begins[i] + ends[i] == 0) continue;
      if (!ir::is_float(own)) {
        x = mirrored(n, x, static_cast<int64_t>(i), begins[i], ends[i], mode == "edge");
        continue;
      }
      std::vector<int64_t> perm, back(r);
      for (size_t k = 0; k < r; ++k)
        if (k != i) perm.push_back(static_cast<int64_t>(k));
      perm.push_back(static_cast<int64_t>(i));
      for (size_t k = 0; k < r; ++k) back[static_cast<size_t>(perm[k])] = static_cast<int64_t>(k);
      Value* last = n.transpose(x, perm);
      last = n.op("pad", {{"x", last},
                          {"pad", Tensor::i32({begins[i], ends[i]})},
                          {"mode", mode == "edge" ? "replicate" : "reflect"},
                          n.arg("constant_val", 0, x)});
      x = n.transpose(last, back);
    }
    return n.set(0, n.cast(x, own));
  }
  n.set(0, n.cast(filled(n, x, pads, fill), own));
}

void center_crop_pad(Node& n) {
  Value* given = n.in(0);
  std::vector<int64_t> axes = n.integers_or("axes");
  if (axes.empty())
    for (int64_t i = 0; i < n.rank(given); ++i) axes.push_back(i);
  const std::vector<int64_t> wanted = n.integers(1, "shape");
  if (wanted.size() != axes.size()) n.malformed(cat(wanted.size(), " sizes for ", axes.size(), " axes"));
  const DType own = given->type.dtype();
  Value* x = numbers(n, given);
  std::vector<int64_t> pads(2 * static_cast<size_t>(n.rank(x)), 0);
  bool any = false;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t a = n.axis(axes[i], x), d = n.known_shape(x, "CenterCropPad")[static_cast<int>(a)];
    if (wanted[i] < d) {
      const int64_t begin = (d - wanted[i]) / 2;
      x = n.slice(x, a, begin, begin + wanted[i]);
    } else if (wanted[i] > d) {
      const int64_t more = wanted[i] - d;
      pads[2 * static_cast<size_t>(a)] = more / 2;
      pads[2 * static_cast<size_t>(a) + 1] = more - more / 2;
      any = true;
    }
  }
  if (any) x = filled(n, x, pads, Tensor::scalar(x->type.dtype(), 0));
  n.set(0, x == given ? n.unary("identity", x) : n.cast(x, own));
}

constexpr OperatorImport kPadOperators[] = {{"Pad", pad}, {"CenterCropPad", center_crop_pad}};

}  // namespace

std::span<const OperatorImport> operators_pad() { return kPadOperators; }

}  // namespace moka::import::onnx
