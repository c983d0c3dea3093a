// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

/// A format of few bits, whose values float32 holds: significant bits with the hidden one, and the exponent of the
/// smallest normal number.
struct Small {
  int significant, least_exponent;
  double most;
  bool has_infinity, has_nan;
};

const Small* small_of(DataType type) {
  static constexpr Small bfloat16{8, -126, 3.38953138925153547590470800371487867e38, true, true};
  static constexpr Small e4m3fn{4, -6, 448, false, true}, e4m3fnuz{4, -7, 240, false, true};
  static constexpr Small e5m2{3, -14, 57344, true, true}, e5m2fnuz{3, -15, 57344, false, true};
  static constexpr Small e2m1{2, 0, 6, false, false};
  switch (type) {
    case DataType::bfloat16: return &bfloat16;
    case DataType::float8e4m3fn: return &e4m3fn;
    case DataType::float8e4m3fnuz: return &e4m3fnuz;
    case DataType::float8e5m2: return &e5m2;
    case DataType::float8e5m2fnuz: return &e5m2fnuz;
    case DataType::float4e2m1: return &e2m1;
    default: return nullptr;
  }
}

/// x rounded to the nearest number of the format, ties to even. Large numbers saturate, or become infinite or NaN.
Value* rounded(const Node& n, Value* x, const Small& f, bool saturate) {
  constexpr int float_bits = 24;
  x = n.cast(x, DType::fp32);
  const double limit = 1e30;  // beyond which the split overflows; saturation handles what is larger
  const bool wide = f.most > limit;
  Value* within = wide ? n.mul(x, std::ldexp(1.0, -float_bits))
                       : n.op("clip", {{"x", x}, n.arg("alpha", -limit, x), n.arg("beta", limit, x)});
  // Veltkamp's split keeps the upper bits.
  Value* scaled = n.mul(within, std::ldexp(1.0, float_bits - f.significant) + 1);
  Value* upper = n.sub(scaled, n.sub(scaled, within));
  if (wide) upper = n.mul(upper, std::ldexp(1.0, float_bits));
  Value* out = upper;
  if (!wide) {
    // Below the normal numbers all have the same distance, to which adding a large number rounds.
    const double step = std::ldexp(1.0, f.least_exponent - f.significant + 1);
    Value* units = n.mul(n.unary("round", n.mul(within, 1 / step)), step);
    Value* tiny = n.binary("less", n.unary("abs", within), n.scalar(std::ldexp(1.0, f.least_exponent), x));
    out = n.select(tiny, units, upper);
  }
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  Value* large = n.binary("greater", n.unary("abs", out), n.scalar(f.most, x));
  Value* sign = n.unary("sign", x);
  Value* beyond = saturate || !(f.has_infinity || f.has_nan) ? n.mul(sign, f.most)
                  : f.has_infinity                           ? n.mul(sign, infinity)
                                                             : n.mul(x, nan);
  out = n.select(large, beyond, out);
  Value* unordered = n.binary("not_equal", x, x);
  Value* infinite = n.binary("equal", n.unary("abs", x), n.scalar(infinity, x));
  if (saturate && !wide) return n.select(unordered, x, n.select(infinite, n.mul(sign, f.most), out));
  return n.select(unordered, x, n.select(infinite, beyond, out));
}

/// The power of two that float8e8m0 stores: round_mode up, down or nearest.
Value* power_of_two(const Node& n, Value* x, const std::string& mode) {
  // Smaller values become the smallest power that the format has.
  x = n.cast(x, DType::fp32);
  Value* least = n.scalar(std::ldexp(1.0, -127), x);
  // Rounding to one significant bit gives the nearest power; halving and doubling correct it.
  static constexpr Small one_bit{1, -126, 1e38, true, true};
  Value* near = rounded(n, x, one_bit, true);
  Value* down = n.select(n.binary("greater", near, x), n.mul(near, 0.5), near);
  const auto limited = [&](Value* v) { return n.select(n.binary("less", v, least), least, v); };
  if (mode == "down") return limited(down);
  Value* up = n.select(n.binary("less", down, x), n.mul(down, 2), down);
  if (mode == "nearest") {
    Value* middle = n.mul(n.add(down, up), 0.5);
    return limited(n.select(n.binary("less", x, middle), down, up));
  }
  return limited(up);
}

bool is_small_float(DataType type) { return small_of(type) != nullptr || type == DataType::float8e8m0; }

/// An element type, computed. Formats of 8 and fewer bits are values of float32.
DType storage(DataType type) { return is_small_float(type) ? DType::fp32 : computed_as(type); }

}  // namespace

Value* converted_to(const Node& n, Value* x, DataType to, bool saturate) {
  if (to == DataType::float8e8m0) return power_of_two(n, x, n.text_or("round_mode", "up"));
  if (const Small* f = small_of(to)) return rounded(n, x, *f, saturate && to != DataType::bfloat16);
  Value* v = n.cast(x, storage(to));
  return wrapped(n, v, to);
}

namespace {

void cast(Node& n, DataType to) {
  if (n.type() == DataType::string || to == DataType::string) n.unsupported("Core ML has no tensors of strings");
  const bool saturate = n.integer_or("saturate", 1) != 0;
  if (n.type() == to) return n.set(0, n.unary("identity", n.in(0)), to);
  // Constants convert exactly, from their own type.
  const Item& item = n.item(0);
  if (item.is_constant() && !is_small_float(to) && !is_small_float(n.type()) && item.tensor.dtype() != DType::string &&
      to != DataType::boolean && ir::is_float(item.tensor.dtype()) == false && is_float(to) == false) {
    return n.set(0, wrapped(n, n.in(0)->type.dtype() == DType::boolean ? n.cast(n.in(0), DType::int32) : n.in(0), to),
                 to);
  }
  n.set(0, converted_to(n, n.in(0), to, saturate), to);
}

constexpr OperatorImport kCastOperators[] = {
    {"Cast", [](Node& n) { cast(n, static_cast<DataType>(n.integer_or("to", 1))); }},
    {"CastLike", [](Node& n) { cast(n, n.type(1)); }},
};

}  // namespace

std::span<const OperatorImport> operators_cast() { return kCastOperators; }

}  // namespace moka::import::onnx
