// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "import/onnx/operators/window.h"

namespace moka::import::onnx {
namespace {

bool is_plain(const Window& w) {
  return w.kernel.size() <= 3 && std::all_of(w.dilations.begin(), w.dilations.end(), [](int64_t d) { return d == 1; });
}

/// Sets `extra` to the padding at the end of each axis that the last window of ceil_mode needs. ONNX drops a window
/// that begins in the padding.
void extend(const Node& n, const Value* x, Window& w, std::vector<int64_t>& extra) {
  extra.assign(w.kernel.size(), 0);
  if (n.integer_or("ceil_mode", 0) == 0) return;
  const Shape& s = x->type.shape();
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    const int64_t d = s[static_cast<int>(i) + 2], reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    if (d < 0)
      n.unsupported(cat("ceil_mode needs known sizes, got ", x->type, "; give the sizes of the model's inputs"));
    const int64_t room = d + w.pads[2 * i] + w.pads[2 * i + 1] - reach;
    int64_t count = (room + w.strides[i] - 1) / w.strides[i] + 1;
    if ((count - 1) * w.strides[i] >= d + w.pads[2 * i]) --count;
    extra[i] = std::max<int64_t>(0, (count - 1) * w.strides[i] - room);
  }
}

/// A pool of MIL over explicit padding. Inputs with one axis more or less than MIL takes are reshaped by the caller.
Value* pool(const Node& n, std::string_view op, Value* x, const Window& w, std::vector<NamedArg> more = {}) {
  std::vector<NamedArg> args{{"x", x}};
  args.emplace_back("kernel_sizes", Tensor::i32(w.kernel));
  args.emplace_back("strides", Tensor::i32(w.strides));
  args.emplace_back("pad_type", w.pad_type);
  if (w.pad_type == "custom") args.emplace_back("pad", Tensor::i32(w.pads));
  for (NamedArg& a : more) args.push_back(std::move(a));
  return n.op(op, std::move(args));
}

/// Every element of every window, along an axis for each axis of the window, by slices: [N, C, out..., kernel].
Value* windows(const Node& n, Value* x, const Window& w, double fill, std::vector<int64_t>& out) {
  constexpr int64_t most = 4096;
  int64_t elements = 1;
  for (const int64_t k : w.kernel)
    if ((elements *= k) > most)
      n.unsupported(cat("a window of more than ", most, " elements with dilations or positions"));
  Value* wide = padded(n, x, w.pads, fill);
  const Shape& s = n.known_shape(wide, "a pool with dilations");
  const auto axes = static_cast<int>(w.kernel.size());
  for (int i = 0; i < axes; ++i) {
    const auto a = static_cast<size_t>(i);
    out.push_back((s[i + 2] - (w.kernel[a] - 1) * w.dilations[a] - 1) / w.strides[a] + 1);
  }
  std::vector<Value*> taken;
  std::vector<int64_t> at(w.kernel.size(), 0);
  for (bool done = false; !done;) {
    Value* v = wide;
    for (int i = 0; i < axes; ++i) {
      const auto a = static_cast<size_t>(i);
      const int64_t begin = at[a] * w.dilations[a];
      v = n.slice(v, i + 2, begin, begin + (out[a] - 1) * w.strides[a] + 1, w.strides[a]);
    }
    taken.push_back(v);
    done = true;
    for (int i = axes; i-- > 0 && done;) {
      const auto a = static_cast<size_t>(i);
      if (++at[a] < w.kernel[a])
        done = false;
      else
        at[a] = 0;
    }
  }
  return n.op("stack", {NamedArg("values", taken), {"axis", axes + 2}});
}

/// The largest element of each window, or the sum, one axis after the other.
Value* separately(const Node& n, std::string_view op, Value* x, const Window& w, double fill) {
  constexpr int64_t most = 4096;
  Value* v = padded(n, x, w.pads, fill);
  for (size_t a = 0; a < w.kernel.size(); ++a) {
    const auto axis = static_cast<int>(a) + 2;
    if (w.kernel[a] > most) n.unsupported(cat("a window of ", w.kernel[a], " elements along an axis"));
    if (w.kernel[a] == 1 && w.strides[a] == 1) continue;
    const int64_t room = n.known_shape(v, "a pool with dilations")[axis] - (w.kernel[a] - 1) * w.dilations[a];
    if (room < 1) n.malformed("a window larger than its input");
    std::vector<Value*> taken;
    for (int64_t k = 0; k < w.kernel[a]; ++k)
      taken.push_back(n.slice(v, axis, k * w.dilations[a], k * w.dilations[a] + room, w.strides[a]));
    v = n.reduce(op, n.op("stack", {NamedArg("values", taken), {"axis", 0}}), {0}, false);
  }
  return v;
}

/// The position in the input of each element of a window's argmax.
Value* positions(const Node& n, Value* best, Value* x, const Window& w, const std::vector<int64_t>& out) {
  const Shape& s = x->type.shape();
  const auto axes = static_cast<int>(w.kernel.size());
  const bool columns = n.integer_or("storage_order", 0) != 0;
  Value* total = nullptr;
  int64_t inner = 1;
  for (const int64_t k : w.kernel) inner *= k;
  int64_t stride = 1;
  for (int i = 0; i < axes; ++i) stride *= s[i + 2];
  int64_t whole = stride, column = 1;
  for (int i = 0; i < axes; ++i) {
    const auto a = static_cast<size_t>(i);
    inner /= w.kernel[a];
    stride /= s[i + 2];
    // The index in the window along this axis, then in the input.
    Value* index = n.binary("mod", n.binary("floor_div", best, n.scalar(static_cast<double>(inner), best)),
                            n.scalar(static_cast<double>(w.kernel[a]), best));
    std::vector<int64_t> starts, dims(static_cast<size_t>(axes) + 2, 1);
    for (int64_t o = 0; o < out[a]; ++o) starts.push_back(o * w.strides[a] - w.pads[2 * a]);
    dims[a + 2] = out[a];
    Value* at = n.add(n.mul(index, static_cast<double>(w.dilations[a])), n.reshape(n.integers_constant(starts), dims));
    Value* part = n.mul(at, static_cast<double>(columns ? column : stride));
    column *= s[i + 2];
    total = total == nullptr ? part : n.add(total, part);
  }
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < s[0] * s[1]; ++i) offsets.push_back(i * whole);
  std::vector<int64_t> dims(static_cast<size_t>(axes) + 2, 1);
  dims[0] = s[0], dims[1] = s[1];
  return n.add(total, n.reshape(n.integers_constant(offsets), dims));
}

constexpr double kLowest = -std::numeric_limits<double>::infinity();

/// The index of the first largest element of each window, padding left out.
Value* best_of(const Node& n, Value* all, Value* largest, const Value* x, const Window& w) {
  const int axis = n.rank(all) - 1;
  Value* ranks = all;
  if (w.is_padded()) {
    std::vector<int64_t> dims = x->type.shape().to_vector(), out;
    dims[0] = dims[1] = 1;
    Value* ones = n.op("fill", {{"shape", Tensor::i32(dims)}, {"value", Tensor::scalar(DType::fp32, 1)}});
    Value* inside = windows(n, ones, w, 0, out);
    Value* is_largest = n.cast(n.binary("equal", all, n.expand_dims(largest, {axis})), DType::fp32);
    ranks = n.add(n.mul(is_largest, inside), inside);
  }
  return n.op("reduce_argmax", {{"x", ranks}, {"axis", axis}, {"keep_dims", false}});
}

void max_pool(Node& n) {
  Value* given = n.in(0);
  // Pools of MIL take floats; small integers are exact in float32.
  Value* x = ir::is_float(given->type.dtype()) ? given : n.cast(given, DType::fp32);
  Window w = window_of(n, x, {});
  std::vector<int64_t> extra;
  extend(n, x, w, extra);
  for (size_t i = 0; i < extra.size(); ++i) w.pads[2 * i + 1] += extra[i];
  if (w.is_padded()) w.pad_type = "custom";
  const DType own = given->type.dtype();
  if (is_plain(w) && !n.wants(1)) return n.set(0, n.cast(pool(n, "max_pool", x, w), own));
  if (!n.wants(1)) return n.set(0, n.cast(separately(n, "reduce_max", x, w, kLowest), own));
  std::vector<int64_t> out;
  Value* all = windows(n, x, w, kLowest, out);
  Value* largest = n.reduce("reduce_max", all, {n.rank(all) - 1}, false);
  n.set(0, n.cast(largest, own));
  n.set(1, positions(n, best_of(n, all, largest, x, w), x, w, out), DataType::int64);
}

/// Elements of each window that count: those of x, and of the padding if count_include_pad, but not what ceil_mode
/// adds.
Value* counts(const Node& n, Value* x, const Window& w, const std::vector<int64_t>& extra) {
  const Shape& s = n.known_shape(x, "AveragePool");
  const bool include = n.integer_or("count_include_pad", 0) != 0;
  Value* total = nullptr;
  const auto axes = w.kernel.size();
  for (size_t a = 0; a < axes; ++a) {
    const int64_t d = s[static_cast<int>(a) + 2], begin = w.pads[2 * a], end = w.pads[2 * a + 1];
    const int64_t out = (d + begin + end - (w.kernel[a] - 1) * w.dilations[a] - 1) / w.strides[a] + 1;
    std::vector<float> list;
    for (int64_t o = 0; o < out; ++o) {
      int count = 0;
      for (int64_t k = 0; k < w.kernel[a]; ++k) {
        const int64_t at = o * w.strides[a] + k * w.dilations[a] - begin;
        count += include ? at < d + end - extra[a] : at >= 0 && at < d;
      }
      list.push_back(static_cast<float>(std::max(count, 1)));
    }
    std::vector<int64_t> dims(axes + 2, 1);
    dims[a + 2] = out;
    Value* v = n.reshape(n.cast(n.constant(Tensor::f32(Shape{out}, list)), x->type.dtype()), dims);
    total = total == nullptr ? v : n.mul(total, v);
  }
  return total;
}

void average_pool(Node& n) {
  Value* x = n.in(0);
  Window w = window_of(n, x, {});
  std::vector<int64_t> extra;
  extend(n, x, w, extra);
  const bool grows = std::any_of(extra.begin(), extra.end(), [](int64_t e) { return e != 0; });
  for (size_t i = 0; i < extra.size(); ++i) w.pads[2 * i + 1] += extra[i];
  if (w.is_padded()) w.pad_type = "custom";
  const bool include = n.integer_or("count_include_pad", 0) != 0;
  if (is_plain(w) && (!grows || !include))
    return n.set(0, pool(n, "avg_pool", x, w, {{"exclude_padding_from_average", !include}}));
  Value* sum = separately(n, "reduce_sum", x, w, 0);
  n.set(0, n.div(sum, counts(n, x, w, extra)));
}

void lp_pool(Node& n) {
  Value* x = n.in(0);
  Window w = window_of(n, x, {});
  std::vector<int64_t> extra;
  extend(n, x, w, extra);
  for (size_t i = 0; i < extra.size(); ++i) w.pads[2 * i + 1] += extra[i];
  if (w.is_padded()) w.pad_type = "custom";
  const double p = static_cast<double>(n.integer_or("p", 2));
  Value* all = n.unary("abs", x);
  Value* powers = p == 1 ? all : n.binary("pow", all, n.scalar(p, x));
  Value* sum = separately(n, "reduce_sum", powers, w, 0);
  n.set(0, p == 1 ? sum : n.binary("pow", sum, n.scalar(1 / p, x)));
}

void global_pool(Node& n, std::string_view op) {
  Value* x = n.in(0);
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < n.rank(x); ++i) axes.push_back(i);
  n.set(0, n.reduce(op, x, axes, true));
}

void global_lp_pool(Node& n) {
  Value* x = n.in(0);
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < n.rank(x); ++i) axes.push_back(i);
  const double p = static_cast<double>(n.integer_or("p", 2));
  Value* sum = n.reduce("reduce_sum", n.binary("pow", n.unary("abs", x), n.scalar(p, x)), axes, true);
  n.set(0, n.binary("pow", sum, n.scalar(1 / p, x)));
}

void max_unpool(Node& n) {
  Value *x = n.in(0), *indices = n.in(1);
  const Shape& s = n.known_shape(x, "MaxUnpool");
  const std::vector<int64_t> kernel = n.integers_or("kernel_shape");
  const std::vector<int64_t> strides = n.integers_or("strides", std::vector<int64_t>(kernel.size(), 1));
  const std::vector<int64_t> pads = n.integers_or("pads", std::vector<int64_t>(2 * kernel.size(), 0));
  if (kernel.size() + 2 != static_cast<size_t>(s.rank())) n.malformed("kernel_shape does not fit the input");
  std::vector<int64_t> natural{s[0], s[1]};
  for (size_t i = 0; i < kernel.size(); ++i)
    natural.push_back((s[static_cast<int>(i) + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[kernel.size() + i]);
  const std::vector<int64_t> dims = n.has(2) ? n.integers(2, "output_shape") : natural;
  if (dims.size() != natural.size()) n.malformed(cat("an output_shape of ", dims.size(), " sizes for ", x->type));
  int64_t count = 1;
  for (const int64_t d : natural) count *= d;
  Value* zeros = n.op("fill", {{"shape", Tensor::i32({count})}, n.arg("value", 0, x)});
  // The indices are those of the result without an output_shape, which only adds zeros at the end.
  Value* out = n.op("scatter", {{"data", zeros},
                                {"indices", n.reshape(indices, {-1})},
                                {"updates", n.reshape(x, {-1})},
                                {"axis", 0},
                                {"mode", "update"}});
  out = n.reshape(out, natural);
  std::vector<int64_t> more;
  bool grows = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < natural[i]) n.unsupported("an output_shape below the natural one");
    more.push_back(0), more.push_back(dims[i] - natural[i]);
    grows |= dims[i] > natural[i];
  }
  n.set(0, grows ? padded(n, out, more, 0) : out);
}

constexpr OperatorImport kPoolOperators[] = {
    {"MaxPool", max_pool},
    {"AveragePool", average_pool},
    {"LpPool", lp_pool},
    {"MaxUnpool", max_unpool},
    {"GlobalLpPool", global_lp_pool},
    {"GlobalAveragePool", [](Node& n) { global_pool(n, "reduce_mean"); }},
    {"GlobalMaxPool", [](Node& n) { global_pool(n, "reduce_max"); }},
};

}  // namespace

std::span<const OperatorImport> operators_pool() { return kPoolOperators; }

}  // namespace moka::import::onnx
