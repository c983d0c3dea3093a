// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "compiler/onnx/call.h"

namespace moka::compiler::onnx {
namespace {

std::vector<int64_t> last_two_swapped(int rank) {
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return perm;
}

/// A matrix with its last two dimensions exchanged. Constants are transposed now.
Name transposed(Call& c, const char* param, DType type) {
  const ir::Value* v = c.op.input(param);
  const int rank = c.rank(param);
  if (rank < 2) return c.x_as(param, type);
  if (v->constant() == nullptr || rank != 2 || v->type.dtype() != type || ir::bits(type) < 16)
    return c.transpose(c.x_as(param, type), last_two_swapped(rank));
  const ir::Tensor& from = v->constant()->tensor;
  if (const auto it = c.graph.transposed.find(from.data()); it != c.graph.transposed.end()) return it->second;
  const int64_t rows = from.shape()[0], columns = from.shape()[1];
  ir::Tensor to = c.take(ir::Tensor::uninitialized(type, {columns, rows}));
  if (c.refused()) return {};
  const size_t size = static_cast<size_t>(ir::bits(type)) / 8;
  const auto* source = static_cast<const std::byte*>(from.data());
  auto* target = static_cast<std::byte*>(to.mutable_data());
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      std::copy_n(source + static_cast<size_t>(i * columns + j) * size, size,
                  target + static_cast<size_t>(j * rows + i) * size);
  return c.graph.transposed[from.data()] = c.graph.tensor(to);
}

void linear(Call& c) {
  const DType t = c.dtype("x");
  const bool is_float = ir::is_float(t);
  if (c.rank("x") == 2 && is_float) {
    const Name x = c.x(), weight = c.x_as("weight", t), bias = c.x_as("bias", t);
    return c.set(c.node("Gemm", {x, weight, bias}, {attr("transB", 1)}));
  }
  const Name y = c.node("MatMul", {c.x(), transposed(c, "weight", t)});
  c.set(c.has("bias") ? c.node("Add", {y, c.x_as("bias", t)}) : y);
}

void matmul(Call& c) {
  if (!c.flag("transpose_x") && !c.flag("transpose_y"))
    return c.set(c.node("MatMul", {c.x_as("x", c.out().dtype()), c.x_as("y", c.out().dtype())}));
  const int x_rank = c.rank("x"), y_rank = c.rank("y");
  const bool tx = c.flag("transpose_x") && x_rank > 1, ty = c.flag("transpose_y") && y_rank > 1;
  const DType t = c.out().dtype();
  if (c.refused()) return;
  if (x_rank == 2 && y_rank == 2 && (tx || ty) && ir::is_float(t)) {
    const Name x = c.x_as("x", t), y = c.x_as("y", t);
    std::vector<ox::Attribute> attributes;
    if (tx) attributes.push_back(attr("transA", 1));
    if (ty) attributes.push_back(attr("transB", 1));
    return c.set(c.node("Gemm", {x, y}, std::move(attributes)));
  }
  const Name x = tx ? transposed(c, "x", t) : c.x_as("x", t);
  const Name y = ty ? transposed(c, "y", t) : c.x_as("y", t);
  c.set(c.node("MatMul", {x, y}));
}

/// The sizes that an operand has to be repeated to, 1 for those that it has: MIL repeats letters of size 1, ONNX does
/// not. Empty: none.
std::vector<int64_t> repeats(const std::string& letters, const ir::Type& type, const std::map<char, int64_t>& sizes) {
  std::vector<int64_t> out(letters.size(), 1);
  bool any = false;
  for (size_t i = 0; i < letters.size() && type.is_ranked() && type.rank() == static_cast<int>(letters.size()); i++) {
    const int64_t most = sizes.at(letters[i]);
    if (type.shape()[static_cast<int>(i)] == 1 && most > 1) out[i] = most, any = true;
  }
  return any ? out : std::vector<int64_t>();
}

void einsum(Call& c) {
  std::string equation = c.text("equation");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  const auto values = c.op.inputs("values");
  std::vector<std::string> operands{""};
  for (char letter : equation.substr(0, equation.find("->")))
    if (letter == ',')
      operands.emplace_back();
    else
      operands.back() += letter;
  std::map<char, int64_t> sizes;
  for (size_t v = 0; v < values.size() && v < operands.size(); v++)
    for (size_t i = 0; i < operands[v].size(); i++) {
      const ir::Type& t = values[v]->type;
      const bool known = t.is_ranked() && t.rank() == static_cast<int>(operands[v].size());
      int64_t& most = sizes[operands[v][i]];
      most = std::max(most, known ? t.shape()[static_cast<int>(i)] : 0);
    }
  std::vector<Name> inputs;
  for (size_t v = 0; v < values.size(); v++) {
    Name x = c.x(values[v]);
    const std::vector<int64_t> to =
        v < operands.size() ? repeats(operands[v], values[v]->type, sizes) : std::vector<int64_t>();
    if (!to.empty()) x = c.node("Expand", {x, c.i64(to)});
    inputs.push_back(x);
  }
  c.set(c.node("Einsum", std::move(inputs), {attr("equation", equation.c_str())}));
}

void attention(Call& c) {
  constexpr int with_attention = 23;
  const DType t = c.dtype("query");
  const bool mask = c.has("attn_mask");
  const int rank = c.rank("query");
  if (c.graph.opset() >= with_attention && rank == 4 && c.rank("key") == 4 && c.rank("value") == 4) {
    const Name q = c.x("query"), k = c.x("key"), v = c.x("value"), m = c.x("attn_mask");
    return c.set(c.node("Attention", {q, k, v, m}));
  }
  const int64_t width = c.type("query").shape()[rank - 1];
  if (width <= 0) return c.refuse("the width of its queries is not known");
  const Name key = transposed(c, "key", t);
  const Name query = c.node("Mul", {c.x("query"), c.scalar(t, 1 / std::sqrt(static_cast<double>(width)))});
  Name scores = c.node("MatMul", {query, key});
  if (mask && c.dtype("attn_mask") == DType::boolean) {
    scores = c.node("Where", {c.x("attn_mask"), scores, c.scalar(t, -std::numeric_limits<double>::infinity())});
  } else if (mask) {
    scores = c.node("Add", {scores, c.x_as("attn_mask", t)});
  }
  c.set(c.node("MatMul", {c.node("Softmax", {scores}, {attr("axis", -1)}), c.x("value")}));
}

}  // namespace

std::span<const OpWriter> writers_linear();
std::span<const OpWriter> writers_linear() {
  static constexpr OpWriter list[] = {
      {"linear", linear},
      {"matmul", matmul},
      {"einsum", einsum},
      {"scaled_dot_product_attention", attention},
  };
  return list;
}

}  // namespace moka::compiler::onnx
