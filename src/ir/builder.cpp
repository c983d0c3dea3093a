// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/fixed.h"
#include "ir/program.h"

namespace moka::ir {

namespace {

Error arg_error(const OpVersion& version, std::string_view name, std::string_view param, std::string_view expected,
                std::string_view got) {
  return fail(ErrorCode::malformed, "operation '", name, "' (", version.def->name, "), parameter '", param,
              "': expected ", expected, ", got ", got);
}

bool kind_fits(const ParamDef& p, const Type& t) {
  switch (p.kind) {
    case ParamKind::tensor: return t.is_tensor();
    case ParamKind::list: return t.is_list();
    case ParamKind::dict: return t.is_dict();
    case ParamKind::state: return t.is_state();
    case ParamKind::tuple: return t.kind() == Type::Kind::tuple;
    case ParamKind::any: return true;
  }
  return false;
}

std::string_view kind_name(ParamKind k) {
  switch (k) {
    case ParamKind::tensor: return "a tensor";
    case ParamKind::list: return "a list";
    case ParamKind::dict: return "a dictionary";
    case ParamKind::state: return "a state";
    case ParamKind::tuple: return "a tuple";
    case ParamKind::any: return "a value";
  }
  return "a value";
}

/// More elements than any memory holds. Inference may still multiply smaller sizes without overflow.
constexpr int64_t kMostElements = int64_t{1} << 48;

/// Whether the known sizes alone exceed the limit.
bool is_impossible(const Type& t) {
  if (!t.is_tensor()) return std::any_of(t.elements().begin(), t.elements().end(), is_impossible);
  if (!t.is_ranked()) return false;
  int64_t n = 1;
  for (int64_t d : t.shape())
    if (d > 0 && (__builtin_mul_overflow(n, d, &n) || n > kMostElements)) return true;
  return false;
}

bool is_float_tensor(const Value& v) { return v.type.is_tensor() && is_float(v.type.dtype()); }

/// Converters write epsilons and statistics in float32 next to float16 inputs, or the reverse. A constant parameter
/// takes the float type of the values that share its type variable: the type of a computed value, or else of the first
/// value.
Status align_constants(Op& op) {
  const OpVersion& version = op.version();
  for (const auto& [var, domain] : version.type_vars) {
    const Value* model = nullptr;
    bool differ = false;
    for (const Operand& o : op.operands()) {
      const ParamDef& p = version.params[static_cast<size_t>(o.param)];
      if (p.type_var != var || o.values.size() != 1 || !is_float_tensor(*o.values[0])) continue;
      if (model == nullptr || (model->constant() != nullptr && o.values[0]->constant() == nullptr)) {
        differ |= model != nullptr && model->type.dtype() != o.values[0]->type.dtype();
        model = o.values[0];
      } else {
        differ |= model->type.dtype() != o.values[0]->type.dtype();
      }
    }
    if (!differ) continue;
    const DType wanted = model->type.dtype();
    for (const ParamDef& p : version.params) {
      const Value* v = p.type_var == var && p.constant ? op.input(p.name) : nullptr;
      if (v == nullptr || v->constant() == nullptr || !is_float_tensor(*v) || v->type.dtype() == wanted) continue;
      const Tensor& from = v->constant()->tensor;
      Tensor to = MOKA_TRY(Tensor::zeros(wanted, from.shape()));
      const TensorView source = from.view(), target = to.view();
      for (int64_t i = 0; i < source.count(); i++) store_f64(target, i, load_f64(source, i));
      op.set_constant(p.name, Constant(std::move(to)));
    }
  }
  return {};
}

/// Checks everything about the operands that needs no inference.
Status check_operands(const Op& op) {
  const OpVersion& version = op.version();
  std::vector<DType> bound(version.type_vars.size(), DType::none);
  auto operand = op.operands().begin();
  for (size_t i = 0; i < version.params.size(); i++) {
    const ParamDef& p = version.params[i];
    if (operand == op.operands().end() || operand->param != static_cast<int>(i)) {
      if (!p.optional) return arg_error(version, op.name, p.name, kind_name(p.kind), "nothing");
      continue;
    }
    if (!p.variadic && operand->values.size() != 1)
      return arg_error(version, op.name, p.name, "one value", cat("a tuple of ", operand->values.size()));
    for (const Value* v : operand->values) {
      if (!kind_fits(p, v->type)) return arg_error(version, op.name, p.name, kind_name(p.kind), cat(v->type));
      if (is_impossible(v->type))
        return arg_error(version, op.name, p.name, cat("at most ", kMostElements, " elements"), cat(v->type));
      if (!v->type.is_tensor()) continue;
      DType t = v->type.dtype();
      DTypes domain = version.domain(p);
      if ((domain & only(t)) == 0)
        return arg_error(version, op.name, p.name, cat("element type ", to_string(domain)), cat(v->type));
      if (!p.type_var.empty()) {
        for (size_t k = 0; k < version.type_vars.size(); k++) {
          if (version.type_vars[k].first != p.type_var) continue;
          if (bound[k] == DType::none) bound[k] = t;
          if (bound[k] != t)
            return arg_error(version, op.name, p.name, cat("element type ", bound[k], " like the other inputs"),
                             cat(v->type));
        }
      }
      if (p.constant && v->constant() == nullptr &&
          !(v->producer() != nullptr && v->producer()->has_trait(Trait::constexpr_weight)) && !is_from_parameter(*v))
        return arg_error(version, op.name, p.name, "a constant", cat("'", v->name, "', which is computed"));
      if (!p.allowed.empty() && v->constant() != nullptr && t == DType::string) {
        if (v->constant()->tensor.count() != 1) return arg_error(version, op.name, p.name, "one string", cat(v->type));
        const std::string& s = v->constant()->tensor.text();
        if (std::find(p.allowed.begin(), p.allowed.end(), s) == p.allowed.end()) {
          std::string list;
          for (const std::string& a : p.allowed) list += (list.empty() ? "'" : ", '") + a + "'";
          return arg_error(version, op.name, p.name, cat("one of ", list), cat("'", s, "'"));
        }
      }
    }
    ++operand;
  }
  return {};
}

/// The inferred type. Its unknown dimensions come from the declared type.
Type refine(const Type& inferred, const Type& declared) {
  if (!inferred.is_tensor() || !declared.is_tensor())
    return inferred.is_concrete() || !declared.is_concrete() ? inferred : declared;
  if (!inferred.is_ranked()) return declared;
  if (!declared.is_ranked()) return inferred;
  Type t = inferred;
  for (int i = 0; i < t.rank(); i++)
    if (t.shape()[i] < 0 && declared.shape()[i] >= 0) t.shape()[i] = declared.shape()[i];
  return t;
}

/// `declared` with the element type of `inferred` if both are float16 or float32.
Type with_float_of(const Type& inferred, Type declared) {
  auto narrow = [](const Type& t) { return t.is_tensor() && (t.dtype() == DType::fp16 || t.dtype() == DType::fp32); };
  if (!narrow(inferred) || !narrow(declared)) return declared;
  return declared.is_ranked() ? Type::tensor(inferred.dtype(), declared.shape()) : Type::unranked(inferred.dtype());
}

}  // namespace

Builder::Builder(const OpTable& table, Block& block)
    : opset(block.function()->opset), table_(&table), block_(&block), at_(block.ops_.end()) {}

Builder Builder::before(const OpTable& table, Op& op) {
  Builder b(table, *op.parent());
  b.at_ = op.self_;
  b.source = op.source;
  return b;
}

Result<Op*> Builder::insert(const OpVersion& version, OpSpec&& spec,
                            std::span<const std::vector<std::pair<std::string, Type>>> block_inputs,
                            const BlockFn* fill) {
  std::unique_ptr<Op> op(new Op(version));
  std::string base = !spec.name.empty()           ? spec.name
                     : !spec.output_names.empty() ? spec.output_names[0]
                                                  : std::string(spec.op);
  op->name = base;
  op->source = source;
  op->parent_ = block_;
  for (NamedArg& a : spec.args) {
    int p = version.param_index(a.name);
    if (p < 0)
      return fail(ErrorCode::malformed, "operation '", op->name, "' (", spec.op, "), opset ", to_string(opset),
                  ": unknown parameter '", a.name, "'");
    for (const Operand& o : op->operands_)
      if (o.param == p)
        return fail(ErrorCode::malformed, "operation '", op->name, "' (", spec.op, "): parameter '", a.name,
                    "' is given twice");
    if (a.constant)
      op->set_constant(a.name, std::move(*a.constant));
    else if (!a.tuple && a.values.size() == 1 && a.values[0] != nullptr && a.values[0]->is_inline_constant())
      op->set_constant(a.name, *a.values[0]->constant());  // belongs to another operation, so it is copied
    else
      op->set_input(a.name, std::move(a.values), a.tuple);
  }
  MOKA_TRY(align_constants(*op));
  MOKA_TRY(check_operands(*op));

  for (size_t i = 0; i < block_inputs.size(); i++) {
    op->blocks_.emplace_back(new Block(block_->function(), op.get()));
    Block& inner = *op->blocks_.back();
    for (const auto& [n, t] : block_inputs[i]) inner.add_input(function().unique_name(n), t);
    Builder inner_builder(*table_, inner);
    inner_builder.opset = opset;
    inner_builder.source = source;
    inner.set_outputs(MOKA_TRY((*fill)(i, inner_builder)));
  }

  std::vector<Type> types;
  if (version.infer) {
    StaticCall call(*op);
    types = MOKA_TRY(version.infer(call.call()));
  }
  if (!spec.declared.empty()) {
    if (spec.declared.size() != types.size())
      return fail(ErrorCode::malformed, "operation '", op->name, "' (", spec.op, "): expected ", types.size(),
                  " outputs, got ", spec.declared.size());
    for (size_t i = 0; i < types.size(); i++) {
      if (spec.other_float_allowed) spec.declared[i] = with_float_of(types[i], std::move(spec.declared[i]));
      if (!is_compatible(types[i], spec.declared[i]))
        return fail(ErrorCode::malformed, "operation '", op->name, "' (", spec.op, "), output ", i, ": declared ",
                    spec.declared[i], ", but its inputs give ", types[i]);
      types[i] = refine(types[i], spec.declared[i]);
    }
  }
  if (!spec.output_names.empty() && spec.output_names.size() != types.size())
    return fail(ErrorCode::malformed, "operation '", op->name, "' (", spec.op, "): expected ", types.size(),
                " outputs, got ", spec.output_names.size());
  for (size_t i = 0; i < types.size(); i++) {
    std::string n = !spec.output_names.empty() ? spec.output_names[i] : types.size() == 1 ? base : cat(base, "_", i);
    op->add_output(function().unique_name(n), std::move(types[i]));
  }
  Op* raw = op.get();
  raw->self_ = block_->ops_.insert(at_, std::move(op));
  return raw;
}

Result<Op*> Builder::append(OpSpec spec) {
  const OpVersion* version = MOKA_TRY_IN(table_->resolve(spec.op, opset), cat("operation '", spec.name, "'"));
  return insert(*version, std::move(spec), {}, nullptr);
}

Result<Op*> Builder::append_with_blocks(OpSpec spec,
                                        std::span<const std::vector<std::pair<std::string, Type>>> block_inputs,
                                        const BlockFn& fill) {
  const OpVersion* version = MOKA_TRY_IN(table_->resolve(spec.op, opset), cat("operation '", spec.name, "'"));
  return insert(*version, std::move(spec), block_inputs, &fill);
}

Result<Value*> Builder::op(std::string_view op, std::vector<NamedArg> args, std::string name) {
  OpSpec spec{op, std::move(args), std::move(name), {}, {}};
  Op* o = MOKA_TRY(append(std::move(spec)));
  if (o->output_count() != 1)
    return fail(ErrorCode::internal, "operation '", o->name, "' (", op, ") has ", o->output_count(),
                " outputs, not one");
  return o->output();
}

Result<Value*> Builder::constant(std::string name, Constant value) {
  const OpVersion* version = MOKA_TRY(table_->resolve("const", opset));
  std::unique_ptr<Op> op(new Op(*version));
  op->parent_ = block_;
  op->name = name;
  Value* v = op->add_output(function().unique_name(name), value.type);
  v->constant_ = std::make_shared<const Constant>(std::move(value));
  Op* raw = op.get();
  raw->self_ = block_->ops_.insert(at_, std::move(op));
  return v;
}

}  // namespace moka::ir
