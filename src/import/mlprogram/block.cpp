// SPDX-License-Identifier: Apache-2.0
#include "import/mlprogram/block.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/watch.h"
#include "format/model_file.h"
#include "format/proto/mil.pb.h"
#include "import/mlprogram/value.h"
#include "ir/registered.h"
#include "ir/unnamed.h"

namespace moka::import {

using namespace ir;
namespace mil = proto::MILSpec;

namespace {

constexpr int kMaxNesting = 16;
using TypedNames = std::vector<std::pair<std::string, Type>>;

Result<TypedNames> typed_names(const google::protobuf::RepeatedPtrField<mil::NamedValueType>& values,
                               std::string_view what) {
  TypedNames out;
  for (const auto& v : values) {
    Type type = MOKA_TRY_IN(import_type(v.type()), cat(what, " '", v.name(), "'"));
    out.emplace_back(v.name(), without_length(type));
  }
  return out;
}

class OpImporter {
 public:
  OpImporter(const mil::Operation& op, const ProgramSource& source, Builder& builder, Scope& scope, int depth)
      : op_(op), source_(source), builder_(builder), scope_(scope), depth_(depth) {}

  Status run() {
    outputs_ = MOKA_TRY(typed_names(op_.outputs(), "output"));
    for (const auto& [name, type] : outputs_)
      if (scope_.find(name) != nullptr) return fail(ErrorCode::malformed, "value '", name, "' is defined twice");
    MOKA_TRY(read_attributes());
    Op* made = op_.type() == "const" ? MOKA_TRY(constant()) : MOKA_TRY(operation());
    if (made->output_count() != outputs_.size())
      return fail(ErrorCode::malformed, "expected ", made->output_count(), " outputs, got ", outputs_.size());
    made->attributes = std::move(attributes_);
    if (!op_.attributes().contains("name")) mark_unnamed(*made);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (scope_.find(outputs_[i].first) != nullptr)
        return fail(ErrorCode::malformed, "value '", outputs_[i].first, "' is defined twice");
      scope_.add(outputs_[i].first, MOKA_TRY(as_declared(*made->output(i), outputs_[i].second)));
    }
    return {};
  }

 private:
  /// Where float16 is not allowed, coremltools makes an input float32 but still declares float16 results.
  Result<Value*> as_declared(Value& v, const Type& declared) {
    if (!v.type.is_tensor() || !declared.is_tensor() || v.type.dtype() == declared.dtype()) return &v;
    Value* cast = MOKA_TRY(
        builder_.op("cast", {{"x", &v}, {"dtype", std::string(to_string(declared.dtype()))}}, cat(v.name, "_cast")));
    std::swap(cast->name, v.name);
    return cast;
  }

  Status read_attributes() {
    const OpDef* def = builder_.table().find(op_.type());
    const OpVersion* version = def == nullptr ? nullptr : def->at(builder_.opset);
    const std::map<std::string, const mil::Value*> sorted = [&] {
      std::map<std::string, const mil::Value*> m;
      for (const auto& [key, value] : op_.attributes()) m.emplace(key, &value);
      return m;
    }();
    for (const auto& [key, value] : sorted) {
      Constant c = MOKA_TRY_IN(import_value(*value, source_.file, source_.budget), cat("attribute '", key, "'"));
      if (key == "name") {
        if (!c.type.is_tensor() || c.tensor.dtype() != DType::string || c.tensor.count() != 1)
          return fail(ErrorCode::malformed, "attribute 'name': expected a string, got ", c.type);
        name_ = c.tensor.text();
      } else if (op_.type() == "const" && key == "val") {
        value_ = std::move(c);
      } else if (version != nullptr && version->param_index(key) >= 0) {
        args_.emplace_back(key, std::move(c));
      } else {
        attributes_.emplace(key, std::move(c));
      }
    }
    return {};
  }

  Result<Op*> constant() {
    if (outputs_.size() != 1) return fail(ErrorCode::malformed, "expected one output, got ", outputs_.size());
    // Some writers store the value as an argument.
    if (const auto it = op_.inputs().find("val");
        !value_ && it != op_.inputs().end() && it->second.arguments_size() == 1 && it->second.arguments(0).has_value())
      value_ = MOKA_TRY(import_value(it->second.arguments(0).value(), source_.file, source_.budget));
    if (!value_) return fail(ErrorCode::malformed, "expected the attribute 'val', got none");
    const auto& [name, type] = outputs_[0];
    if (!is_compatible(value_->type, type))
      return fail(ErrorCode::malformed, "expected a value of type ", type, ", got ", value_->type);
    Value* v = MOKA_TRY(builder_.constant(name, std::move(*value_)));
    if (!name_.empty()) v->producer()->name = name_;
    return v->producer();
  }

  Result<Value*> known(const std::string& name) {
    Value* v = scope_.find(name);
    if (v == nullptr) return fail(ErrorCode::malformed, "expected a value defined before, got '", name, "'");
    return v;
  }

  Status read_inputs() {
    const OpDef* def = builder_.table().find(op_.type());
    const OpVersion* version = def == nullptr ? nullptr : def->at(builder_.opset);
    std::map<std::string, const mil::Argument*> sorted;
    for (const auto& [key, argument] : op_.inputs()) sorted.emplace(key, &argument);
    for (const auto& [key, argument] : sorted) {
      const ParamDef* param = version == nullptr ? nullptr : version->param(key);
      if (param != nullptr && param->internal) return fail(ErrorCode::malformed, "unknown parameter '", key, "'");
      if (argument->arguments_size() == 0) continue;
      const bool tuple = argument->arguments_size() > 1 || (param != nullptr && param->variadic);
      std::vector<Value*> values;
      for (const auto& binding : argument->arguments()) {
        if (binding.has_name()) {
          values.push_back(MOKA_TRY_IN(known(binding.name()), cat("input '", key, "'")));
          continue;
        }
        if (!binding.has_value())
          return fail(ErrorCode::malformed, "input '", key, "': expected a name or a value, got none");
        Constant value =
            MOKA_TRY_IN(import_value(binding.value(), source_.file, source_.budget), cat("input '", key, "'"));
        if (!tuple)
          args_.emplace_back(key, std::move(value));
        else  // Only a whole parameter can be an inline constant.
          values.push_back(MOKA_TRY(builder_.constant(
              cat(outputs_.empty() ? op_.type() : outputs_[0].first, "_", key, "_", values.size()), std::move(value))));
      }
      if (tuple)
        args_.emplace_back(key, std::move(values));
      else if (!values.empty())
        args_.emplace_back(key, values[0]);
    }
    return {};
  }

  Result<Op*> operation() {
    MOKA_TRY(read_inputs());
    OpSpec spec;
    spec.op = op_.type();
    spec.args = std::move(args_);
    spec.name = name_;
    for (const auto& [name, type] : outputs_) {
      spec.output_names.push_back(name);
      spec.declared.push_back(type);
    }
    spec.other_float_allowed = op_.type() != "cast";
    if (op_.blocks_size() == 0) {
      if (builder_.table().find(op_.type()) == nullptr)
        if (auto registered = MOKA_TRY(registered_operation(builder_, spec, attributes_, source_.placeholders)))
          spec = std::move(*registered);
      return builder_.append(std::move(spec));
    }
    if (depth_ >= kMaxNesting) return fail(ErrorCode::malformed, "blocks nested more than ", kMaxNesting, " deep");
    std::vector<TypedNames> inputs;
    for (const auto& b : op_.blocks()) inputs.push_back(MOKA_TRY(typed_names(b.inputs(), "block input")));
    const Builder::BlockFn fill = [&](size_t i, Builder& inner) -> Result<std::vector<Value*>> {
      Scope inner_scope(&scope_);
      for (size_t k = 0; k < inputs[i].size(); ++k)
        inner_scope.add(inputs[i][k].first, inner.block().inputs()[k].get());
      return import_block(op_.blocks(static_cast<int>(i)), source_, inner, inner_scope, depth_ + 1);
    };
    return builder_.append_with_blocks(std::move(spec), inputs, fill);
  }

  const mil::Operation& op_;
  const ProgramSource& source_;
  Builder& builder_;
  Scope& scope_;
  int depth_;
  TypedNames outputs_;
  std::string name_;
  std::optional<Constant> value_;
  std::vector<NamedArg> args_;
  std::map<std::string, Constant> attributes_;
};

}  // namespace

Result<std::vector<Value*>> import_block(const mil::Block& block, const ProgramSource& source, Builder& builder,
                                         Scope& scope, int depth) {
  int done = 0;
  for (const auto& op : block.operations()) {
    if (depth == 0)
      MOKA_TRY(Watch::at("import", static_cast<size_t>(done++), static_cast<size_t>(block.operations_size())));
    const std::string_view output = op.outputs_size() > 0 ? std::string_view(op.outputs(0).name()) : std::string_view();
    MOKA_TRY_IN(OpImporter(op, source, builder, scope, depth).run(), cat("operation '", output, "' (", op.type(), ")"));
  }
  std::vector<Value*> outputs;
  for (const std::string& name : block.outputs()) {
    Value* v = scope.find(name);
    if (v == nullptr) return fail(ErrorCode::malformed, "block output '", name, "': expected a value defined before");
    outputs.push_back(v);
  }
  return outputs;
}

}  // namespace moka::import
