// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "compiler/onnx/call.h"

namespace moka::compiler::onnx {
namespace {

/// An optional vector with one entry per channel.
Name channels(Call& c, const char* param, double missing, DType type) {
  if (c.has(param)) return c.x_as(param, type);
  const int64_t n = c.op.type_name() == "batch_norm" ? c.type("mean").shape()[0] : c.type("x").shape()[1];
  ir::Tensor t = c.take(ir::Tensor::uninitialized(type, {std::max<int64_t>(n, 0)}));
  if (n < 0) c.refuse("the number of channels is not known");
  if (c.refused()) return {};
  for (int64_t i = 0; i < n; i++) ir::store_f64(t.view(), i, missing);
  return c.graph.tensor(t);
}

void batch_norm(Call& c) {
  DType t = c.dtype("x");
  for (const char* param : {"gamma", "beta", "mean", "variance"})
    if (c.has(param) && c.dtype(param) == DType::fp32 && t == DType::fp16) t = DType::fp32;
  const Name x = c.x(), gamma = channels(c, "gamma", 1, t), beta = channels(c, "beta", 0, t);
  const Name mean = c.x_as("mean", t), variance = c.x_as("variance", t);
  c.set(c.node("BatchNormalization", {x, gamma, beta, mean, variance}, {attr("epsilon", c.number("epsilon"))}));
}

void instance_norm(Call& c) {
  const DType t = c.dtype("x");
  const Name x = c.x(), gamma = channels(c, "gamma", 1, t), beta = channels(c, "beta", 0, t);
  c.set(c.node("InstanceNormalization", {x, gamma, beta}, {attr("epsilon", c.number("epsilon"))}));
}

/// (x - mean) / sqrt(variance + epsilon) over the axes.
Name standardized(Call& c, const Name& x, const std::vector<int64_t>& axes, double epsilon) {
  const Name difference = c.node("Sub", {x, c.reduce("ReduceMean", x, axes, true)});
  const Name variance = c.reduce("ReduceMean", c.node("Mul", {difference, difference}), axes, true);
  const Name root = c.node("Sqrt", {c.node("Add", {variance, c.scalar(c.dtype("x"), epsilon)})});
  return c.node("Div", {difference, root});
}

void layer_norm(Call& c) {
  const int rank = c.rank("x");
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (c.has("axes")) axes = c.ints("axes");
  for (int64_t& a : axes) a = c.take(ir::normalize_axis(a, rank));
  std::sort(axes.begin(), axes.end());
  if (c.refused()) return;
  const ir::Shape& shape = c.type("x").shape();
  bool trailing = !axes.empty(), sized = true;
  ir::Shape normalized, spread;
  for (size_t i = 0; i < axes.size(); i++) {
    trailing &= axes[i] == rank - static_cast<int64_t>(axes.size() - i);
    sized &= shape[static_cast<int>(axes[i])] >= 0;
    normalized.push_back(shape[static_cast<int>(axes[i])]);
  }
  for (int i = 0; i < rank; i++) spread.push_back(std::find(axes.begin(), axes.end(), i) != axes.end() ? shape[i] : 1);
  const double epsilon = c.number("epsilon");
  if (trailing && (c.has("gamma") || sized)) {
    Name gamma = c.x_as("gamma", c.dtype("x"));
    if (gamma.empty()) {
      ir::Tensor ones = c.take(ir::Tensor::uninitialized(c.dtype("x"), normalized));
      if (c.refused()) return;
      for (int64_t i = 0; i < ones.count(); i++) ir::store_f64(ones.view(), i, 1);
      gamma = c.graph.tensor(ones);
    }
    return c.set(c.node("LayerNormalization", {c.x(), gamma, c.x_as("beta", c.dtype("x"))},
                        {attr("axis", axes[0] - rank), attr("epsilon", epsilon)}));
  }
  Name y = standardized(c, c.x(), axes, epsilon);
  const auto part = [&](const char* param, const char* node) {
    if (!c.has(param)) return;
    Name v = c.x_as(param, c.dtype("x"));
    if (!trailing) v = c.reshape(v, spread.to_vector());
    y = c.node(node, {y, v});
  };
  part("gamma", "Mul");
  part("beta", "Add");
  c.set(y);
}

void l2_norm(Call& c) {
  const int rank = c.rank("x");
  std::vector<int64_t> axes;
  for (int i = std::max(0, rank - 3); i < rank; i++) axes.push_back(i);
  const Name sum = c.reduce("ReduceSumSquare", c.x(), axes, true);
  const Name root = c.node("Sqrt", {c.node("Add", {sum, c.scalar(c.dtype("x"), c.number("epsilon"))})});
  c.set(c.node("Div", {c.x(), root}));
}

/// Core ML's channels are the third axis from the end, ONNX's the second from the start. An even window contains one
/// more channel before the current one; LRN's window contains it after.
void local_response_norm(Call& c) {
  const int rank = c.rank("x");
  const int64_t size = c.integer("size");
  const ir::Shape& s = c.type("x").shape();
  const DType t = c.dtype("x");
  if (rank == 4 && size % 2 == 1) {
    return c.set(c.node("LRN", {c.x()},
                        {attr("size", size), attr("alpha", c.number("alpha")), attr("beta", c.number("beta")),
                         attr("bias", c.number("k"))}));
  }
  if (rank < 3 || !s.is_concrete()) return c.refuse("its sizes are not known");
  // An average pool over the channels sums neighbors.
  const int64_t n = s.count(0, rank - 3), channels = s[rank - 3], inner = s.count(rank - 2, rank);
  Name squares = c.reshape(c.node("Mul", {c.x(), c.x()}), {n, 1, channels, inner});
  squares = c.pad(squares, {0, 0, size / 2, 0, 0, 0, (size - 1) / 2, 0}, 0, t);
  const Name mean = c.node("AveragePool", {squares}, {attr("kernel_shape", std::vector<int64_t>{size, 1})});
  const Name scaled = c.node("Mul", {mean, c.scalar(t, c.number("alpha"))});
  const Name base = c.node("Add", {scaled, c.scalar(t, c.number("k"))});
  const Name power = c.node("Pow", {base, c.scalar(t, c.number("beta"))});
  c.set(c.node("Div", {c.x(), c.reshape(power, s.to_vector())}));
}

}  // namespace

std::span<const OpWriter> writers_normalization();
std::span<const OpWriter> writers_normalization() {
  static constexpr OpWriter list[] = {
      {"batch_norm", batch_norm},
      {"instance_norm", instance_norm},
      {"layer_norm", layer_norm},
      {"l2_norm", l2_norm},
      {"local_response_norm", local_response_norm},
  };
  return list;
}

}  // namespace moka::compiler::onnx
