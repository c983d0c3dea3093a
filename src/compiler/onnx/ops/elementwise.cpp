// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/call.h"

namespace moka::compiler::onnx {
namespace {

struct Same {
  std::string_view op;
  const char* node;
  bool floats_only;  ///< ONNX has it only for floating-point numbers
};

constexpr Same kUnary[] = {
    {"abs", "Abs", false},          {"acos", "Acos", true},
    {"asin", "Asin", true},         {"atan", "Atan", true},
    {"atanh", "Atanh", true},       {"ceil", "Ceil", true},
    {"cos", "Cos", true},           {"cosh", "Cosh", true},
    {"erf", "Erf", true},           {"exp", "Exp", true},
    {"floor", "Floor", true},       {"sign", "Sign", false},
    {"sin", "Sin", true},           {"sinh", "Sinh", true},
    {"sqrt", "Sqrt", true},         {"tan", "Tan", true},
    {"tanh", "Tanh", true},         {"relu", "Relu", true},
    {"sigmoid", "Sigmoid", true},   {"softsign", "Softsign", true},
    {"softplus", "Softplus", true}, {"round", "Round", true},
    {"logical_not", "Not", false},  {"nn_acosh", "Acosh", true},
    {"nn_asinh", "Asinh", true},    {"moka_hard_swish", "HardSwish", true},
};

constexpr Same kBinary[] = {
    {"add", "Add", false},         {"sub", "Sub", false},       {"mul", "Mul", false},
    {"maximum", "Max", false},     {"minimum", "Min", false},   {"equal", "Equal", false},
    {"greater", "Greater", false}, {"less", "Less", false},     {"greater_equal", "GreaterOrEqual", false},
    {"logical_and", "And", false}, {"logical_or", "Or", false}, {"less_equal", "LessOrEqual", false},
    {"logical_xor", "Xor", false},
};

template <size_t n>
const Same& entry(const Same (&table)[n], std::string_view op) {
  for (const Same& s : table)
    if (s.op == op) return s;
  return table[0];
}

/// The type in which onnxruntime and others calculate with small integers.
DType arithmetic(DType t) {
  switch (t) {
    case DType::int8:
    case DType::uint8:
    case DType::int16:
    case DType::uint16: return DType::int32;
    case DType::uint32: return DType::int64;
    default: return t;
  }
}

Name as(Call& c, const Name& x, DType from, DType to) { return from == to ? x : c.cast(x, to); }

void unary(Call& c) {
  const Same& s = entry(kUnary, c.op.type_name());
  const DType t = c.dtype("x"), in = s.floats_only && ir::is_integer(t) ? DType::fp32 : arithmetic(t);
  c.set(as(c, c.node(s.node, {as(c, c.x(), t, in)}), in, c.out().dtype()));
}

void binary(Call& c) {
  const Same& s = entry(kBinary, c.op.type_name());
  const DType t = c.dtype("x"), in = arithmetic(t), out = c.out().dtype();
  const Name x = as(c, c.x("x"), t, in), y = as(c, c.x("y"), t, in);
  const Name z = c.node(s.node, {x, y});
  c.set(out == DType::boolean ? z : as(c, z, in, out));
}

void not_equal(Call& c) {
  const DType t = c.dtype("x"), in = arithmetic(t);
  const Name x = as(c, c.x("x"), t, in), y = as(c, c.x("y"), t, in);
  c.set(c.node("Not", {c.node("Equal", {x, y})}));
}

/// Whether no element of a constant divisor is 0.
bool divides(Call& c) {
  const auto y = c.constant("y");
  if (!y) return false;
  for (int64_t i = 0; i < y->count(); i++)
    if (ir::load_i64(y->view(), i) == 0) return false;
  return true;
}

/// Integers: x / y as doubles, rounded by `round`, 0 where y is 0.
Name quotient(Call& c, const char* round) {
  const DType t = c.dtype("x");
  const Name x = c.cast(c.x("x"), DType::fp64), y = c.cast(c.x("y"), DType::fp64);
  Name q = c.node("Div", {x, y});
  if (!divides(c)) q = c.node("Where", {c.node("Equal", {y, c.scalar(DType::fp64, 0)}), c.scalar(DType::fp64, 0), q});
  if (round != nullptr) q = c.node(round, {q});
  return c.cast(q, t);
}

void real_div(Call& c) {
  if (ir::is_float(c.dtype("x")) || (divides(c) && arithmetic(c.dtype("x")) == c.dtype("x")))
    return c.set(c.node("Div", {c.x("x"), c.x("y")}));
  c.set(quotient(c, nullptr));
}

void floor_div(Call& c) {
  if (ir::is_float(c.dtype("x"))) return c.set(c.node("Floor", {c.node("Div", {c.x("x"), c.x("y")})}));
  c.set(quotient(c, "Floor"));
}

void mod(Call& c) {
  const DType t = c.dtype("x"), in = arithmetic(t);
  const Name x = as(c, c.x("x"), t, in), y = as(c, c.x("y"), t, in);
  if (ir::is_float(t)) {
    const Name whole = c.node("Floor", {c.node("Div", {x, y})});
    return c.set(c.node("Sub", {x, c.node("Mul", {y, whole})}));
  }
  if (divides(c)) return c.set(as(c, c.node("Mod", {x, y}), in, t));
  const Name zero = c.node("Equal", {y, c.scalar(in, 0)});
  const Name m = c.node("Mod", {x, c.node("Where", {zero, c.scalar(in, 1), y})});
  c.set(as(c, c.node("Where", {zero, c.scalar(in, 0), m}), in, t));
}

void pow(Call& c) {
  const DType t = c.dtype("x");
  if (ir::is_float(t)) return c.set(c.node("Pow", {c.x("x"), c.x("y")}));
  const Name x = c.cast(c.x("x"), DType::fp64), y = c.cast(c.x("y"), DType::fp64);
  c.set(c.cast(c.node("Pow", {x, y}), t));
}

void square(Call& c) {
  const DType t = c.dtype("x"), in = arithmetic(t);
  const Name x = as(c, c.x(), t, in);
  c.set(as(c, c.node("Mul", {x, x}), in, t));
}

void exp2(Call& c) {
  const DType t = c.dtype("x"), in = ir::is_float(t) ? t : DType::fp64;
  c.set(as(c, c.node("Pow", {c.scalar(in, 2), as(c, c.x(), t, in)}), in, t));
}

/// x + epsilon, or x where that is the same in its type.
Name with_epsilon(Call& c) {
  const DType t = c.dtype("x");
  const double e = c.number("epsilon");
  constexpr double smallest_half = 3e-8;
  if (e == 0 || (t == DType::fp16 && e < smallest_half)) return c.x();
  return c.node("Add", {c.x(), c.scalar(t, e)});
}

void log(Call& c) { c.set(c.node("Log", {with_epsilon(c)})); }
void inverse(Call& c) { c.set(c.node("Reciprocal", {with_epsilon(c)})); }
void rsqrt(Call& c) { c.set(c.node("Reciprocal", {c.node("Sqrt", {with_epsilon(c)})})); }

void clip(Call& c) {
  const DType t = c.dtype("x");
  const double alpha = c.number("alpha"), beta = c.number("beta");
  if (alpha > beta) {
    return c.set(c.node("Min", {c.node("Max", {c.x(), c.scalar(t, alpha)}), c.scalar(t, beta)}));
  }
  c.set(c.node("Clip", {c.x(), c.scalar(t, alpha), c.scalar(t, beta)}));
}

void threshold(Call& c) { c.set(c.node("Max", {c.x(), c.scalar(c.dtype("x"), c.number("alpha"))})); }

void cast(Call& c) {
  const DType from = c.dtype("x"), to = c.out().dtype();
  if (from == to) return c.set(c.x());
  if (to == DType::int32 && from == DType::int64) return c.set_int64(c.x());
  // Narrow integers wrap, and floats saturate, which Cast leaves open.
  if (ir::is_float(from) && ir::is_integer(to) && ir::bits(to) < 32) {
    const double low = ir::is_signed_integer(to) ? -(1 << (ir::bits(to) - 1)) : 0;
    const double high = ir::is_signed_integer(to) ? (1 << (ir::bits(to) - 1)) - 1 : (1 << ir::bits(to)) - 1;
    if (from != DType::fp16)
      return c.set(c.cast(c.node("Clip", {c.x(), c.scalar(from, low), c.scalar(from, high)}), to));
  }
  c.set(c.cast(c.x(), to));
}

/// onnxruntime has no Where of booleans and of some integers.
void select(Call& c) {
  const DType t = c.out().dtype(), in = t == DType::boolean ? DType::uint8 : arithmetic(t);
  const Name a = as(c, c.x("a"), t, in), b = as(c, c.x("b"), t, in);
  c.set(as(c, c.node("Where", {c.x("cond"), a, b}), in, t));
}
void identity(Call& c) { c.set(c.x()); }

}  // namespace

std::span<const OpWriter> writers_elementwise();
std::span<const OpWriter> writers_elementwise() {
  static const auto* list = [] {
    auto* v = new std::vector<OpWriter>{{"not_equal", not_equal},
                                        {"real_div", real_div},
                                        {"floor_div", floor_div},
                                        {"mod", mod},
                                        {"pow", pow},
                                        {"square", square},
                                        {"exp2", exp2},
                                        {"log", log},
                                        {"inverse", inverse},
                                        {"rsqrt", rsqrt},
                                        {"clip", clip},
                                        {"threshold", threshold},
                                        {"cast", cast},
                                        {"select", select},
                                        {"identity", identity}};
    for (const Same& s : kUnary) v->push_back({s.op, unary});
    for (const Same& s : kBinary) v->push_back({s.op, binary});
    return v;
  }();
  return *list;
}

}  // namespace moka::compiler::onnx
