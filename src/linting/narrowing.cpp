// SPDX-License-Identifier: Apache-2.0
#include "linting/narrowing.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "linting/lint.h"

namespace moka::linting {
namespace {

bool holds(const Interval& type, const Interval& numbers) {
  return type.low <= numbers.low && numbers.high <= type.high;
}

/// All digits of a whole number.
std::string whole(double v) { return std::abs(v) < 0x1p53 ? cat(static_cast<int64_t>(v)) : number(v); }

bool keeps_integers(const ir::Op& op) {
  constexpr std::string_view kMoves[] = {"identity",      "reshape", "transpose", "expand_dims",
                                         "squeeze",       "tile",    "flatten2d", "slice_by_index",
                                         "slice_by_size", "split",   "reverse"};
  if (is_op(&op, "cast")) return ir::is_integer(op.output()->type.dtype());
  return std::find(std::begin(kMoves), std::end(kMoves), op.type_name()) != std::end(kMoves);
}

const ir::Value* behind_integer_moves(const ir::Value* value) {
  while (value != nullptr && value->producer() != nullptr && keeps_integers(*value->producer()))
    value = value->producer()->input("x");
  return value;
}

/// Converters add the number of rows to negative indices: select(v >= 0, v, v + rows) or select(v < 0, v + rows, v).
/// Returns the select that does so with `v`, and the number.
const ir::Op* counts_from_end(const ir::Value* v, std::optional<double>& rows) {
  for (const ir::Op* user : v->users()) {
    if (!is_op(user, "select")) continue;
    const ir::Op* test = user->input("cond")->producer();
    const bool is_less = is_op(test, "less");
    if (!is_less && !is_op(test, "greater_equal")) continue;
    if (test->input("x") != v || uniform_constant(test->input("y")) != 0.0) continue;
    if (user->input(is_less ? "b" : "a") != v) continue;
    const ir::Op* add = user->input(is_less ? "a" : "b")->producer();
    if (!is_op(add, "add") || add->input("x") != v) continue;
    rows = uniform_constant(add->input("y"));
    if (rows) return user;
  }
  return nullptr;
}

/// The size of the axis that a gather reads by the indices; 0: unknown.
int64_t rows_of(const ir::Op& gather, const Bounds& bounds) {
  const Call call{gather, bounds, *gather.output()};
  const double first = call.number("batch_dims", 0);
  double rows = call.size("x", static_cast<int64_t>(call.number("axis", 0)));
  if (is_op(&gather, "gather_nd")) {
    const double depth = call.size("indices", -1);
    rows = std::isfinite(depth) ? 0 : HUGE_VAL;
    for (double i = 0; std::isfinite(depth) && i < depth; ++i)
      rows = std::max(rows, call.size("x", static_cast<int64_t>(first + i)));
  }
  return rows < 0x1p62 ? static_cast<int64_t>(rows) : 0;
}

/// Who reads indices, directly or after moves.
struct Readers {
  const ir::Op* gather = nullptr;  ///< with the most rows
  int64_t rows = 0;
  bool are_gathers = true;  ///< with known numbers of rows
};

void follow(const ir::Value* value, const Bounds& bounds, std::optional<double> added, Readers& out, int depth = 0) {
  out.are_gathers &= value->returned_by().empty() && depth < 32;
  if (depth >= 32) return;
  std::optional<double> rows;
  const ir::Op* wrapped = counts_from_end(value, rows);
  if (wrapped != nullptr) follow(wrapped->output(), bounds, rows, out, depth + 1);
  for (const ir::Op* user : value->users()) {
    if (wrapped != nullptr && (user == wrapped || user->output() == wrapped->input("cond") ||
                               user->output() == wrapped->input("a") || user->output() == wrapped->input("b")))
      continue;
    if (user->type_name().starts_with("gather") && user->input("indices") == value) {
      const int64_t read = rows_of(*user, bounds);
      out.are_gathers &= read > 0 && (!added || *added == static_cast<double>(read));
      if (read > out.rows) out.gather = user, out.rows = read;
    } else if (keeps_integers(*user) && user->block_count() == 0) {
      for (size_t i = 0; i < user->output_count(); ++i) follow(user->output(i), bounds, added, out, depth + 1);
    } else {
      out.are_gathers = false;
    }
  }
}

std::optional<Narrowing> narrowing(const ir::Op& op, const Bounds& bounds) {
  if (op.output_count() == 0 || !op.output(0)->type.is_tensor() || op.output(0)->constant() != nullptr)
    return std::nullopt;
  Narrowing out;
  out.op = &op;
  out.to = op.output()->type.dtype();
  if (is_op(&op, "cast")) {
    out.from = op.input("x");
    if (!out.from->type.is_tensor() || out.from->type.dtype() == ir::DType::boolean) return std::nullopt;
  } else if (!is_op(&op, "reduce_argmax") && !is_op(&op, "reduce_argmin")) {
    return std::nullopt;
  }
  const Interval type = numbers_of(out.to);
  if (out.to == ir::DType::boolean || !type.is_bounded()) return std::nullopt;
  const Call call{op, bounds, *op.output()};
  if (out.from != nullptr)
    out.given = bounds.of(out.from);
  else
    out.given = {0, call.size("x", static_cast<int64_t>(call.number("axis", -1))) - 1, Grip::reached};
  if (holds(type, out.given)) return std::nullopt;
  Readers readers;
  follow(op.output(), bounds, std::nullopt, readers);
  out.gather = readers.gather;
  out.rows = readers.rows;
  const bool is_index = readers.gather != nullptr && readers.are_gathers;
  const Interval indices{0, static_cast<double>(out.rows - 1)};
  if (is_index && !out.is_certain() && holds(type, indices)) return std::nullopt;
  return out;
}

}  // namespace

/// An end of the known numbers, or the last index of the gather, or the first number beyond.
double Narrowing::example() const {
  const Interval type = numbers_of(to);
  if (given.high > type.high && std::isfinite(given.high)) return given.high;
  if (given.low < type.low && std::isfinite(given.low)) return given.low;
  if (given.high <= type.high) return type.low - 1;
  return std::max(type.high + 1, static_cast<double>(rows - 1));
}

bool Narrowing::saturates() const { return from != nullptr && ir::is_float(from->type.dtype()); }

std::string Narrowing::fate_of(double number) const {
  const Interval type = numbers_of(to);
  const double range = type.high - type.low + 1;
  const double kept =
      saturates() ? std::clamp(number, type.low, type.high) : number - range * std::floor((number - type.low) / range);
  std::string out = cat(whole(number), " becomes ", whole(kept));
  if (gather == nullptr) return out;
  const double row = kept < 0 ? kept + static_cast<double>(rows) : kept;
  const bool exists = row >= 0 && row < static_cast<double>(rows);
  return out += cat(", which '", gather->name, "' (", gather->type_name(), ") ",
                    exists ? cat("reads as row ", whole(row)) : cat("does not find in ", rows, " rows"));
}

const ir::Value* Narrowing::input() const {
  const ir::Value* value = behind_integer_moves(from);
  return value != nullptr && value->producer() == nullptr && value->constant() == nullptr ? value : nullptr;
}

std::string Narrowing::source() const {
  const ir::Value* value = behind_integer_moves(from);
  if (value == nullptr) return "the indices";
  if (value->constant() != nullptr) return "its constant";
  if (value->producer() == nullptr) return cat("input '", value->name, "'");
  return cat("the result of ", place_of(*value->producer()));
}

std::string Narrowing::reason() const {
  const Interval type = numbers_of(to);
  return cat(from == nullptr ? cat("it returns indices as ", to) : cat("it converts ", from->type.dtype(), " to ", to),
             ", which holds ", range(type.low, type.high), " alone");
}

std::string Narrowing::evidence(std::optional<double> seen) const {
  const Interval type = numbers_of(to);
  const double shown = seen.value_or(example());
  const std::string from_where =
      shown > type.high ? cat("from ", whole(type.high + 1), " on") : cat("below ", whole(type.low));
  return cat(given.is_bounded() ? cat(source(), " may be ", whole(given.low), " to ", whole(given.high))
                                : cat("nothing bounds ", source()),
             "; ", from_where, saturates() ? " it saturates: " : " it wraps: ", fate_of(shown));
}

std::vector<Narrowing> narrowings(const ir::Block& body, const Bounds& bounds) {
  std::vector<Narrowing> out;
  for_each_op(body, [&](const ir::Op& op) {
    if (std::optional<Narrowing> found = narrowing(op, bounds)) out.push_back(*found);
  });
  return out;
}

}  // namespace moka::linting
