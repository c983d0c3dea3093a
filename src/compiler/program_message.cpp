#include "compiler/program_message.h"

#include "import/mlprogram/data_types.h"
#include "ir/op_def.h"

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

class Writer {
 public:
  explicit Writer(const BlobName& blob_name) : blob_name_(blob_name) {}

  void write_value(const Constant& value, mil::Value& to) {
    write_type(value.type, *to.mutable_type());
    if (!value.blob_path.empty()) {
      to.mutable_blobfilevalue()->set_filename(blob_name_(value.blob_path));
      to.mutable_blobfilevalue()->set_offset(value.blob_offset);
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

  void write_op(const ir::Op& op, mil::Operation& to) {
    to.set_type(op.type_name());
    auto& attributes = *to.mutable_attributes();
    write_attributes(op.attributes, attributes);
    write_value(ir::Tensor::text(op.name), attributes["name"]);
    for (size_t i = 0; i < op.output_count(); ++i) write_named(*op.output(i), *to.add_outputs());
    if (op.has_trait(ir::Trait::constant)) {
      write_value(*op.output()->constant(), attributes["val"]);
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
        if (v->is_inline_constant())
          write_value(*v->constant(), *binding.mutable_value());
        else
          binding.set_name(v->name);
      }
    }
    for (size_t i = 0; i < op.block_count(); ++i) write_block(*op.block(i), *to.add_blocks());
  }

  void write_block(const ir::Block& block, mil::Block& to) {
    // The function declares the inputs, not its body.
    if (block.parent_op() != nullptr)
      for (const auto& v : block.inputs()) write_named(*v, *to.add_inputs());
    for (const auto& op : block.ops()) write_op(*op, *to.add_operations());
    for (const ir::Value* v : block.outputs()) to.add_outputs(v->name);
  }

 private:
  const BlobName& blob_name_;
};

}  // namespace

void write_message(const ir::Program& program, mil::Program& message, const BlobName& blob_name) {
  Writer w(blob_name);
  message.set_version(1);
  w.write_attributes(program.attributes, *message.mutable_attributes());
  for (const auto& f : program.functions) {
    mil::Function& function = (*message.mutable_functions())[f->name];
    function.set_opset(opset_name(f->opset));
    for (const auto& v : f->body().inputs()) w.write_named(*v, *function.add_inputs());
    w.write_attributes(f->attributes, *function.mutable_attributes());
    w.write_block(f->body(), (*function.mutable_block_specializations())[function.opset()]);
  }
}

}  // namespace moka::compiler
