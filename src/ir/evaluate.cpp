// SPDX-License-Identifier: Apache-2.0
#include "ir/evaluate.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace moka::ir {

TensorView RuntimeValue::view() const {
  if (list) return {DType::none, {}, list.get()};
  if (dict) return {DType::none, {}, dict.get()};
  return tensor.view();
}

Type RuntimeValue::type(const Type& declared) const {
  if (dict) return declared;
  if (list) {
    std::optional<Type> element;
    for (const Tensor& item : list->items()) {
      if (item.empty_handle()) continue;
      Type t = Type::tensor(item.dtype(), item.shape());
      if (!element) {
        element = std::move(t);
        continue;
      }
      for (int i = 0; i < t.rank() && t.rank() == element->rank(); ++i)
        if (element->shape()[i] != t.shape()[i]) element->shape()[i] = kAnyDim;
    }
    return Type::list(element              ? *element
                      : declared.is_list() ? declared.element()
                                           : Type(),
                      static_cast<int64_t>(list->size()));
  }
  Type t = Type::tensor(tensor.dtype(), tensor.shape());
  return declared.is_state() ? Type::state(std::move(t)) : t;
}

Result<RuntimeValue> runtime_value(const Constant& constant) {
  if (constant.type.is_tensor()) return RuntimeValue(constant.tensor);
  if (constant.type.is_list()) {
    List list;
    list.reset(constant.parts.size());
    size_t at = 0;
    for (const Constant& part : constant.parts) {
      if (!part.type.is_tensor())
        return fail(ErrorCode::unsupported, "a constant of type ", constant.type, " while running");
      list.set(at++, part.tensor);
    }
    return RuntimeValue(std::move(list));
  }
  if (constant.type.is_dict() && constant.type.element(0).is_tensor() && constant.type.element(1).is_tensor()) {
    Dict dict;
    dict.string_keys = constant.type.element(0).dtype() == DType::string;
    for (size_t i = 0; i + 1 < constant.parts.size(); i += 2) {
      const Tensor& key = constant.parts[i].tensor;
      const Tensor& value = constant.parts[i + 1].tensor;
      if (key.count() != 1 || value.count() != 1 || value.dtype() == DType::string)
        return fail(ErrorCode::unsupported, "a constant of type ", constant.type, " while running");
      if (dict.string_keys)
        dict.text_keys.push_back(key.text());
      else
        dict.int_keys.push_back(load_i64(key.view(), 0));
      dict.values.push_back(load_f64(value.view(), 0));
    }
    return RuntimeValue(std::move(dict));
  }
  return fail(ErrorCode::unsupported, "a constant of type ", constant.type, " while running");
}

namespace {

/// Storage that an OpCall borrows.
struct CallStorage {
  std::vector<Type> types;
  std::vector<TensorView> views;
  std::vector<Arg> args;
  std::vector<uint32_t> first;
};

Result<RuntimeValue> make_output(const Type& type, const EvaluateOptions& options) {
  if (type.is_list()) return RuntimeValue(List{});
  if (type.is_dict()) return RuntimeValue(Dict{});
  if (!type.is_tensor() || !type.is_concrete())
    return fail(ErrorCode::internal, "expected a concrete output type while running, got ", type);
  const size_t bytes = MOKA_TRY(storage_bytes(type.dtype(), type.shape()));
  if (options.budget != nullptr) MOKA_TRY(options.budget->take(bytes, cat("a ", type)));
  return RuntimeValue(MOKA_TRY(Tensor::zeros(type.dtype(), type.shape())));
}

Result<std::vector<RuntimeValue>> run(const OpCall& call, const EvaluateOptions& options) {
  const OpVersion& version = call.version();
  if (!version.reference) return fail(ErrorCode::unsupported, version.def->name, " has no reference kernel");
  const std::vector<Type> types = MOKA_TRY(version.infer(call));
  std::vector<RuntimeValue> out;
  std::vector<TensorView> views;
  for (const Type& type : types) {
    out.push_back(
        MOKA_TRY_IN(make_output(type, options), cat("operation '", call.name(), "' (", version.def->name, ")")));
    views.push_back(out.back().view());
  }
  MOKA_TRY(version.reference(call, views));
  return out;
}

/// `alpha` and `beta` are passed to the parameters of these names if the operation has them.
Result<RuntimeValue> apply(const Epilogue& epilogue, RuntimeValue x, Opset opset, const EvaluateOptions& options) {
  if (options.table == nullptr)
    return fail(ErrorCode::internal, "epilogue ", epilogue.op, " without an operation table");
  const OpVersion& version = *MOKA_TRY(options.table->resolve(epilogue.op, opset));
  const DType dtype = x.tensor.dtype();
  const RuntimeValue alpha(Tensor::scalar(dtype, static_cast<double>(epilogue.alpha)));
  const RuntimeValue beta(Tensor::scalar(dtype, static_cast<double>(epilogue.beta)));
  std::vector<const RuntimeValue*> inputs;
  CallStorage s;
  for (const ParamDef& p : version.params) {
    s.first.push_back(static_cast<uint32_t>(inputs.size()));
    if (p.name == "x") inputs.push_back(&x);
    if (p.name == "alpha") inputs.push_back(&alpha);
    if (p.name == "beta") inputs.push_back(&beta);
  }
  s.first.push_back(static_cast<uint32_t>(inputs.size()));
  for (const RuntimeValue* v : inputs) {
    s.types.push_back(v->type({}));
    s.views.push_back(v->view());
  }
  for (size_t i = 0; i < inputs.size(); ++i) s.args.push_back({&s.types[i], &s.views[i]});
  OpCall call(version, epilogue.origin, s.args, s.first);
  auto out = MOKA_TRY(run(call, options));
  if (out.size() != 1) return fail(ErrorCode::internal, "epilogue ", epilogue.op, " has ", out.size(), " outputs");
  return std::move(out[0]);
}

class Interpreter {
 public:
  explicit Interpreter(const EvaluateOptions& options) : options_(options) {}

  Result<std::vector<RuntimeValue>> run_block(const Block& block, std::span<const RuntimeValue> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) values_[block.inputs()[i].get()] = inputs[i];
    const auto& last_uses = last_uses_of(block);
    size_t at = 0;
    for (const auto& op : block.ops()) {
      MOKA_TRY(run_op(*op));
      for (const Value* dead : last_uses[at++]) values_.erase(dead);
    }
    std::vector<RuntimeValue> out;
    for (const Value* v : block.outputs()) out.push_back(MOKA_TRY(value_of(*v)));
    for (const Value* v : last_uses.back()) values_.erase(v);
    return out;
  }

 private:
  Result<RuntimeValue> value_of(const Value& v) {
    if (v.constant() != nullptr) return runtime_value(*v.constant());
    const auto it = values_.find(&v);
    if (it == values_.end()) return fail(ErrorCode::malformed, "value '", v.name, "' is used before its definition");
    return it->second;
  }

  Status run_op(const Op& op) {
    if (op.has_trait(Trait::constant)) return {};
    std::vector<RuntimeValue> inputs;
    for (const Operand& o : op.operands())
      for (const Value* v : o.values)
        inputs.push_back(MOKA_TRY_IN(value_of(*v), cat("operation '", op.name, "' (", op.type_name(), ")")));
    std::vector<RuntimeValue> outputs;
    if (op.type_name() == "cond")
      outputs = MOKA_TRY(run_cond(op, inputs));
    else if (op.type_name() == "while_loop")
      outputs = MOKA_TRY(run_while(op, inputs));
    else
      outputs = MOKA_TRY(evaluate_op(op, inputs, options_));
    if (outputs.size() != op.output_count())
      return fail(ErrorCode::internal, "operation '", op.name, "' (", op.type_name(), "): expected ", op.output_count(),
                  " outputs, got ", outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Type& declared = op.output(i)->type;
      if (declared.is_tensor() && !is_compatible(outputs[i].type(declared), declared))
        return fail(ErrorCode::data, "operation '", op.name, "' (", op.type_name(), "), output ", i, ": expected ",
                    declared, ", got ", outputs[i].type(declared));
      if (op.output(i)->is_used()) values_[op.output(i)] = std::move(outputs[i]);
    }
    return {};
  }

  Result<std::vector<RuntimeValue>> run_cond(const Op& op, std::span<const RuntimeValue> inputs) {
    const Tensor& pred = inputs[0].tensor;
    if (pred.dtype() != DType::boolean || pred.count() != 1)
      return fail(ErrorCode::data, "operation '", op.name, "' (cond): expected a bool scalar, got ",
                  inputs[0].type({}));
    return run_block(*op.block(pred.as<uint8_t>()[0] != 0 ? 0 : 1), {});
  }

  Result<std::vector<RuntimeValue>> run_while(const Op& op, std::vector<RuntimeValue> vars) {
    for (int64_t n = 0;; ++n) {
      const auto go_on = MOKA_TRY(run_block(*op.block(0), vars));
      const Tensor& flag = go_on[0].tensor;
      if (flag.dtype() != DType::boolean || flag.count() != 1)
        return fail(ErrorCode::data, "operation '", op.name,
                    "' (while_loop): expected a bool scalar from its condition, got ", go_on[0].type({}));
      if (flag.as<uint8_t>()[0] == 0) return vars;
      if (n == options_.max_iterations)
        return fail(ErrorCode::out_of_budget, "operation '", op.name, "' (while_loop): expected at most ",
                    options_.max_iterations, " iterations");
      vars = MOKA_TRY(run_block(*op.block(1), vars));
    }
  }

  /// For each operation of `block`, the values defined in the block that nothing reads afterwards. The last entry holds
  /// the values that live until the block ends.
  const std::vector<std::vector<const Value*>>& last_uses_of(const Block& block) {
    auto [it, fresh] = last_uses_.try_emplace(&block);
    if (!fresh) return it->second;
    std::vector<std::vector<const Value*>> uses(block.ops().size() + 1);
    std::unordered_set<const Value*> own;
    for (const auto& v : block.inputs()) own.insert(v.get());
    for (const auto& op : block.ops())
      for (size_t i = 0; i < op->output_count(); ++i) own.insert(op->output(i));
    const auto use = [&](const Value* v, size_t at) {
      if (own.erase(v) > 0) uses[at].push_back(v);
    };
    for (const Value* v : block.outputs()) use(v, uses.size() - 1);
    size_t at = block.ops().size();
    for (auto op = block.ops().rbegin(); op != block.ops().rend(); ++op) visit_uses(**op, --at, use);
    for (const Value* v : own) uses.back().push_back(v);
    return it->second = std::move(uses);
  }

  template <class F>
  static void visit_uses(const Op& op, size_t at, const F& use) {
    for (const Operand& o : op.operands())
      for (const Value* v : o.values) use(v, at);
    for (size_t b = 0; b < op.block_count(); ++b) {
      for (const Value* v : op.block(b)->outputs()) use(v, at);
      for (const auto& inner : op.block(b)->ops()) visit_uses(*inner, at, use);
    }
  }

  const EvaluateOptions& options_;
  std::unordered_map<const Value*, RuntimeValue> values_;
  std::unordered_map<const Block*, std::vector<std::vector<const Value*>>> last_uses_;
};

}  // namespace

Result<std::vector<RuntimeValue>> evaluate_op(const Op& op, std::span<const RuntimeValue> inputs,
                                              const EvaluateOptions& options) {
  const OpVersion& version = op.version();
  CallStorage s;
  s.types.reserve(inputs.size());
  s.views.reserve(inputs.size());
  auto operand = op.operands().begin();
  for (size_t p = 0; p < version.params.size(); ++p) {
    s.first.push_back(static_cast<uint32_t>(s.args.size()));
    if (operand == op.operands().end() || operand->param != static_cast<int>(p)) continue;
    for (const Value* v : operand->values) {
      const size_t i = s.args.size();
      if (i == inputs.size())
        return fail(ErrorCode::internal, "operation '", op.name, "' (", op.type_name(), "): got only ", inputs.size(),
                    " inputs");
      s.types.push_back(inputs[i].type(v->type));
      s.views.push_back(inputs[i].view());
      s.args.push_back({&s.types[i], &s.views[i]});
    }
    ++operand;
  }
  s.first.push_back(static_cast<uint32_t>(s.args.size()));
  OpCall call(version, op.name, s.args, s.first);
  RandomSource fixed;
  call.op = &op;
  call.random = options.random != nullptr ? options.random : &fixed;
  auto out = MOKA_TRY(run(call, options));
  for (const Epilogue& e : op.epilogue)
    out[0] = MOKA_TRY(apply(e, std::move(out[0]), op.parent()->function()->opset, options));
  return out;
}

Result<std::vector<RuntimeValue>> evaluate(const Function& function, std::span<const RuntimeValue> inputs,
                                           const EvaluateOptions& options) {
  const auto declared = function.body().inputs();
  if (inputs.size() != declared.size())
    return fail(ErrorCode::invalid_argument, "function '", function.name, "': expected ", declared.size(),
                " inputs, got ", inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Type& type = declared[i]->type;
    if (const Type got = inputs[i].type(type); !is_compatible(got, type))
      return fail(ErrorCode::invalid_argument, "function '", function.name, "', input '", declared[i]->name,
                  "': expected ", type, ", got ", got);
  }
  RandomSource fixed;
  EvaluateOptions own = options;
  if (own.random == nullptr) own.random = &fixed;
  return Interpreter(own).run_block(function.body(), inputs);
}

}  // namespace moka::ir
