// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

bool is_integer(DataType type) { return !is_float(type) && type != DataType::boolean; }

/// The second operand. Before opset 7 it broadcasts only where an attribute says so, and `axis` places it.
Value* second(const Node& n, const Value* x) {
  Value* y = n.in(1);
  const Attribute* axis = n.attribute("axis");
  if (n.opset >= 7 || n.integer_or("broadcast", 0) == 0 || axis == nullptr) return y;
  const int64_t at = n.axis(axis->integer, x), trailing = n.rank(x) - at - n.rank(y);
  if (trailing < 0) n.malformed(cat("axis ", axis->integer, " for operands of type ", x->type, " and ", y->type));
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < trailing; ++i) axes.push_back(n.rank(y) + i);
  return n.expand_dims(y, axes);
}

void binary(Node& n, std::string_view op) {
  Value *x = n.in(0), *y = second(n, x);
  n.set(0, wrapped(n, n.binary(op, x, y), n.type(0)));
}

void compare(Node& n, std::string_view op) {
  Value *x = n.in(0), *y = second(n, x);
  const bool flags = x->type.dtype() == DType::boolean;
  if (flags) x = n.cast(x, DType::int32), y = n.cast(y, DType::int32);
  n.set(0, n.binary(op, x, y), DataType::boolean);
}

/// Sum, Mean, Max, Min: of any number of inputs.
Value* folded(Node& n, std::string_view op) {
  Value* out = n.in(0);
  for (size_t i = 1; i < n.inputs(); ++i) out = n.binary(op, out, n.in(i));
  return out;
}

void mod(Node& n) {
  Value *x = n.in(0), *y = n.in(1);
  if (n.integer_or("fmod", 0) == 0) return n.set(0, wrapped(n, n.binary("mod", x, y), n.type()));
  Value* quotient = n.div(x, y);
  if (is_float(n.type())) {
    // The remainder of the absolute values is exact, and its sign is that of x.
    Value* rest = n.binary("mod", n.unary("abs", x), n.unary("abs", y));
    return n.set(0, n.mul(n.unary("sign", x), rest));
  }
  n.set(0, n.sub(x, n.mul(quotient, y)));
}

void pow(Node& n) {
  Value *x = n.in(0), *y = second(n, x);
  const DType own = x->type.dtype();
  if (y->type.dtype() != own) {
    // An integer to a fractional power is computed with fractions.
    const bool fractions = ir::is_float(y->type.dtype()) && !ir::is_float(own);
    const DType common = fractions ? y->type.dtype() : own;
    x = n.cast(x, common), y = n.cast(y, common);
  }
  n.set(0, wrapped(n, n.cast(n.binary("pow", x, y), own), n.type()));
}

void logical(Node& n, std::string_view op) { n.set(0, n.binary(op, n.in(0), second(n, n.in(0))), DataType::boolean); }

void negate(Node& n) {
  Value* x = n.in(0);
  n.set(0, wrapped(n, n.mul(x, -1), n.type()));
}

void mean(Node& n) {
  Value* sum = folded(n, "add");
  n.set(0, n.mul(sum, 1.0 / static_cast<double>(n.inputs())));
}

void where(Node& n) {
  Value* cond = n.in(0);
  n.set(0, n.select(cond, n.in(1), n.in(2)), n.type(1));
}

/// Clip: bounds are attributes before opset 11.
void clip(Node& n) {
  Value* x = n.in(0);
  if (n.opset < 11) {
    if (n.attribute("min") != nullptr) x = n.binary("maximum", x, n.scalar(n.number_or("min", 0), x));
    if (n.attribute("max") != nullptr) x = n.binary("minimum", x, n.scalar(n.number_or("max", 0), x));
    return n.set(0, x == n.in(0) ? n.unary("identity", x) : x);
  }
  const Tensor *low = n.constant(1), *high = n.constant(2);
  const bool floats = is_float(n.type());
  if (floats && low != nullptr && high != nullptr && low->count() == 1 && high->count() == 1) {
    const double alpha = ir::load_f64(low->view(), 0), beta = ir::load_f64(high->view(), 0);
    if (alpha == 0 && beta == 6) return n.set(0, n.unary("relu6", x));
    if (alpha < beta) return n.set(0, n.op("clip", {{"x", x}, n.arg("alpha", alpha, x), n.arg("beta", beta, x)}));
  }
  Value* out = x;
  if (n.has(1)) out = n.binary("maximum", out, n.in(1));
  if (n.has(2)) out = n.binary("minimum", out, n.in(2));
  n.set(0, out == x ? n.unary("identity", x) : out);
}

constexpr OperatorImport kArithmeticOperators[] = {
    {"Add", [](Node& n) { binary(n, "add"); }},
    {"Sub", [](Node& n) { binary(n, "sub"); }},
    {"Mul", [](Node& n) { binary(n, "mul"); }},
    {"Div", [](Node& n) { binary(n, "real_div"); }},
    {"Mod", mod},
    {"Pow", pow},
    {"Neg", negate},
    {"Sum", [](Node& n) { n.set(0, n.inputs() == 1 ? n.unary("identity", n.in(0)) : folded(n, "add")); }},
    {"Mean", mean},
    {"Max", [](Node& n) { n.set(0, n.inputs() == 1 ? n.unary("identity", n.in(0)) : folded(n, "maximum")); }},
    {"Min", [](Node& n) { n.set(0, n.inputs() == 1 ? n.unary("identity", n.in(0)) : folded(n, "minimum")); }},
    {"Equal", [](Node& n) { compare(n, "equal"); }},
    {"Greater", [](Node& n) { compare(n, "greater"); }},
    {"GreaterOrEqual", [](Node& n) { compare(n, "greater_equal"); }},
    {"Less", [](Node& n) { compare(n, "less"); }},
    {"LessOrEqual", [](Node& n) { compare(n, "less_equal"); }},
    {"And", [](Node& n) { logical(n, "logical_and"); }},
    {"Or", [](Node& n) { logical(n, "logical_or"); }},
    {"Xor", [](Node& n) { logical(n, "logical_xor"); }},
    {"Not", [](Node& n) { n.set(0, n.unary("logical_not", n.in(0))); }},
    {"Where", where},
    {"Clip", clip},
};

}  // namespace

/// Values of these types are computed as int32, so their results are brought back into range.
Value* wrapped(const Node& n, Value* v, DataType type) {
  const auto within = [&](int64_t range, int64_t low) {
    Value* shifted = low == 0 ? v : n.add(v, static_cast<double>(-low));
    Value* rest = n.binary("mod", shifted, n.scalar(static_cast<double>(range), v));
    return low == 0 ? rest : n.add(rest, static_cast<double>(low));
  };
  if (v->type.dtype() != DType::int32 || !is_integer(type)) return v;
  switch (type) {
    case DataType::uint2: return within(4, 0);
    case DataType::int2: return within(4, -2);
    case DataType::uint4: return within(16, 0);
    case DataType::int4: return within(16, -8);
    case DataType::uint8: return n.cast(n.cast(v, DType::uint8), DType::int32);
    case DataType::int8: return n.cast(n.cast(v, DType::int8), DType::int32);
    case DataType::uint16: return n.cast(n.cast(v, DType::uint16), DType::int32);
    case DataType::int16: return n.cast(n.cast(v, DType::int16), DType::int32);
    default: return v;
  }
}

std::span<const OperatorImport> operators_arithmetic() { return kArithmeticOperators; }

}  // namespace moka::import::onnx
