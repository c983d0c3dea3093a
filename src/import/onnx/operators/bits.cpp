// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "import/onnx/node.h"

/// Operators on the bits of integers, which MIL has none for: an axis of 32 bits takes their place.
namespace moka::import::onnx {
namespace {

constexpr int kBits = 32;

Tensor powers() {
  Tensor t = need(Tensor::zeros(DType::int32, Shape{kBits}));
  for (int i = 0; i < kBits; ++i) t.mut<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(uint32_t{1} << i);
  return t;
}

/// [..., 32] of 0 and 1, the sign as the last one.
Value* bits_of(const Node& n, Value* x) {
  Value* wide = n.expand_dims(x, {n.rank(x)});
  Value* low =
      n.binary("mod", n.binary("floor_div", wide, n.slice(n.constant(powers()), 0, 0, kBits - 1)), n.scalar(2, x));
  Value* sign = n.cast(n.binary("less", wide, n.scalar(0, x)), DType::int32);
  return n.concat({low, sign}, n.rank(x));
}

Value* from_bits(const Node& n, Value* bits) {
  return n.reduce("reduce_sum", n.mul(bits, n.constant(powers())), {n.rank(bits) - 1}, false);
}

void bitwise(Node& n, std::string_view op) {
  Value *x = bits_of(n, n.in(0)), *y = bits_of(n, n.in(1));
  Value* out =
      op == "xor" ? n.cast(n.binary("not_equal", x, y), DType::int32) : n.binary(op == "and" ? "mul" : "maximum", x, y);
  n.set(0, wrapped(n, from_bits(n, out), n.type()));
}

void invert(Node& n) {
  Value* x = n.in(0);
  n.set(0, wrapped(n, n.sub(-1.0, x), n.type()));
}

/// A shift by the width or more, or by a negative number, leaves only the sign.
void shift(Node& n) {
  Value *x = n.in(0), *y = n.in(1);
  const double width = format::onnx::bits_of(n.type());
  const auto below = [&](double limit) {
    return n.binary("logical_and", n.binary("greater_equal", y, n.scalar(0, y)),
                    n.binary("less", y, n.scalar(limit, y)));
  };
  Value* zero = n.scalar(0, x);
  if (n.text_or("direction", "LEFT") == "LEFT") {
    // The factor 2^31 does not fit into int32, so the shift takes two steps.
    Value* inside = below(std::min<double>(width, kBits));
    Value* places = n.select(inside, y, n.scalar(0, y));
    Value* half = n.binary("floor_div", places, n.scalar(2, y));
    Value* once = n.mul(x, n.binary("pow", n.scalar(2, x), half));
    Value* moved = n.mul(once, n.binary("pow", n.scalar(2, x), n.sub(places, half)));
    return n.set(0, wrapped(n, n.select(inside, moved, zero), n.type()));
  }
  Value* inside = below(std::min(width, kBits - 1.0));
  Value* factor = n.binary("pow", n.scalar(2, x), n.select(inside, y, n.scalar(0, y)));
  Value* sign = n.select(n.binary("less", x, zero), n.scalar(-1, x), zero);
  n.set(0, n.select(inside, n.binary("floor_div", x, factor), sign));
}

/// The bits of float32 as int32. The exponent is what makes the number lie between 1 and 2.
Value* bits_of_float(const Node& n, Value* x) {
  const auto number = [&](double v) { return n.scalar(v, x); };
  Value* size = n.unary("abs", x);
  Value *m = size, *exponent = number(127);
  for (int step = 64; step > 0; step /= 2) {
    Value* large = n.binary("greater_equal", m, number(std::ldexp(1.0, step)));
    m = n.select(large, n.mul(m, std::ldexp(1.0, -step)), m);
    exponent = n.select(large, n.add(exponent, step), exponent);
  }
  for (int step = 64; step > 0; step /= 2) {
    Value* small = n.binary("less", m, number(std::ldexp(1.0, 1 - step)));
    m = n.select(small, n.mul(m, std::ldexp(1.0, step)), m);
    exponent = n.select(small, n.add(exponent, -step), exponent);
  }
  constexpr int fraction = 23;
  const auto whole = [&](Value* v) { return n.cast(v, DType::int32); };
  Value* one = n.constant(Tensor::scalar(DType::int32, 1 << fraction));
  Value* out = n.add(n.mul(whole(exponent), one), whole(n.mul(n.add(m, -1.0), std::ldexp(1.0, fraction))));
  Value* subnormal = whole(n.mul(n.mul(size, std::ldexp(1.0, 75)), std::ldexp(1.0, 74)));
  out = n.select(n.binary("less", size, number(std::ldexp(1.0, -126))), subnormal, out);
  constexpr double infinity = 0x7F800000, nan = 0x7FC00000;
  out = n.select(n.binary("greater", size, number(3.4028234663852886e38)), n.scalar(infinity, out), out);
  out = n.select(n.binary("not_equal", x, x), n.scalar(nan, out), out);
  Value* zero_below =
      n.binary("logical_and", n.binary("equal", x, number(0)), n.binary("less", n.div(number(1), x), number(0)));
  Value* negative = n.binary("logical_or", n.binary("less", x, number(0)), zero_below);
  return n.select(negative, n.add(out, n.scalar(std::numeric_limits<int32_t>::min(), out)), out);
}

/// int32 as the bits of float32.
Value* float_of_bits(const Node& n, Value* x) {
  constexpr int fraction = 23, exponents = 256;
  Tensor powers = need(Tensor::zeros(DType::fp32, Shape{exponents}));
  for (int e = 0; e < exponents; ++e) ir::store_f64(powers.view(), e, std::ldexp(1.0, std::max(e, 1) - 127));
  Value* negative = n.binary("less", x, n.scalar(0, x));
  Value* rest = n.select(negative, n.sub(x, n.scalar(std::numeric_limits<int32_t>::min(), x)), x);
  Value* exponent = n.binary("floor_div", rest, n.scalar(1 << fraction, x));
  Value* part = n.cast(n.sub(rest, n.mul(exponent, n.scalar(1 << fraction, x))), DType::fp32);
  Value* is_subnormal = n.binary("equal", exponent, n.scalar(0, exponent));
  Value* hidden = n.select(is_subnormal, n.scalar(0, part), n.scalar(1, part));
  Value* scale = n.op("gather", {{"x", n.constant(powers)}, {"indices", exponent}, {"axis", 0}});
  Value* out = n.mul(n.add(n.mul(part, std::ldexp(1.0, -fraction)), hidden), scale);
  const double infinity = std::numeric_limits<double>::infinity();
  Value* special = n.select(n.binary("equal", part, n.scalar(0, part)), n.scalar(infinity, part),
                            n.scalar(std::numeric_limits<double>::quiet_NaN(), part));
  out = n.select(n.binary("equal", exponent, n.scalar(255, exponent)), special, out);
  return n.select(negative, n.mul(out, -1.0), out);
}

void bit_cast(Node& n) {
  const DataType from = n.type(), to = static_cast<DataType>(n.integer_or("to", 0));
  Value* x = n.in(0);
  const auto is_whole = [](DataType t) { return computed_as(t) == DType::int32 || t == DataType::boolean; };
  const bool is_wide = format::onnx::bits_of(from) > 32;
  if (!is_wide && is_whole(from) && to == DataType::boolean) return n.set(0, n.cast(x, DType::boolean), to);
  if (!is_wide && is_whole(from) && is_whole(to)) return n.set(0, wrapped(n, n.cast(x, DType::int32), to), to);
  if (from == DataType::float32 && is_whole(to)) return n.set(0, bits_of_float(n, x), to);
  if (!is_wide && is_whole(from) && to == DataType::float32) return n.set(0, float_of_bits(n, x), to);
  n.unsupported(cat("the bits of ", format::onnx::to_string(from), " as ", format::onnx::to_string(to)));
}

constexpr OperatorImport kBitsOperators[] = {
    {"BitCast", bit_cast},
    {"BitwiseAnd", [](Node& n) { bitwise(n, "and"); }},
    {"BitwiseOr", [](Node& n) { bitwise(n, "or"); }},
    {"BitwiseXor", [](Node& n) { bitwise(n, "xor"); }},
    {"BitwiseNot", invert},
    {"BitShift", shift},
};

}  // namespace

std::span<const OperatorImport> operators_bits() { return kBitsOperators; }

}  // namespace moka::import::onnx
