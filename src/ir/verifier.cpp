// SPDX-License-Identifier: Apache-2.0
#include "ir/verifier.h"

#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace moka::ir {

namespace {

class FunctionVerifier {
 public:
  Status run(const Function& f) {
    if (f.body().function() != &f || f.body().parent_op() != nullptr)
      return error("its body belongs to another function");
    MOKA_TRY(block(f.body(), f));
    for (const auto& [v, n] : uses_)
      if (n.users != 0 || n.returns != 0)
        return error(cat("value '", v->name, "' has a list of users that does not match its uses"));
    return {};
  }

 private:
  struct Uses {
    int64_t users = 0, returns = 0;  ///< listed at the value, minus the number found
  };

  static Error error(std::string_view what) { return fail(ErrorCode::internal, what); }

  Status define(const Value& v) {
    if (v.type.is_none()) return error(cat("value '", v.name, "' has no type"));
    if (v.name.empty()) return error("a value has no name");
    if (!names_.insert(v.name).second) return error(cat("two values are named '", v.name, "'"));
    visible_.insert(&v);
    uses_[&v] = {static_cast<int64_t>(v.users().size()), static_cast<int64_t>(v.returned_by().size())};
    return {};
  }

  Status block(const Block& b, const Function& f) {
    if (b.function() != &f) return error("a block belongs to another function");
    std::vector<const Value*> own;
    int index = 0;
    for (const auto& v : b.inputs()) {
      if (v->block() != &b || v->producer() != nullptr || v->index() != index++)
        return error(cat("block input '", v->name, "' belongs elsewhere"));
      MOKA_TRY(define(*v));
      own.push_back(v.get());
    }
    for (const auto& op : b.ops()) {
      if (op->parent() != &b) return error(cat("operation '", op->name, "' belongs to another block"));
      MOKA_TRY_IN(operation(*op, f), cat("operation '", op->name, "' (", op->type_name(), ")"));
      for (size_t i = 0; i < op->output_count(); ++i) {
        const Value& v = *op->output(i);
        if (v.producer() != op.get() || v.index() != static_cast<int>(i))
          return error(cat("output '", v.name, "' belongs elsewhere"));
        MOKA_TRY(define(v));
        own.push_back(&v);
      }
    }
    for (const Value* v : b.outputs()) {
      if (v == nullptr || !visible_.contains(v)) return error("a block returns a value that it does not see");
      --uses_[v].returns;
    }
    // Values that a block defines are not visible after it.
    for (const Value* v : own) visible_.erase(v);
    return {};
  }

  Status operation(const Op& op, const Function& f) {
    const OpVersion& version = op.version();
    if (version.def == nullptr) return error("it has no definition");
    int last = -1;
    std::unordered_set<int> given;
    for (const Operand& o : op.operands()) {
      if (o.param <= last || o.param >= static_cast<int>(version.params.size()))
        return error("its operands are not in the order of the parameters");
      last = o.param;
      given.insert(o.param);
      const ParamDef& p = version.params[static_cast<size_t>(o.param)];
      if (o.values.empty()) return error(cat("parameter '", p.name, "' holds nothing"));
      if (!p.variadic && o.values.size() != 1)
        return error(cat("parameter '", p.name, "': expected one value, got ", o.values.size()));
      for (const Value* v : o.values) MOKA_TRY(operand(op, p, v));
    }
    for (size_t i = 0; i < version.params.size(); ++i)
      if (!version.params[i].optional && !given.contains(static_cast<int>(i)))
        return error(cat("parameter '", version.params[i].name, "' is missing"));
    const bool is_const = op.has_trait(Trait::constant);
    for (size_t i = 0; i < op.output_count(); ++i)
      if ((op.output(i)->constant() != nullptr) != is_const)
        return error(is_const ? "it has no value" : "it has a value although it is computed");
    return blocks(op, f);
  }

  Status operand(const Op& op, const ParamDef& p, const Value* v) {
    if (v == nullptr) return error(cat("parameter '", p.name, "' is null"));
    if (v->type.is_none()) return error(cat("parameter '", p.name, "' has no type"));
    if (v->is_inline_constant()) {
      if (v->constant() == nullptr) return error(cat("parameter '", p.name, "' is a constant without a value"));
      for (const Op* user : v->users())
        if (user != &op) return error(cat("parameter '", p.name, "' is a constant of another operation"));
      return {};
    }
    if (!visible_.contains(v))
      return error(cat("parameter '", p.name, "': value '", v->name, "' is not defined before"));
    --uses_[v].users;
    return {};
  }

  Status blocks(const Op& op, const Function& f) {
    for (size_t i = 0; i < op.block_count(); ++i) {
      if (op.block(i)->parent_op() != &op) return error("a block belongs to another operation");
      MOKA_TRY_IN(block(*op.block(i), f), cat("block ", i));
    }
    const size_t vars = op.type_name() == "while_loop" ? op.inputs("loop_vars").size() : 0;
    if (op.type_name() == "cond") {
      if (op.block_count() != 2) return error(cat("expected two blocks, got ", op.block_count()));
      for (size_t i = 0; i < 2; ++i)
        if (!op.block(i)->inputs().empty() || op.block(i)->outputs().size() != op.output_count())
          return error(cat("block ", i, ": expected no inputs and ", op.output_count(), " outputs"));
    } else if (op.type_name() == "while_loop") {
      if (op.block_count() != 2) return error(cat("expected two blocks, got ", op.block_count()));
      if (op.output_count() != vars || op.block(0)->inputs().size() != vars || op.block(1)->inputs().size() != vars ||
          op.block(0)->outputs().size() != 1 || op.block(1)->outputs().size() != vars)
        return error(cat("expected blocks and outputs for ", vars, " loop variables"));
    } else if (op.block_count() != 0) {
      return error(cat("expected no blocks, got ", op.block_count()));
    }
    return {};
  }

  std::unordered_set<std::string> names_;
  std::unordered_set<const Value*> visible_;
  std::unordered_map<const Value*, Uses> uses_;
};

}  // namespace

Status verify(const Program& program) {
  std::unordered_set<std::string> names;
  for (const auto& f : program.functions) {
    if (!names.insert(f->name).second) return fail(ErrorCode::internal, "two functions are named '", f->name, "'");
    MOKA_TRY_IN(FunctionVerifier().run(*f), cat("function '", f->name, "'"));
  }
  return {};
}

}  // namespace moka::ir
