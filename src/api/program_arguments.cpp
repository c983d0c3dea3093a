// SPDX-License-Identifier: Apache-2.0
#include "api/program_arguments.h"

#include "api/build.h"

namespace moka::api {

using Argument = ProgramBuilder::Argument;
using ir::DType;

namespace {

/// The element type of an argument; none for plain numbers, which have no type of their own.
DType own_type(const Argument& a) {
  if (const auto* v = std::get_if<ProgramBuilder::Value>(&a.value))
    return handle(*v)->type.is_tensor() ? handle(*v)->type.dtype() : DType::none;
  if (const auto* list = std::get_if<std::vector<ProgramBuilder::Value>>(&a.value))
    return list->empty() || !handle(list->front())->type.is_tensor() ? DType::none
                                                                     : handle(list->front())->type.dtype();
  if (const auto* array = std::get_if<MultiArray>(&a.value)) return to_ir(array->type());
  return DType::none;
}

/// The element type for plain numbers that would be of type `natural`.
DType element_type(const ir::OpVersion& version, const std::string& parameter, DType natural,
                   std::span<const Argument> all) {
  const ir::ParamDef* p = version.param(parameter);
  if (p == nullptr || p->kind != ir::ParamKind::tensor) return natural;
  const ir::DTypes domain = version.domain(*p);
  const auto takes = [&](DType t) {
    return (domain & ir::only(t)) != 0 && (ir::is_float(t) || !ir::is_float(natural));
  };
  if (!p->type_var.empty())
    for (const Argument& other : all) {
      const ir::ParamDef* q = version.param(other.name);
      if (q == nullptr || q->type_var != p->type_var) continue;
      if (const DType t = own_type(other); t != DType::none && t != DType::boolean && takes(t)) return t;
    }
  if (takes(natural)) return natural;
  for (DType t : {DType::fp32, DType::fp16, DType::int32, DType::int64, DType::uint8, DType::int8})
    if (takes(t)) return t;
  return natural;
}

template <class T>
ir::Shape size_of(const std::vector<T>& values) {
  return {static_cast<int64_t>(values.size())};
}

template <class T>
ir::Tensor numbers(const std::vector<T>& values, const ir::Shape& shape, DType type) {
  ir::Tensor out = unwrap(ir::Tensor::zeros(type, shape));
  const ir::TensorView view = out.view();
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (ir::is_float(type))
      ir::store_f64(view, at, static_cast<double>(values[i]));
    else
      ir::store_i64(view, at, static_cast<int64_t>(values[i]));
  }
  return out;
}

ir::Constant strings(const ir::ParamDef* parameter, const std::vector<std::string>& values) {
  const auto count = static_cast<int64_t>(values.size());
  if (parameter == nullptr || parameter->kind != ir::ParamKind::list)
    return ir::Tensor::strings(ir::Shape{count}, values);
  std::vector<ir::Constant> parts;
  for (const std::string& v : values) parts.emplace_back(ir::Tensor::text(v));
  return {ir::Type::list(ir::Type::scalar(DType::string), count), std::move(parts)};
}

}  // namespace

ir::Value* handle(ProgramBuilder::Value v) {
  if (v.handle == nullptr) throw Exception(ErrorKind::invalid_argument, "program: a value without a producer");
  return static_cast<ir::Value*>(v.handle);
}

ir::Value* visible(ProgramBuilder::Value value, const ir::Block& block) {
  ir::Value* v = handle(value);
  const ir::Block* own = v->producer() != nullptr ? v->producer()->parent() : v->block();
  for (const ir::Block* b = &block; b != nullptr; b = b->parent_op() != nullptr ? b->parent_op()->parent() : nullptr)
    if (b == own) return v;
  throw Exception(
      ErrorKind::invalid_argument,
      cat("value '", v->name, "': it belongs to another function, or to a block that does not contain this operation"));
}

ir::Tensor tensor_of(const MultiArray& array, DType type) {
  const ir::Shape shape = unwrap(ir::Shape::make(array.shape()));
  const DType own = to_ir(array.type());
  const bool aligned = reinterpret_cast<uintptr_t>(array.data()) % size_of(array.type()) == 0;
  if (own == type && aligned && array.is_contiguous()) return unwrap(ir::Tensor::wrap(type, shape, bytes_of(array)));
  if (own == type) {
    ir::Tensor out = unwrap(ir::Tensor::zeros(type, shape));
    ir::copy_array(view_of(array), out.view());
    return out;
  }
  const ir::Tensor from = tensor_of(array, own);
  ir::Tensor out = unwrap(ir::Tensor::zeros(type, shape));
  const ir::TensorView source = from.view(), target = out.view();
  const bool floats = ir::is_float(own) || ir::is_float(type);
  const bool is_integer = !ir::is_float(type) && type != DType::boolean;
  for (int64_t i = 0; i < source.count(); ++i) {
    if (floats)
      ir::store_f64(target, i, ir::load_f64(source, i));
    else
      ir::store_i64(target, i, ir::load_i64(source, i));
    const bool is_other = ir::load_f64(target, i) != ir::load_f64(source, i) ||
                          (!floats && ir::load_i64(target, i) != ir::load_i64(source, i));
    if (is_integer && is_other)
      throw Exception(ErrorKind::invalid_argument,
                      cat("constant: ", ir::load_f64(source, i), " does not fit into ", type));
  }
  return out;
}

ir::NamedArg to_named(const ir::OpVersion& version, const Argument& a, std::span<const Argument> all,
                      const ir::Block& block) {
  struct Visitor {
    const ir::OpVersion& version;
    const std::string& name;
    std::span<const Argument> all;
    const ir::Block& block;

    DType chosen(DType natural) const { return element_type(version, name, natural, all); }
    ir::NamedArg operator()(ProgramBuilder::Value v) const {
      const ir::ParamDef* p = version.param(name);
      if (p != nullptr && p->variadic) return {name, std::vector<ir::Value*>{visible(v, block)}};
      return {name, visible(v, block)};
    }
    ir::NamedArg operator()(const std::vector<ProgramBuilder::Value>& v) const {
      std::vector<ir::Value*> values;
      for (auto x : v) values.push_back(visible(x, block));
      return {name, std::move(values)};
    }
    ir::NamedArg operator()(const MultiArray& array) const { return {name, tensor_of(array, to_ir(array.type()))}; }
    ir::NamedArg operator()(const std::string& v) const { return {name, v}; }
    ir::NamedArg operator()(bool v) const { return {name, v}; }
    ir::NamedArg operator()(int v) const { return {name, numbers<int>({v}, {}, chosen(DType::int32))}; }
    ir::NamedArg operator()(float v) const { return {name, numbers<float>({v}, {}, chosen(DType::fp32))}; }
    ir::NamedArg operator()(const std::vector<int>& v) const {
      return {name, numbers(v, size_of(v), chosen(DType::int32))};
    }
    ir::NamedArg operator()(const std::vector<float>& v) const {
      return {name, numbers(v, size_of(v), chosen(DType::fp32))};
    }
    ir::NamedArg operator()(const std::vector<std::string>& v) const { return {name, strings(version.param(name), v)}; }
  };
  return std::visit(Visitor{version, a.name, all, block}, a.value);
}

FeatureDescription output_feature(const ir::Type& type) {
  FeatureDescription f;
  if (type.is_dict()) {
    f.type = FeatureType::dictionary;
    f.string_keys = type.element(0).dtype() == DType::string;
    return f;
  }
  const auto dtype = type.is_tensor() ? from_ir(type.dtype()) : Result<DataType>(fail(ErrorCode::unsupported));
  if (type.is_tensor() && type.dtype() == DType::string && type.rank() == 0) {
    f.type = FeatureType::string;
    return f;
  }
  if (!dtype.ok())
    throw Exception(ErrorKind::invalid_argument, cat("output: no feature of Core ML has the type ", type));
  f.array.type = *dtype;
  if (type.is_concrete()) f.array.shape.assign(type.shape().begin(), type.shape().end());
  return f;
}

}  // namespace moka::api
