// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <numeric>

#include "passes/pass.h"
#include "passes/rewrite.h"

/// Replaces an einsum of floats by a matrix product, with transposes where the letters of an operand or of the result
/// are in another order. Devices have fast kernels for these, and pack constant operands.
namespace moka::passes {

namespace {

using namespace ir;
using Letters = std::string;

/// "x,y->z": the letters of the operands and of the result.
struct Equation {
  Letters x, y, z;
};

Equation letters_of(std::string_view text) {
  Letters all;
  for (char c : text)
    if (c != ' ') all += c;
  const size_t comma = all.find(','), arrow = all.find("->");
  return {all.substr(0, comma), all.substr(comma + 1, arrow - comma - 1), all.substr(arrow + 2)};
}

bool contains_letter(const Letters& letters, char c) { return letters.find(c) != Letters::npos; }

template <class Keep>
Letters letters_that(const Letters& letters, Keep keep) {
  Letters out;
  std::copy_if(letters.begin(), letters.end(), std::back_inserter(out), keep);
  return out;
}

int64_t size_of(const Letters& letters, const Shape& shape, char c) { return shape[static_cast<int>(letters.find(c))]; }

int64_t elements_of(const Letters& letters, const Letters& of, const Shape& shape) {
  int64_t n = 1;
  for (char c : of) n *= size_of(letters, shape, c);
  return n;
}

/// Whether letters of more than one element change their order.
bool reorders(const Letters& from, const Letters& to, const Shape& shape) {
  const auto large = [&](char c) { return size_of(from, shape, c) != 1; };
  return letters_that(from, large) != letters_that(to, large);
}

/// An operand of a matrix product as the einsum has it, and the order that the product needs.
struct EinsumSide {
  Value* value;
  Letters letters, batch, kept;  ///< kept: in one operand and in the result
  bool transpose = false;        ///< the product reads [batch, depth, kept] (left) or [batch, kept, depth] (right)

  const Shape& shape() const { return value->type.shape(); }
};

struct EinsumPlan {
  EinsumSide left, right;
  Letters depth, result;
  int64_t moved = 0;  ///< elements that transposes move
};

Letters order_of(const EinsumSide& s, const Letters& depth, bool kept_first) {
  return kept_first ? s.batch + s.kept + depth : s.batch + depth + s.kept;
}

/// Chooses whether the product reads the operand transposed, so that the operand stays in its order if possible.
/// `is_left`: the untransposed order is [batch, kept, depth].
int64_t orient(EinsumSide& s, const Letters& depth, bool is_left) {
  for (const bool transpose : {false, true}) {
    s.transpose = transpose;
    if (!reorders(s.letters, order_of(s, depth, is_left != transpose), s.shape())) return 0;
  }
  s.transpose = !is_left;  // rows of both operands then lie along the depth
  return s.shape().count();
}

EinsumPlan plan_of(EinsumSide left, EinsumSide right, Letters depth, const Letters& result, const Shape& made) {
  EinsumPlan p{std::move(left), std::move(right), std::move(depth), {}, 0};
  p.result = p.left.batch + p.left.kept + p.right.kept;
  p.moved = orient(p.left, p.depth, true) + orient(p.right, p.depth, false);
  if (reorders(result, p.result, made)) p.moved += made.count();
  return p;
}

Result<Value*> rearranged(Builder& b, Value* x, const Letters& from, const Letters& to, const Shape& wanted,
                          const std::string& name) {
  if (reorders(from, to, x->type.shape())) {
    std::vector<int64_t> perm;
    for (char c : to) perm.push_back(static_cast<int64_t>(from.find(c)));
    x = MOKA_TRY(b.op("transpose", {given("x", x), {"perm", Tensor::i32(perm)}}, name + "_order"));
  }
  if (x->type.shape() == wanted) return x;
  return b.op("reshape", {given("x", x), {"shape", Tensor::i32(wanted.dims())}}, name);
}

/// The operand as a batch of matrices.
Result<Value*> matrices(Builder& b, const EinsumSide& s, const Letters& depth, bool is_left, const std::string& name) {
  const bool kept_first = is_left != s.transpose;
  const int64_t kept = elements_of(s.letters, s.kept, s.shape()), deep = elements_of(s.letters, depth, s.shape());
  Shape wanted;
  for (char c : s.batch) wanted.push_back(size_of(s.letters, s.shape(), c));
  wanted.push_back(kept_first ? kept : deep);
  wanted.push_back(kept_first ? deep : kept);
  return rearranged(b, s.value, s.letters, order_of(s, depth, kept_first), wanted, name);
}

/// nullopt: not a product of matrices of known size.
std::optional<EinsumPlan> plan_for(const Op& op) {
  const auto values = op.inputs("values");
  const std::string_view text = text_of(op, "equation");
  if (values.size() != 2 || text.empty() || !op.epilogue.empty()) return std::nullopt;
  const Type& made = op.output()->type;
  for (const Type* t : std::array<const Type*, 3>{&values[0]->type, &values[1]->type, &made})
    if (!t->is_concrete() || !is_float(t->dtype()) || t->shape().count() == 0) return std::nullopt;
  const Equation e = letters_of(text);
  if (e.z.empty()) return std::nullopt;
  // A letter of one operand alone is a sum over that operand.
  for (const auto& [own, other] : {std::pair(e.x, e.y), std::pair(e.y, e.x)})
    for (char c : own)
      if (!contains_letter(other, c) && !contains_letter(e.z, c)) return std::nullopt;
  const Letters batch = letters_that(e.z, [&](char c) { return contains_letter(e.x, c) && contains_letter(e.y, c); });
  if (batch.size() + 2 > static_cast<size_t>(kMaxRank)) return std::nullopt;
  const auto kept_of = [&](const Letters& own) {
    return letters_that(e.z, [&](char c) { return contains_letter(own, c) && !contains_letter(batch, c); });
  };
  const EinsumSide x{values[0], e.x, batch, kept_of(e.x)}, y{values[1], e.y, batch, kept_of(e.y)};
  std::optional<EinsumPlan> best;
  for (const Letters* order : {&e.x, &e.y}) {
    const Letters depth = letters_that(*order, [&](char c) { return !contains_letter(e.z, c); });
    for (const bool swap : {false, true}) {
      EinsumPlan p = plan_of(swap ? y : x, swap ? x : y, depth, e.z, made.shape());
      if (!best || p.moved < best->moved) best = std::move(p);
    }
  }
  return best;
}

Status einsum_to_matmul(PassContext& c) {
  return try_each_op(c.function.body(), [&](Op& op) -> Status {
    if (op.type_name() != "einsum") return {};
    const auto p = plan_for(op);
    if (!p) return {};
    const Letters result = letters_of(text_of(op, "equation")).z;
    Builder b = Builder::before(c.table, op);
    Value* left = MOKA_TRY(matrices(b, p->left, p->depth, true, op.name + "_left"));
    Value* right = MOKA_TRY(matrices(b, p->right, p->depth, false, op.name + "_right"));
    Value* y = MOKA_TRY(b.op(
        "matmul",
        {given("x", left), given("y", right), {"transpose_x", p->left.transpose}, {"transpose_y", p->right.transpose}},
        op.name + "_product"));
    const Shape made = op.output()->type.shape();
    Shape apart;
    for (char letter : p->result) apart.push_back(size_of(result, made, letter));
    if (y->type.shape() != apart)
      y = MOKA_TRY(b.op("reshape", {{"x", y}, {"shape", Tensor::i32(apart.dims())}}, op.name + "_apart"));
    y = MOKA_TRY(rearranged(b, y, p->result, result, made, op.name));
    c.remark(cat(op.name, " into a matrix product"));
    take_name(*y, *op.output());
    replace_and_erase(op, y);
    return {};
  });
}

}  // namespace

Pass pass_einsum_to_matmul() { return {"einsum_to_matmul", einsum_to_matmul}; }

}  // namespace moka::passes
