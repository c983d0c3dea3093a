// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>

#include "ir/permutation.h"
#include "linting/lint.h"

namespace moka::linting {
namespace {

constexpr std::string_view kMoves[] = {"cast",    "identity",       "reshape",       "transpose", "expand_dims",
                                       "squeeze", "slice_by_index", "slice_by_size", "flatten2d"};

bool is_move(const ir::Op& op) {
  for (std::string_view name : kMoves)
    if (op.type_name() == name) return op.type_name() != "cast" || is_float_tensor(op.output()->type);
  return false;
}

}  // namespace

bool undoes(const ir::Op& first, const ir::Op& second) {
  const auto one = ir::permutation_of(first), two = ir::permutation_of(second);
  return one && two && ir::undoes(*one, *two);
}

std::string place_of(const ir::Op& op) { return cat("operation '", op.name, "' (", op.type_name(), ")"); }

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return text;
}

std::string range(double low, double high) { return cat(number(low), " to ", number(high)); }

void for_each_op(const ir::Block& block, const std::function<void(const ir::Op&)>& visit) {
  for (const auto& op : block.ops()) {
    for (size_t i = 0; i < op->block_count(); ++i) for_each_op(*op->block(i), visit);
    if (!op->has_trait(ir::Trait::constant)) visit(*op);
  }
}

bool keeps_order(const ir::Op& op) { return op.has_trait(ir::Trait::stateful) || op.block_count() > 0; }

std::set<const ir::Value*> needed(const ir::Block& body) {
  std::set<const ir::Value*> out(body.outputs().begin(), body.outputs().end());
  const auto read = [&](const ir::Op& op) {
    for (const ir::Operand& operand : op.operands()) out.insert(operand.values.begin(), operand.values.end());
  };
  for (auto it = body.ops().rbegin(); it != body.ops().rend(); ++it) {
    const ir::Op& op = **it;
    bool is_needed = keeps_order(op);
    for (size_t i = 0; i < op.output_count(); ++i) is_needed |= out.contains(op.output(i));
    if (!is_needed) continue;
    read(op);
    for (size_t i = 0; i < op.block_count(); ++i) {
      out.insert(op.block(i)->outputs().begin(), op.block(i)->outputs().end());
      for_each_op(*op.block(i), read);
    }
  }
  return out;
}

const ir::Value* behind_moves(const ir::Value* value) {
  while (value != nullptr && value->producer() != nullptr && is_move(*value->producer()))
    value = value->producer()->input("x");
  return value;
}

const ir::Op* computed_by(const ir::Value* value) {
  value = behind_moves(value);
  return value == nullptr ? nullptr : value->producer();
}

bool is_op(const ir::Op* op, std::string_view type) { return op != nullptr && op->type_name() == type; }

std::optional<double> uniform_constant(const ir::Value* value) {
  value = behind_moves(value);
  if (value == nullptr || value->constant() == nullptr) return std::nullopt;
  const ir::Tensor& t = value->constant()->tensor;
  if (t.empty_handle() || t.dtype() == ir::DType::string || t.count() == 0) return std::nullopt;
  const ir::TensorView view = t.view();
  const double first = ir::load_f64(view, 0);
  for (int64_t i = 1; i < t.count(); ++i)
    if (ir::load_f64(view, i) != first) return std::nullopt;
  return first;
}

bool is_float_tensor(const ir::Type& type) { return type.is_tensor() && ir::is_float(type.dtype()); }

const Measured* measured(const Measurements& measurements, const ir::Value* value) {
  const auto it = measurements.find(value->name);
  return it == measurements.end() ? nullptr : &it->second;
}

}  // namespace moka::linting
