// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "passes/pass.h"
#include "passes/rewrite.h"
#include "passes/strided.h"

/// Replaces a product, a softmax and a product by one attention. It reads heads where the products before wrote them
/// and writes them side by side, so no splits or transposes of heads remain. Only in float32 and with known shapes.
namespace moka::passes {

namespace {

using namespace ir;

/// An operand as a view over batch, head, row and column.
struct Operand4 {
  Value* root = nullptr;
  double factor = 1;
  std::array<int64_t, 2> sizes{};  ///< rows, columns
  std::vector<int64_t> steps;      ///< position of the first element, then the four steps
};

/// `batch` holds the sizes of batch and head; the operand's own sizes broadcast to it. With `halves`, the view may be
/// of float16 values.
std::optional<Operand4> operand_of(Value* v, bool transposed, const std::array<int64_t, 2>& batch, bool halves) {
  auto s = strided_view(v, halves);
  if (!s || s->sizes.size() < 2) return std::nullopt;
  int64_t lead = 1;
  for (size_t i = 0; i + 2 < s->sizes.size(); i++) lead *= s->sizes[i];
  if (lead == batch[0] * batch[1]) {
    s = reshaped(*s, {batch[0], batch[1], s->sizes[s->sizes.size() - 2], s->sizes.back()});
    if (!s) return std::nullopt;
  }
  const size_t rank = s->sizes.size(), row = transposed ? rank - 1 : rank - 2,
               column = transposed ? rank - 2 : rank - 1;
  Operand4 o;
  o.root = s->root;
  o.factor = s->factor;
  o.sizes = {s->sizes[row], s->sizes[column]};
  o.steps = {s->first, 0, 0, s->steps[row], s->steps[column]};
  for (size_t i = 0; i + 2 < rank; i++) {
    const size_t from_end = rank - 3 - i;  // 0: head, 1: batch
    if (s->sizes[i] == 1) continue;
    if (from_end > 1 || s->sizes[i] != batch[1 - from_end]) return std::nullopt;
    o.steps[2 - from_end] = s->steps[i];
  }
  const auto fits = [](int64_t n) { return n <= std::numeric_limits<int32_t>::max(); };
  return std::all_of(o.steps.begin(), o.steps.end(), fits) ? std::optional(o) : std::nullopt;
}

bool is_plain(const Op* op, std::string_view type) {
  return op != nullptr && op->type_name() == type && op->epilogue.empty();
}

bool is_set(const Op& op, std::string_view param) { return number_of(op, param).value_or(0) != 0; }

bool is_float32(const Value& v) { return v.type.is_tensor() && v.type.is_concrete() && v.type.dtype() == DType::fp32; }

/// The operands and settings of one attention.
struct Parts {
  Value *query = nullptr, *key = nullptr, *value = nullptr, *mask = nullptr;
  bool query_transposed = false, key_transposed = false, value_transposed = false;
  /// For a boolean mask: the score of keys that take no part, and whether the mask is true for them.
  double hidden = -std::numeric_limits<double>::infinity();
  bool inverted = false;
  double scale = 1;
  std::optional<Shape> scores;  ///< shape to which the mask broadcasts
  std::string names;
};

/// Walks from the operand of the softmax back to the product of query and key.
bool find_scores(Value* v, Parts& parts) {
  if (!has_one_use(*v) || !is_float32(*v) || !v->producer()->epilogue.empty()) return false;
  Op& op = *v->producer();
  if (op.type_name() == "matmul") {
    parts.query = op.input("x");
    parts.key = op.input("y");
    parts.query_transposed = is_set(op, "transpose_x");
    // Rows of the key are columns of the product.
    parts.key_transposed = !is_set(op, "transpose_y");
    return true;
  }
  if (op.type_name() == "reshape") {
    Value* x = op.input("x");
    if (!is_float32(*x) || x->type.rank() < 2 || v->type.rank() < 2) return false;
    const Shape &from = x->type.shape(), &to = v->type.shape();
    for (int i : {1, 2})
      if (from[from.rank() - i] != to[to.rank() - i]) return false;
    return find_scores(x, parts);
  }
  if (op.type_name() == "select") {
    for (auto [a, b] : {std::pair{"a", "b"}, std::pair{"b", "a"}}) {
      Value* x = op.input(a);
      const auto hidden = number_of(op, b);
      // A scale that is applied later would multiply the hidden scores, too.
      if (!hidden || !(x->type == v->type) || parts.mask != nullptr || parts.scale != 1) continue;
      Parts inner = parts;
      inner.mask = op.input("cond");
      inner.scores = v->type.shape();
      inner.hidden = *hidden;
      inner.inverted = std::string_view(a) == "b";
      if (!find_scores(x, inner)) continue;
      parts = inner;
      return true;
    }
    return false;
  }
  const bool sum = op.type_name() == "add";
  if (!sum && op.type_name() != "mul" && op.type_name() != "real_div") return false;
  for (auto [a, b] : {std::pair{"x", "y"}, std::pair{"y", "x"}}) {
    Value *x = op.input(a), *other = op.input(b);
    if (!(x->type == v->type)) continue;
    if (sum) {
      // A scale that is applied later would multiply the mask, too.
      if (parts.mask != nullptr || parts.scale != 1) continue;
      Parts inner = parts;
      inner.mask = other;
      inner.scores = v->type.shape();
      if (!find_scores(x, inner)) continue;
      parts = inner;
      return true;
    }
    const auto f = number_of(op, b);
    if (!f || (op.type_name() == "real_div" && (std::string_view(b) == "x" || *f == 0))) continue;
    Parts inner = parts;
    inner.scale *= op.type_name() == "mul" ? *f : 1 / *f;
    if (!find_scores(x, inner)) continue;
    parts = inner;
    return true;
  }
  return false;
}

std::optional<Parts> parts_of(const Op& op) {
  Parts p;
  if (is_plain(&op, "scaled_dot_product_attention")) {
    p.query = op.input("query");
    p.key = op.input("key");
    p.value = op.input("value");
    p.mask = op.input("attn_mask");
    if (!p.query->type.is_concrete()) return std::nullopt;
    p.scale = 1 / std::sqrt(static_cast<double>(p.query->type.shape()[p.query->type.rank() - 1]));
    p.names = op.name;
    return p;
  }
  if (!is_plain(&op, "matmul") || is_set(op, "transpose_x")) return std::nullopt;
  Value* weights = op.input("x");
  if (!has_one_use(*weights) || !is_plain(weights->producer(), "softmax")) return std::nullopt;
  const Op& softmax = *weights->producer();
  const auto axis = number_of(softmax, "axis");
  if (!axis || !weights->type.is_ranked() || (*axis != -1 && *axis != weights->type.rank() - 1)) return std::nullopt;
  if (!find_scores(softmax.input("x"), p)) return std::nullopt;
  p.value = op.input("y");
  p.value_transposed = is_set(op, "transpose_y");
  p.names = cat(softmax.name, ", ", op.name);
  return p;
}

/// The last two dimensions before rows and columns, if those before them have size 1.
std::optional<std::array<int64_t, 2>> batch_of(const Shape& s) {
  std::array<int64_t, 2> batch{1, 1};
  for (int i = 0; i + 2 < s.rank(); i++) {
    const int from_end = s.rank() - 3 - i;
    if (from_end <= 1)
      batch[static_cast<size_t>(1 - from_end)] = s[i];
    else if (s[i] != 1)
      return std::nullopt;
  }
  return batch;
}

/// Whether two views are of the same elements. Steps of dimensions of size 1 do not matter.
bool are_same(const Strided& a, const Strided& b) {
  if (a.sizes != b.sizes || a.first != b.first) return false;
  for (size_t i = 0; i < a.sizes.size(); i++)
    if (a.sizes[i] != 1 && a.steps[i] != b.steps[i]) return false;
  return true;
}

class AttentionFuser {
 public:
  explicit AttentionFuser(PassContext& c) : c_(c) {}

  Status fuse(Op& op) {
    const auto parts = parts_of(op);
    if (!parts || !is_float32(*op.output())) return {};
    const Shape& out = op.output()->type.shape();
    const int rank = out.rank();
    if (rank < 2) return {};
    const auto known = batch_of(parts->scores ? *parts->scores : out);
    if (!known) return {};
    const std::array<int64_t, 2> batch = *known;
    if (batch[0] * batch[1] != out.count(0, rank - 2)) return {};
    const auto query = operand_of(parts->query, parts->query_transposed, batch, false),
               key = operand_of(parts->key, parts->key_transposed, batch, true),
               value = operand_of(parts->value, parts->value_transposed, batch, true);
    if (!query || !key || !value || value->factor != 1) return {};
    const std::vector<int64_t> sizes{batch[0],      batch[1],        query->sizes[0],
                                     key->sizes[0], query->sizes[1], value->sizes[1]};
    for (int64_t s : sizes)
      if (s < 1 || s > std::numeric_limits<int32_t>::max()) return {};
    if (key->sizes[1] != sizes[4] || value->sizes[0] != sizes[3] || out[rank - 2] != sizes[2] ||
        out[rank - 1] != sizes[5])
      return {};
    if (!is_float32(*query->root)) return {};
    for (const Operand4* o : {&*key, &*value})
      if (!is_float32(*o->root) && o->root->type.dtype() != DType::fp16) return {};
    if (parts->mask != nullptr &&
        !(parts->mask->type.is_concrete() && parts->mask->type.rank() >= 1 && parts->mask->type.rank() <= 4))
      return {};

    Value* result = side_by_side(op, batch, sizes);
    const bool rows_first = result != op.output();
    const double scale = parts->scale * query->factor * key->factor;
    std::vector<NamedArg> args{given("query", query->root),
                               given("key", key->root),
                               given("value", value->root),
                               {"sizes", Tensor::i32(sizes)},
                               {"query_steps", Tensor::i32(query->steps)},
                               {"key_steps", Tensor::i32(key->steps)},
                               {"value_steps", Tensor::i32(value->steps)},
                               {"scale", static_cast<float>(scale)},
                               {"rows_first", rows_first}};
    Builder before = Builder::before(c_.table, op);
    if (parts->mask != nullptr) {
      Value* mask = parts->mask;
      if (parts->inverted) mask = MOKA_TRY(before.op("logical_not", {given("x", mask)}));
      args.push_back(given("attn_mask", mask));
      if (mask->type.dtype() == DType::boolean) args.emplace_back("hidden", static_cast<float>(parts->hidden));
    }
    Value* y = MOKA_TRY(before.op("moka_attention", std::move(args), op.name));
    if (!(y->type == result->type))
      y = MOKA_TRY(before.op("reshape", {{"x", y}, {"shape", Tensor::i32(result->type.shape().dims())}}, op.name));
    c_.remark(cat(parts->names, " and what arranges their operands into one attention"));
    take_name(*y, *result);
    Function::replace_all_uses(result, y);
    return {};
  }

 private:
  /// The output after transposes and reshapes, if each of its rows holds the heads side by side. Else the output
  /// itself.
  static Value* side_by_side(const Op& op, const std::array<int64_t, 2>& batch, const std::vector<int64_t>& sizes) {
    Value* out = op.output();
    const int64_t rows = sizes[2], made = sizes[5];
    Strided wanted;
    wanted.sizes = {batch[0], rows, batch[1], made};
    wanted.steps = {batch[1] * rows * made, made, rows * made, 1};
    Value* v = out;
    for (int i = 0; i < 3 && has_one_use(*v); i++) {
      const Op* next = v->users()[0];
      if (!is_plain(next, "transpose") && !is_plain(next, "reshape")) break;
      v = next->output();
      const auto view = strided_view(v);
      if (!view || view->root != out || view->factor != 1) break;
      const auto same = reshaped(wanted, view->sizes);
      if (same && are_same(*same, *view)) return v;
    }
    return out;
  }

  PassContext& c_;
};

Status fuse_attention(PassContext& c) {
  Status status;
  AttentionFuser fuser(c);
  for_each_op(c.function.body(), [&](Op& op) {
    if (status.ok()) status = fuser.fuse(op);
  });
  return status;
}

}  // namespace

Pass pass_fuse_attention() { return {"fuse_attention", fuse_attention}; }

}  // namespace moka::passes
