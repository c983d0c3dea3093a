// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include "passes/pass.h"
#include "passes/rewrite.h"

/// Replaces x times half of 1 + erf(x / sqrt 2), and of 1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)), by one gelu. The
/// factors may be multiplied in any order. Only in float32, because in other types the results would be rounded
/// differently.
namespace moka::passes {

namespace {

using namespace ir;

constexpr int kDegree = 3;
constexpr int kDepth = 6;  ///< most operations from a result to the function in it
/// Coefficients of x^0 to x^3.
using Polynomial = std::array<double, kDegree + 1>;

constexpr Polynomial kHalves{0.5, 0.5, 0, 0};
constexpr Polynomial kErf{0, 0.70710678118654752, 0, 0};
constexpr Polynomial kTanh{0, 0.79788456080286536, 0, 0.79788456080286536 * 0.044715};

/// Whether two polynomials are the same but for constants that were rounded to float16.
bool are_near(const std::optional<Polynomial>& p, const Polynomial& wanted) {
  for (size_t i = 0; p && i < wanted.size(); i++)
    if (!(std::fabs((*p)[i] - wanted[i]) <= std::fabs(wanted[i]) / 1024)) return false;
  return p.has_value();
}

std::optional<Polynomial> product(const std::optional<Polynomial>& a, const std::optional<Polynomial>& b) {
  if (!a || !b) return std::nullopt;
  Polynomial out{};
  for (size_t i = 0; i < a->size(); i++)
    for (size_t j = 0; j < b->size(); j++) {
      const double v = (*a)[i] * (*b)[j];
      if (v == 0) continue;
      if (i + j > kDegree) return std::nullopt;
      out[i + j] += v;
    }
  return out;
}

/// `v` as a polynomial in `x`.
std::optional<Polynomial> polynomial(const Value* v, const Value* x, int depth = kDepth) {
  if (v == x) return Polynomial{0, 1, 0, 0};
  if (const Tensor* t = tensor_constant(v); t != nullptr && t->count() == 1 && t->dtype() == DType::fp32)
    return Polynomial{load_f64(t->view(), 0), 0, 0, 0};
  const Op* op = v->producer();
  if (op == nullptr || depth == 0 || !op->epilogue.empty()) return std::nullopt;
  const std::string& type = op->type_name();
  const auto operand = [&](const char* name) { return polynomial(op->input(name), x, depth - 1); };
  if (type == "mul" || type == "add") {
    auto a = operand("x");
    const auto b = a ? operand("y") : std::nullopt;
    if (!b) return std::nullopt;
    if (type == "mul") return product(a, b);
    for (size_t i = 0; i < a->size(); i++) (*a)[i] += (*b)[i];
    return a;
  }
  if (type == "real_div") {
    const auto by = number_of(*op, "y");
    return by && *by != 0 ? product(operand("x"), Polynomial{1 / *by, 0, 0, 0}) : std::nullopt;
  }
  const auto power = type == "square" ? std::optional(2.0) : type == "pow" ? number_of(*op, "y") : std::nullopt;
  if (power != 2.0 && power != 3.0) return std::nullopt;
  const auto base = operand("x");
  const auto squared = product(base, base);
  return power == 2.0 ? squared : product(squared, base);
}

/// `v` as a product of numbers and some of `x` and halves(f) = 0.5 + 0.5 * f.
struct Factors {
  double number = 1;
  int x = 0, halves = 0;
};

std::optional<Factors> factors(const Value* v, const Value* x, const Value* f, int depth = kDepth) {
  if (v == x) return Factors{1, 1, 0};
  if (const auto p = polynomial(v, f)) {
    const double scale = (*p)[0] / kHalves[0];
    if ((*p)[1] == 0 && (*p)[2] == 0 && (*p)[3] == 0) return Factors{(*p)[0], 0, 0};
    return scale != 0 && are_near(product(p, Polynomial{1 / scale, 0, 0, 0}), kHalves)
               ? std::optional(Factors{scale, 0, 1})
               : std::nullopt;
  }
  const Op* op = v->producer();
  if (op == nullptr || depth == 0 || !op->epilogue.empty()) return std::nullopt;
  if (op->type_name() == "real_div") {
    auto a = factors(op->input("x"), x, f, depth - 1);
    const auto by = number_of(*op, "y");
    if (!a || !by || *by == 0) return std::nullopt;
    a->number /= *by;
    return a;
  }
  if (op->type_name() != "mul") return std::nullopt;
  auto a = factors(op->input("x"), x, f, depth - 1);
  const auto b = a ? factors(op->input("y"), x, f, depth - 1) : std::nullopt;
  if (!b) return std::nullopt;
  return Factors{a->number * b->number, a->x + b->x, a->halves + b->halves};
}

/// Calls fn(value) for the operands of `v` and theirs, until one call returns true, through products and sums.
bool any_operand(const Value* v, int depth, const std::function<bool(Value*)>& fn) {
  const Op* op = v->producer();
  if (op == nullptr || depth == 0 || !op->epilogue.empty()) return false;
  const std::string& type = op->type_name();
  if (type != "mul" && type != "add" && type != "real_div") return false;
  for (const char* param : {"x", "y"}) {
    Value* in = op->input(param);
    if (in->constant() == nullptr && (fn(in) || any_operand(in, depth - 1, fn))) return true;
  }
  return false;
}

struct Gelu {
  Value* x = nullptr;
  const char* mode = "";
};

std::optional<Gelu> gelu_of(const Value& v) {
  Gelu found;
  const bool is_gelu = any_operand(&v, kDepth, [&](Value* f) {
    const bool erf = made_by(f, "erf") != nullptr;
    if (!erf && made_by(f, "tanh") == nullptr) return false;
    return any_operand(&v, kDepth, [&](Value* x) {
      if (x == f || !(x->type == v.type) || !are_near(polynomial(f->producer()->input("x"), x), erf ? kErf : kTanh))
        return false;
      const auto parts = factors(&v, x, f);
      if (!parts || parts->x != 1 || parts->halves != 1 || std::fabs(parts->number - 1) > 1.0 / 1024) return false;
      found = {x, erf ? "EXACT" : "TANH_APPROXIMATION"};
      return true;
    });
  });
  return is_gelu ? std::optional(found) : std::nullopt;
}

Status fuse_gelu(PassContext& c) {
  return try_each_op(c.function.body(), [&](Op& op) -> Status {
    if ((op.type_name() != "mul" && op.type_name() != "real_div") || !op.epilogue.empty()) return {};
    const Type& type = op.output()->type;
    if (!type.is_tensor() || type.dtype() != DType::fp32) return {};
    const auto found = gelu_of(*op.output());
    if (!found) return {};
    Builder before = Builder::before(c.table, op);
    Value* y = MOKA_TRY(before.op("gelu", {{"x", found->x}, {"mode", found->mode}}, op.name));
    c.remark(cat(op.name, " and what it is made of into one gelu"));
    take_name(*y, *op.output());
    replace_and_erase(op, y);
    return {};
  });
}

}  // namespace

Pass pass_fuse_gelu() { return {"fuse_gelu", fuse_gelu}; }

}  // namespace moka::passes
