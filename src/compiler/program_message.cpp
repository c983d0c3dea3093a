// SPDX-License-Identifier: Apache-2.0
#include "compiler/program_message.h"

#include <set>

#include "format/mlmodelc/write.h"
#include "import/mlprogram/data_types.h"
#include "ir/op_def.h"
#include "ir/registered.h"
#include "ir/unnamed.h"

namespace moka::compiler {

using ir::Constant;
using ir::DType;
using ir::Type;
namespace mil = proto::MILSpec;

namespace {

/// The specification's name of an opset: "CoreML7".
std::string opset_name(ir::Opset opset) {
  constexpr int kNewest = 9;
  for (int n = 1; n <= kNewest; n++)
    if (const std::string name = cat("CoreML", n); ir::opset_from_string(name) == opset) return name;
  return std::string(to_string(opset));
}

void write_size(int64_t size, mil::Dimension& to) {
  if (size >= 0)
    to.mutable_constant()->set_size(static_cast<uint64_t>(size));
  else
    to.mutable_unknown()->set_variadic(false);
}

void write_type(const Type& type, mil::ValueType& to) {
  switch (type.kind()) {
    case Type::Kind::list:
      write_type(type.element(0), *to.mutable_listtype()->mutable_type());
      write_size(type.length(), *to.mutable_listtype()->mutable_length());
      return;
    case Type::Kind::tuple:
      to.mutable_tupletype();
      for (const Type& element : type.elements()) write_type(element, *to.mutable_tupletype()->add_types());
      return;
    case Type::Kind::dict:
      write_type(type.element(0), *to.mutable_dictionarytype()->mutable_keytype());
      write_type(type.element(1), *to.mutable_dictionarytype()->mutable_valuetype());
      return;
    case Type::Kind::state: write_type(type.element(0), *to.mutable_statetype()->mutable_wrappedtype()); return;
    default: break;
  }
  mil::TensorType& tensor = *to.mutable_tensortype();
  tensor.set_datatype(import::data_type_of(type.dtype()));
  if (!type.is_ranked()) {
    tensor.set_rank(-1);
    return;
  }
  tensor.set_rank(type.rank());
  for (int64_t size : type.shape().dims()) write_size(size, *tensor.add_dimensions());
}

/// Stores element types that have no field of their own as raw bytes.
void write_tensor(const ir::Tensor& tensor, mil::TensorValue& to) {
  const ir::TensorView t = tensor.view();
  const int64_t count = t.count();
  switch (t.dtype) {
    case DType::fp32:
      to.mutable_floats();
      for (int64_t i = 0; i < count; ++i) to.mutable_floats()->add_values(t.as<float>()[i]);
      return;
    case DType::fp64:
      to.mutable_doubles();
      for (int64_t i = 0; i < count; ++i) to.mutable_doubles()->add_values(t.as<double>()[i]);
      return;
    case DType::int32:
    case DType::uint32:
      to.mutable_ints();
      for (int64_t i = 0; i < count; ++i) to.mutable_ints()->add_values(t.as<int32_t>()[i]);
      return;
    case DType::int64:
    case DType::uint64:
      to.mutable_longints();
      for (int64_t i = 0; i < count; ++i) to.mutable_longints()->add_values(t.as<int64_t>()[i]);
      return;
    case DType::boolean:
      to.mutable_bools();
      for (int64_t i = 0; i < count; ++i) to.mutable_bools()->add_values(load_i64(t, i) != 0);
      return;
    case DType::string:
      to.mutable_strings();
      for (int64_t i = 0; i < count; ++i) to.mutable_strings()->add_values(t.as<std::string>()[i]);
      return;
    default: to.mutable_bytes()->set_values(t.data, tensor.bytes());
  }
}

class MessageWriter {
 public:
  explicit MessageWriter(const MessageOptions& options) : options_(options) {}

  void write_value(const Constant& value, mil::Value& to) {
    write_type(value.type, *to.mutable_type());
    if (const auto place = options_.place(value)) {
      to.mutable_blobfilevalue()->set_filename(place->file);
      to.mutable_blobfilevalue()->set_offset(place->offset);
      return;
    }
    auto& immediate = *to.mutable_immediatevalue();
    switch (value.type.kind()) {
      case Type::Kind::list:
        immediate.mutable_list();
        for (const Constant& part : value.parts) write_value(part, *immediate.mutable_list()->add_values());
        return;
      case Type::Kind::tuple:
        immediate.mutable_tuple();
        for (const Constant& part : value.parts) write_value(part, *immediate.mutable_tuple()->add_values());
        return;
      case Type::Kind::dict:
        immediate.mutable_dictionary();
        for (size_t i = 0; i + 1 < value.parts.size(); i += 2) {
          auto& pair = *immediate.mutable_dictionary()->add_values();
          write_value(value.parts[i], *pair.mutable_key());
          write_value(value.parts[i + 1], *pair.mutable_value());
        }
        return;
      default: write_tensor(value.tensor, *immediate.mutable_tensor());
    }
  }

  template <class Map>
  void write_attributes(const std::map<std::string, Constant>& attributes, Map& to) {
    for (const auto& [key, value] : attributes)
      if (key != "FlexibleShapeInformation") write_value(value, to[key]);
  }

  static void write_named(const ir::Value& v, mil::NamedValueType& to) {
    to.set_name(v.name);
    write_type(v.type, *to.mutable_type());
  }

  /// A constant of one operation as an operation of its own. Returns its name.
  std::string write_constant(const std::string& base, const Constant& value, mil::Block& block) {
    std::string name = base;
    for (int i = 1; !names_.insert(name).second; ++i) name = cat(base, "_", i);
    mil::Operation& to = *block.add_operations();
    to.set_type("const");
    to.add_outputs()->set_name(name);
    write_type(value.type, *to.mutable_outputs(0)->mutable_type());
    write_value(ir::Tensor::text(name), (*to.mutable_attributes())["name"]);
    write_value(value, (*to.mutable_attributes())["val"]);
    return name;
  }

  /// An operation with registered code, as the model has it.
  void write_registered(const ir::Op& op, const ir::RegisteredSource& source, mil::Operation& to) {
    to.set_type(source.op);
    for (const auto& argument : source.arguments)
      for (const auto& value : argument.values) {
        mil::Argument::Binding& binding = *(*to.mutable_inputs())[argument.name].add_arguments();
        if (const auto* input = std::get_if<size_t>(&value))
          binding.set_name(op.inputs("inputs")[*input]->name);
        else
          write_value(std::get<Constant>(value), *binding.mutable_value());
      }
  }

  void write_op(const ir::Op& op, mil::Block& block) {
    mil::Operation to;
    write_op(op, to, block);
    *block.add_operations() = std::move(to);
  }

  void write_op(const ir::Op& op, mil::Operation& to, mil::Block& block) {
    to.set_type(op.type_name());
    auto& attributes = *to.mutable_attributes();
    write_attributes(op.attributes, attributes);
    if (ir::is_unnamed(op))
      attributes.erase("name");
    else
      write_value(ir::Tensor::text(op.name), attributes["name"]);
    for (size_t i = 0; i < op.output_count(); ++i) write_named(*op.output(i), *to.add_outputs());
    if (op.has_trait(ir::Trait::constant)) {
      write_value(*op.output()->constant(), attributes["val"]);
      return;
    }
    if (const auto source = ir::registered_source(op)) {
      write_registered(op, *source, to);
      return;
    }
    for (const ir::Operand& operand : op.operands()) {
      const ir::ParamDef& param = op.version().params[static_cast<size_t>(operand.param)];
      if (param.attribute && operand.values.size() == 1 && operand.values[0]->constant() != nullptr) {
        write_value(*operand.values[0]->constant(), attributes[param.name]);
        continue;
      }
      mil::Argument& argument = (*to.mutable_inputs())[param.name];
      for (const ir::Value* v : operand.values) {
        mil::Argument::Binding& binding = *argument.add_arguments();
        if (v->is_inline_constant() && options_.constants_as_operations && v->type.is_tensor())
          binding.set_name(write_constant(cat(op.name, "_", param.name), *v->constant(), block));
        else if (v->is_inline_constant())
          write_value(*v->constant(), *binding.mutable_value());
        else
          binding.set_name(v->name);
      }
    }
    for (size_t i = 0; i < op.block_count(); ++i) write_block(*op.block(i), *to.add_blocks());
  }

  void write_function(const ir::Function& f, mil::Function& to) {
    names_.clear();
    add_names(f.body());
    write_block(f.body(), (*to.mutable_block_specializations())[to.opset()]);
  }

  void write_block(const ir::Block& block, mil::Block& to) {
    // The function declares the inputs, not its body.
    if (block.parent_op() != nullptr)
      for (const auto& v : block.inputs()) write_named(*v, *to.add_inputs());
    for (const auto& op : block.ops()) write_op(*op, to);
    for (const ir::Value* v : block.outputs()) to.add_outputs(v->name);
  }

 private:
  void add_names(const ir::Block& block) {
    for (const auto& v : block.inputs()) names_.insert(v->name);
    for (const auto& op : block.ops()) {
      for (size_t i = 0; i < op->output_count(); ++i) names_.insert(op->output(i)->name);
      for (size_t i = 0; i < op->block_count(); ++i) add_names(*op->block(i));
    }
  }

  const MessageOptions& options_;
  std::set<std::string> names_;  ///< of all values of the function
};

}  // namespace

void write_message(const ir::Program& program, mil::Program& message, const MessageOptions& options) {
  MessageWriter w(options);
  message.set_version(1);
  w.write_attributes(program.attributes, *message.mutable_attributes());
  for (const auto& f : program.functions) {
    mil::Function& function = (*message.mutable_functions())[f->name];
    function.set_opset(opset_name(f->opset));
    for (const auto& v : f->body().inputs()) w.write_named(*v, *function.add_inputs());
    w.write_attributes(f->attributes, *function.mutable_attributes());
    w.write_function(*f, function);
  }
}

std::string serialize_program(const ir::Program& program, const MessageOptions& options) {
  mil::Program message;
  write_message(program, message, options);
  return format::serialize(message);
}

}  // namespace moka::compiler
