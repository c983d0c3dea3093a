// SPDX-License-Identifier: Apache-2.0
#include "ir/inline.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "ir/scope.h"

namespace moka::ir {

namespace {

class Inliner {
 public:
  using Each = std::function<void(Constant&)>;
  Inliner(std::string_view prefix, Opset opset, Each each = nullptr)
      : prefix_(prefix), opset_(opset), each_(std::move(each)) {}

  void map(const Value* from, Value* to) { values_[from] = to; }
  void keep_outer(const Replacement& replace) {
    keeps_outer_ = true;
    replace_ = replace;
  }

  Result<std::vector<Value*>> block(Builder& builder, const Block& source) {
    for (const auto& op : source.ops()) MOKA_TRY(copy(builder, *op));
    std::vector<Value*> out;
    for (const Value* v : source.outputs()) out.push_back(MOKA_TRY(find(v)));
    return out;
  }

 private:
  Constant constant_of(const Value& v) const {
    Constant out = *v.constant();
    if (each_) each_(out);
    return out;
  }
  Result<Value*> find(const Value* v) const {
    const auto it = values_.find(v);
    if (it == values_.end() && keeps_outer_) return const_cast<Value*>(v);
    if (it == values_.end()) return fail(ErrorCode::malformed, "value '", v->name, "' is used before its definition");
    return it->second;
  }

  Status copy(Builder& builder, const Op& op) {
    if (op.has_trait(Trait::constant)) {
      Value* v = MOKA_TRY(builder.constant(cat(prefix_, op.output()->name), constant_of(*op.output())));
      v->producer()->name = cat(prefix_, op.name);
      v->producer()->attributes = op.attributes;
      map(op.output(), v);
      return {};
    }
    OpSpec spec;
    spec.op = op.type_name();
    spec.name = cat(prefix_, op.name);
    for (const Operand& o : op.operands()) {
      const std::string& param = op.version().params[static_cast<size_t>(o.param)].name;
      std::vector<Value*> values;
      for (const Value* v : o.values) {
        if (!v->is_inline_constant())
          values.push_back(MOKA_TRY(find(v)));
        else if (o.tuple)
          values.push_back(MOKA_TRY(builder.constant(cat(spec.name, "_", param, "_", values.size()), constant_of(*v))));
        else
          spec.args.emplace_back(param, constant_of(*v));
      }
      if (o.tuple)
        spec.args.emplace_back(param, std::move(values));
      else if (!values.empty())
        spec.args.emplace_back(param, values[0]);
    }
    for (size_t i = 0; i < op.output_count(); ++i) {
      spec.output_names.push_back(cat(prefix_, op.output(i)->name));
      spec.declared.push_back(without_length(op.output(i)->type));
    }
    const Opset before = std::exchange(builder.opset, std::max(opset_, op.version().since));
    Op* made = nullptr;
    if (op.block_count() == 0) {
      made = MOKA_TRY(builder.append(std::move(spec)));
    } else {
      std::vector<std::vector<std::pair<std::string, Type>>> inputs(op.block_count());
      for (size_t b = 0; b < op.block_count(); ++b)
        for (const auto& v : op.block(b)->inputs()) inputs[b].emplace_back(cat(prefix_, v->name), v->type);
      const Builder::BlockFn fill = [&](size_t b, Builder& inner) -> Result<std::vector<Value*>> {
        const Block& source = *op.block(b);
        inner.block().name = source.name;
        for (size_t i = 0; i < source.inputs().size(); ++i)
          map(source.inputs()[i].get(), inner.block().inputs()[i].get());
        return block(inner, source);
      };
      made = MOKA_TRY(builder.append_with_blocks(std::move(spec), inputs, fill));
    }
    builder.opset = before;
    made->attributes = op.attributes;
    made->epilogue = op.epilogue;
    made->source = op.source;
    for (size_t i = 0; i < op.output_count(); ++i) map(op.output(i), made->output(i));
    if (!replace_) return {};
    const std::vector<Value*> others = MOKA_TRY(replace_(*made));
    for (size_t i = 0; i < others.size(); ++i) map(op.output(i), others[i]);
    return {};
  }

  std::string_view prefix_;
  Opset opset_;
  Each each_;
  bool keeps_outer_ = false;
  Replacement replace_;
  std::unordered_map<const Value*, Value*> values_;
};

}  // namespace

Result<std::vector<Value*>> inline_function(Builder& builder, const Function& function, std::span<Value* const> inputs,
                                            std::string_view prefix) {
  const auto declared = function.body().inputs();
  if (inputs.size() != declared.size())
    return fail(ErrorCode::invalid_argument, "function '", function.name, "': expected ", declared.size(),
                " inputs, got ", inputs.size());
  Inliner inliner(prefix, function.opset);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_compatible(inputs[i]->type, declared[i]->type))
      return fail(ErrorCode::invalid_argument, "function '", function.name, "', input '", declared[i]->name,
                  "': expected ", declared[i]->type, ", got ", inputs[i]->type);
    inliner.map(declared[i].get(), inputs[i]);
  }
  return inliner.block(builder, function.body());
}

Result<std::vector<Value*>> inline_block(Builder& builder, const Block& block, std::span<Value* const> inputs,
                                         std::string_view prefix, const Replacement& replace) {
  Inliner inliner(prefix, builder.opset);
  inliner.keep_outer(replace);
  for (size_t i = 0; i < inputs.size(); ++i) inliner.map(block.inputs()[i].get(), inputs[i]);
  return inliner.block(builder, block);
}

Result<Program> copy_program(const Program& program, const OpTable& table, const std::function<void(Constant&)>& each) {
  Program out;
  out.attributes = program.attributes;
  out.version = program.version;
  for (const auto& function : program.functions) {
    out.functions.push_back(std::make_unique<Function>(function->name, function->opset));
    Function& f = *out.functions.back();
    f.attributes = function->attributes;
    Inliner copier("", function->opset, each);
    int64_t symbol = kAnyDim - 1;
    for (const auto& input : function->body().inputs())
      if (input->type.is_tensor() && input->type.is_ranked())
        for (const int64_t d : input->type.shape()) symbol = std::min(symbol, d - 1);
    for (const auto& input : function->body().inputs()) {
      Type type = input->type;
      for (int i = 0; type.is_tensor() && type.is_ranked() && i < type.rank(); ++i)
        if (type.shape()[i] == kAnyDim) type.shape()[i] = symbol--;
      copier.map(input.get(), f.body().add_input(f.unique_name(input->name), std::move(type)));
    }
    Builder builder(table, f.body());
    builder.opset = function->opset;
    f.body().set_outputs(MOKA_TRY_IN(copier.block(builder, function->body()), cat("function '", f.name, "'")));
  }
  return out;
}

}  // namespace moka::ir
