// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/network.h"

namespace moka::import::nn {

namespace {

Result<Value*> boolean(Layer& l, Value* v) {
  if (v->type.dtype() == DType::boolean) return v;
  return l.op("not_equal", {{"x", v}, {"y", 0.0f}});
}

Status chain(Layer& l, std::string_view op) {
  MOKA_TRY(l.arity(2, kManyInputs));
  Form form = MOKA_TRY(l.common_form());
  Value* y = MOKA_TRY(l.in(0, form));
  for (int i = 1; i < l.inputs(); i++) {
    Value* next = MOKA_TRY(l.in(i, form));
    y = MOKA_TRY(l.op(op, {{"x", y}, {"y", next}}));
  }
  return l.set(0, y, form);
}

/// Compares two inputs, or a single input with a number of the layer. The result is 1 or 0.
Status compare(Layer& l, std::string_view op, float alpha) {
  MOKA_TRY(l.arity(1, 2));
  Form form = MOKA_TRY(l.common_form());
  Value* x = MOKA_TRY(l.in(0, form));
  Value* other = l.inputs() == 1 ? nullptr : MOKA_TRY(l.in(1, form));
  Value* y = MOKA_TRY(other == nullptr ? l.op(op, {{"x", x}, {"y", alpha}}) : l.op(op, {{"x", x}, {"y", other}}));
  return l.set(0, MOKA_TRY(l.f32(y)), form);
}

Status logical(Layer& l, std::string_view op) {
  MOKA_TRY(l.arity(2, 2));
  Form form = MOKA_TRY(l.common_form());
  Value* x = MOKA_TRY(boolean(l, MOKA_TRY(l.in(0, form))));
  Value* y = MOKA_TRY(boolean(l, MOKA_TRY(l.in(1, form))));
  return l.set(0, MOKA_TRY(l.f32(MOKA_TRY(l.op(op, {{"x", x}, {"y", y}})))), form);
}

Status logical_not(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  Form form = MOKA_TRY(l.cheap_form(0));
  Value* y = MOKA_TRY(l.op("equal", {{"x", MOKA_TRY(l.in(0, form))}, {"y", 0.0f}}));
  return l.set(0, MOKA_TRY(l.f32(y)), form);
}

Status where(Layer& l) {
  MOKA_TRY(l.arity(3, 3));
  Form form = MOKA_TRY(l.common_form());
  Value* cond = MOKA_TRY(boolean(l, MOKA_TRY(l.in(0, form))));
  Value* a = MOKA_TRY(l.in(1, form));
  Value* b = MOKA_TRY(l.in(2, form));
  return l.set(0, MOKA_TRY(l.op("select", {{"cond", cond}, {"a", a}, {"b", b}})), form);
}

Status mod(Layer& l) { return chain(l, "mod"); }
Status minimum(Layer& l) { return chain(l, "minimum"); }
Status maximum(Layer& l) { return chain(l, "maximum"); }
Status add(Layer& l) { return chain(l, "add"); }
Status power(Layer& l) { return chain(l, "pow"); }
Status divide(Layer& l) { return chain(l, "real_div"); }
Status floor_div(Layer& l) { return chain(l, "floor_div"); }
Status multiply(Layer& l) { return chain(l, "mul"); }
Status subtract(Layer& l) { return chain(l, "sub"); }
Status equal(Layer& l) { return compare(l, "equal", l.p.equal().alpha()); }
Status not_equal(Layer& l) { return compare(l, "not_equal", l.p.notequal().alpha()); }
Status less(Layer& l) { return compare(l, "less", l.p.lessthan().alpha()); }
Status less_equal(Layer& l) { return compare(l, "less_equal", l.p.lessequal().alpha()); }
Status greater(Layer& l) { return compare(l, "greater", l.p.greaterthan().alpha()); }
Status greater_equal(Layer& l) { return compare(l, "greater_equal", l.p.greaterequal().alpha()); }
Status logical_or(Layer& l) { return logical(l, "logical_or"); }
Status logical_and(Layer& l) { return logical(l, "logical_and"); }
Status logical_xor(Layer& l) { return logical(l, "logical_xor"); }

}  // namespace

std::span<const LayerImport> layers_broadcast() {
  using L = proto::NeuralNetworkLayer;
  static const LayerImport list[] = {
      {L::kEqual, "equal", equal},
      {L::kNotEqual, "notEqual", not_equal},
      {L::kLessThan, "lessThan", less},
      {L::kLessEqual, "lessEqual", less_equal},
      {L::kGreaterThan, "greaterThan", greater},
      {L::kGreaterEqual, "greaterEqual", greater_equal},
      {L::kLogicalOr, "logicalOr", logical_or},
      {L::kLogicalXor, "logicalXor", logical_xor},
      {L::kLogicalNot, "logicalNot", logical_not},
      {L::kLogicalAnd, "logicalAnd", logical_and},
      {L::kModBroadcastable, "modBroadcastable", mod},
      {L::kMinBroadcastable, "minBroadcastable", minimum},
      {L::kMaxBroadcastable, "maxBroadcastable", maximum},
      {L::kAddBroadcastable, "addBroadcastable", add},
      {L::kPowBroadcastable, "powBroadcastable", power},
      {L::kDivideBroadcastable, "divideBroadcastable", divide},
      {L::kFloorDivBroadcastable, "floorDivBroadcastable", floor_div},
      {L::kMultiplyBroadcastable, "multiplyBroadcastable", multiply},
      {L::kSubtractBroadcastable, "subtractBroadcastable", subtract},
      {L::kWhereBroadcastable, "whereBroadcastable", where},
  };
  return list;
}

}  // namespace moka::import::nn
