// SPDX-License-Identifier: Apache-2.0
#include "runtime/parameters.h"

#include <algorithm>
#include <unordered_set>

#include "base/pattern.h"
#include "ir/fixed.h"

namespace moka::runtime {

namespace {

using namespace ir;

bool may_be_parameter(const Type& t) {
  return t.is_tensor() && (t.dtype() == DType::fp16 || t.dtype() == DType::fp32) && t.is_concrete() && t.rank() > 0;
}

bool is_weight(const Op& op) { return op.has_trait(Trait::constant) || op.has_trait(Trait::constexpr_weight); }

/// Importers call weights that a file does not hold as floats "weights_TYPE" after the operation that expands them.
std::string name_of(const Value& v) {
  const std::string suffix = cat("_", v.producer()->type_name());
  const bool expands = v.producer()->has_trait(Trait::constexpr_weight) && v.name.ends_with(suffix);
  return expands ? v.name.substr(0, v.name.size() - suffix.size()) : v.name;
}

/// Classic models look at all of their numbers before they run.
bool is_classic(const Op& op) { return op.type_name().starts_with("ml_"); }

/// The output types that follow from what is known of the operands; empty: inference fails.
std::vector<Type> inferred(const Op& op) {
  if (!op.version().infer || op.block_count() > 0) return {};
  StaticCall call(op);
  auto types = op.version().infer(call.call());
  return types.ok() ? std::move(*types) : std::vector<Type>();
}

class Marker {
 public:
  Marker(Function& function, std::span<const std::string> patterns, const OpTable& table)
      : function_(function), table_(table), patterns_(patterns), found_(patterns.size(), false) {}

  Status run() {
    MOKA_TRY(block(function_.body()));
    for (size_t i = 0; i < patterns_.size(); i++)
      if (!found_[i])
        return fail(ErrorCode::not_found, "parameters: no weights of function '", function_.name, "' match '",
                    patterns_[i], "'", refused_.empty() ? "" : cat("; an operation needs to know '", refused_, "'"));
    return {};
  }

 private:
  Status block(Block& b) {
    for (auto it = b.ops().begin(); it != b.ops().end();) {
      Op& op = **it++;
      for (size_t i = 0; i < op.block_count(); i++) MOKA_TRY(block(*op.block(i)));
      if (op.has_trait(Trait::parameter)) continue;
      if (!is_weight(op)) {
        MOKA_TRY(inline_constants(op));
        continue;
      }
      Builder after = it == b.ops().end() ? Builder(table_, b) : Builder::before(table_, **it);
      for (size_t i = 0; i < op.output_count(); i++)
        if (may_be_parameter(op.output(i)->type)) MOKA_TRY(output(*op.output(i), after));
    }
    return {};
  }

  bool is_wanted(std::string_view name) const {
    return std::any_of(patterns_.begin(), patterns_.end(),
                       [&](const std::string& p) { return matches_pattern(p, name); });
  }
  void count(std::string_view name, bool is_marked) {
    for (size_t i = 0; i < patterns_.size(); i++)
      if (matches_pattern(patterns_[i], name)) found_[i] = found_[i] || is_marked;
    if (!is_marked && refused_.empty()) refused_ = name;
  }

  Status output(Value& v, Builder& after) {
    const std::string name = name_of(v);
    if (!is_wanted(name)) return {};
    std::vector<Op*> readers;
    for (Op* user : v.users())
      if (!is_weight(*user) && !user->has_trait(Trait::parameter) && !is_classic(*user) &&
          std::find(readers.begin(), readers.end(), user) == readers.end())
        readers.push_back(user);
    if (readers.empty()) return {};
    Value* made = MOKA_TRY(after.op("moka_parameter", {{"initial", &v}}, name));
    bool is_read = false;
    for (Op* reader : readers) {
      const std::vector<Type> types = inferred(*reader);
      reader->replace_input(&v, made);
      if (inferred(*reader) == types)
        is_read = true;
      else
        reader->replace_input(made, &v);
    }
    finish(*made, v, name, is_read);
    return {};
  }

  Status inline_constants(Op& op) {
    struct Found {
      std::string param, name;
      std::shared_ptr<const Constant> constant;
    };
    std::vector<Found> all;
    for (const Operand& o : op.operands()) {
      if (is_classic(op)) break;
      const Value& v = *o.values[0];
      if (o.tuple || !v.is_inline_constant() || !may_be_parameter(v.type)) continue;
      const std::string& param = op.version().params[static_cast<size_t>(o.param)].name;
      if (std::string name = parameter_name(op, param); is_wanted(name))
        all.push_back({param, std::move(name), v.shared_constant()});
    }
    for (const Found& f : all) {
      Builder before = Builder::before(table_, op);
      Value* initial = MOKA_TRY(before.constant(cat(f.name, "_initial"), *f.constant));
      Value* made = MOKA_TRY(before.op("moka_parameter", {{"initial", initial}}, f.name));
      const std::vector<Type> types = inferred(op);
      op.set_input(f.param, {made});
      const bool is_read = inferred(op) == types;
      if (!is_read) op.set_constant(f.param, *f.constant);
      finish(*made, *initial, f.name, is_read);
      if (!is_read) initial->producer()->parent()->erase(initial->producer());
    }
    return {};
  }

  /// Gives the parameter the name of the weights, which `name_1` and so on have if others are called so, or erases it
  /// where nothing reads it.
  void finish(Value& made, Value& initial, const std::string& name, bool is_read) {
    count(name, is_read);
    if (!is_read) {
      made.producer()->parent()->erase(made.producer());
      return;
    }
    std::string& own = made.producer()->name = name;
    for (int i = 1; !names_.insert(own).second; i++) own = cat(name, "_", i);
    if (initial.name == name) std::swap(made.name, initial.name);
  }

  Function& function_;
  const OpTable& table_;
  std::span<const std::string> patterns_;
  std::vector<bool> found_;
  std::unordered_set<std::string> names_;  ///< of the parameters
  std::string refused_;                    ///< the first weights that match, but must be known
};

void hoist(Block& block) {
  Op* first = nullptr;
  std::unordered_set<const Op*> stays;
  const auto reads_what_stays = [&](const Op& op) {
    return std::any_of(op.operands().begin(), op.operands().end(), [&](const Operand& o) {
      return std::any_of(o.values.begin(), o.values.end(),
                         [&](const Value* v) { return stays.contains(v->producer()); });
    });
  };
  for (auto it = block.ops().begin(); it != block.ops().end();) {
    Op& op = **it++;
    for (size_t i = 0; i < op.block_count(); i++) hoist(*op.block(i));
    const bool may_move =
        op.output_count() > 0 && op.output()->type.is_tensor() && is_fixed(*op.output()) && !reads_what_stays(op);
    if (may_move && first != nullptr) block.move_before(&op, first);
    if (may_move) continue;
    stays.insert(&op);
    if (first == nullptr) first = &op;
  }
}

void collect(const Block& block, std::vector<Parameter>& to) {
  for (const auto& op : block.ops()) {
    for (size_t i = 0; i < op->block_count(); i++) collect(*op->block(i), to);
    if (op->has_trait(Trait::parameter)) to.push_back({op->name, op->output()->type, op->output()});
  }
}

}  // namespace

std::string parameter_name(const Op& op, std::string_view param) {
  const Value& v = *op.input(param);
  return v.is_inline_constant() ? cat(op.name, "_", param) : name_of(v);
}

Status mark_parameters(Function& function, std::span<const std::string> patterns, const OpTable& table) {
  if (patterns.empty()) return {};
  MOKA_TRY(Marker(function, patterns, table).run());
  hoist(function.body());
  return {};
}

void move_fixed_first(Function& function) { hoist(function.body()); }

std::vector<Parameter> parameters_of(const Function& function) {
  std::vector<Parameter> out;
  collect(function.body(), out);
  return out;
}

}  // namespace moka::runtime
