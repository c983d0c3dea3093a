// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

template <const char* op>
void same(Node& n) {
  n.set(0, n.unary(op, n.in(0)));
}

/// Core ML adds a number to x unless it is told not to.
void log(Node& n) {
  Value* x = n.in(0);
  n.set(0, n.log(x));
}

void reciprocal(Node& n) {
  Value* x = n.in(0);
  n.set(0, n.div(n.scalar(1, x), x));
}

/// log(x + sqrt(x^2 + sign)) for x above 1, without the square of x, which may overflow.
Value* log_of_sum(const Node& n, Value* x, double sign) {
  Value* inverse = n.div(n.scalar(1, x), x);
  Value* root = n.unary("sqrt", n.add(n.mul(n.mul(inverse, inverse), sign), 1));
  return n.add(n.log(x), n.log(n.add(root, 1)));
}

/// atanh is exact near 0, where a logarithm of almost 1 is not.
void asinh(Node& n) {
  Value* x = n.in(0);
  Value* a = n.unary("abs", x);
  Value* low = n.unary("atanh", n.div(x, n.unary("sqrt", n.add(n.mul(x, x), 1))));
  Value* high = n.mul(n.unary("sign", x), log_of_sum(n, a, 1));
  n.set(0, n.select(n.binary("less", a, n.scalar(1, a)), low, high));
}

void acosh(Node& n) {
  Value* x = n.in(0);
  Value* root = n.mul(n.unary("sqrt", n.add(x, -1)), n.unary("sqrt", n.add(x, 1)));
  Value* low = n.unary("atanh", n.div(root, x));
  n.set(0, n.select(n.binary("less", x, n.scalar(2, x)), low, log_of_sum(n, x, -1)));
}

void is_nan(Node& n) { n.set(0, n.binary("not_equal", n.in(0), n.in(0)), DataType::boolean); }

void is_inf(Node& n) {
  Value* x = n.in(0);
  const double infinity = HUGE_VAL;
  const bool positive = n.integer_or("detect_positive", 1) != 0, negative = n.integer_or("detect_negative", 1) != 0;
  if (!positive && !negative) return n.set(0, n.binary("less", n.unary("abs", x), n.scalar(-1, x)), DataType::boolean);
  Value* v = positive && negative ? n.unary("abs", x) : x;
  n.set(0, n.binary("equal", v, n.scalar(positive ? infinity : -infinity, x)), DataType::boolean);
}

/// Core ML's round goes to the even neighbor of halves, too.
constexpr char kRound[] = "round", kAbs[] = "abs", kCeil[] = "ceil", kFloor[] = "floor", kExp[] = "exp",
               kSqrt[] = "sqrt", kErf[] = "erf", kSign[] = "sign", kSin[] = "sin", kCos[] = "cos", kTan[] = "tan",
               kAsin[] = "asin", kAcos[] = "acos", kAtan[] = "atan", kSinh[] = "sinh", kCosh[] = "cosh",
               kAtanh[] = "atanh";

constexpr OperatorImport kUnaryOperators[] = {
    {"Round", same<kRound>}, {"Abs", same<kAbs>},   {"Ceil", same<kCeil>},      {"Floor", same<kFloor>},
    {"Exp", same<kExp>},     {"Sqrt", same<kSqrt>}, {"Erf", same<kErf>},        {"Sign", same<kSign>},
    {"Sin", same<kSin>},     {"Cos", same<kCos>},   {"Tan", same<kTan>},        {"Asin", same<kAsin>},
    {"Acos", same<kAcos>},   {"Atan", same<kAtan>}, {"Sinh", same<kSinh>},      {"Cosh", same<kCosh>},
    {"Atanh", same<kAtanh>}, {"Log", log},          {"Reciprocal", reciprocal}, {"Asinh", asinh},
    {"Acosh", acosh},        {"IsNaN", is_nan},     {"IsInf", is_inf},
};

}  // namespace

std::span<const OperatorImport> operators_unary() { return kUnaryOperators; }

}  // namespace moka::import::onnx
