#include <algorithm>

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

constexpr OperatorImport kBitsOperators[] = {
    {"BitwiseAnd", [](Node& n) { bitwise(n, "and"); }},
    {"BitwiseOr", [](Node& n) { bitwise(n, "or"); }},
    {"BitwiseXor", [](Node& n) { bitwise(n, "xor"); }},
    {"BitwiseNot", invert},
    {"BitShift", shift},
};

}  // namespace

std::span<const OperatorImport> operators_bits() { return kBitsOperators; }

}  // namespace moka::import::onnx
