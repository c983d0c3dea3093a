// SPDX-License-Identifier: Apache-2.0
#include "import/mlprogram/value.h"

#include <cstring>
#include <utility>
#include <vector>

#include "format/model_file.h"
#include "import/mlprogram/data_types.h"

namespace moka::import {

using ir::Constant;
using ir::DType;
using ir::Shape;
using ir::Tensor;
using ir::Type;
namespace mil = proto::MILSpec;

namespace {

constexpr int kMaxTypeDepth = 16;
constexpr uint64_t kMaxDimension = uint64_t{1} << 40;

DType dtype_of_blob(format::BlobType t) {
  using format::BlobType;
  switch (t) {
    case BlobType::float16: return DType::fp16;
    case BlobType::float32: return DType::fp32;
    case BlobType::bfloat16: return DType::bf16;
    case BlobType::float8_e4m3fn: return DType::fp8e4m3fn;
    case BlobType::float8_e5m2: return DType::fp8e5m2;
    case BlobType::int4: return DType::int4;
    case BlobType::int8: return DType::int8;
    case BlobType::int16: return DType::int16;
    case BlobType::int32: return DType::int32;
    case BlobType::uint1: return DType::uint1;
    case BlobType::uint2: return DType::uint2;
    case BlobType::uint3: return DType::uint3;
    case BlobType::uint4: return DType::uint4;
    case BlobType::uint6: return DType::uint6;
    case BlobType::uint8: return DType::uint8;
    case BlobType::uint16: return DType::uint16;
    case BlobType::uint32: return DType::uint32;
  }
  return DType::none;
}

Result<int64_t> size_of(const mil::Dimension& d) {
  if (!d.has_constant()) return ir::kAnyDim;
  if (d.constant().size() > kMaxDimension)
    return fail(ErrorCode::malformed, "expected a dimension up to ", kMaxDimension, ", got ", d.constant().size());
  return static_cast<int64_t>(d.constant().size());
}

Result<Type> type_of_tensor(const mil::TensorType& t) {
  const DType dtype = dtype_of(t.datatype());
  if (dtype == DType::none && t.datatype() == 0)
    return fail(ErrorCode::malformed, "a tensor type whose data type is not specified");
  if (dtype == DType::none) return fail(ErrorCode::malformed, "unknown data type ", static_cast<int>(t.datatype()));
  const auto& dims = t.dimensions();
  for (const auto& d : dims)
    if (d.has_unknown() && d.unknown().variadic()) return Type::unranked(dtype);
  if (t.rank() < 0) return Type::unranked(dtype);
  if (t.rank() != dims.size())
    return fail(ErrorCode::malformed, "tensor type of rank ", t.rank(), ": got ", dims.size(), " dimensions");
  Shape shape;
  if (dims.size() > ir::kMaxRank)
    return fail(ErrorCode::unsupported, "tensors of rank ", dims.size(), ", more than ", ir::kMaxRank);
  for (const auto& d : dims) shape.push_back(MOKA_TRY(size_of(d)));
  return Type::tensor(dtype, shape);
}

Result<Type> read_type(const mil::ValueType& type, int depth) {
  if (depth > kMaxTypeDepth) return fail(ErrorCode::malformed, "types nested more than ", kMaxTypeDepth, " deep");
  switch (type.type_case()) {
    case mil::ValueType::kTensorType: return type_of_tensor(type.tensortype());
    case mil::ValueType::kListType: {
      Type element = MOKA_TRY(read_type(type.listtype().type(), depth + 1));
      return Type::list(std::move(element), MOKA_TRY(size_of(type.listtype().length())));
    }
    case mil::ValueType::kTupleType: {
      std::vector<Type> elements;
      for (const auto& t : type.tupletype().types()) elements.push_back(MOKA_TRY(read_type(t, depth + 1)));
      return Type::tuple(std::move(elements));
    }
    case mil::ValueType::kDictionaryType: {
      Type key = MOKA_TRY(read_type(type.dictionarytype().keytype(), depth + 1));
      return Type::dict(std::move(key), MOKA_TRY(read_type(type.dictionarytype().valuetype(), depth + 1)));
    }
    case mil::ValueType::kStateType: return Type::state(MOKA_TRY(read_type(type.statetype().wrappedtype(), depth + 1)));
    default: return fail(ErrorCode::malformed, "expected a type, got none");
  }
}

template <class T>
T at(const Bytes& bytes, size_t i) {
  T v;
  std::memcpy(&v, bytes.data() + i * sizeof v, sizeof v);
  return v;
}

/// Whether the little-endian numbers of a TensorData already have the tensor's storage format.
bool same_storage(format::TensorData::Kind kind, DType dtype) {
  using Kind = format::TensorData::Kind;
  return (kind == Kind::floats && dtype == DType::fp32) || (kind == Kind::doubles && dtype == DType::fp64) ||
         (kind == Kind::ints && (dtype == DType::int32 || dtype == DType::uint32)) ||
         (kind == Kind::long_ints && (dtype == DType::int64 || dtype == DType::uint64)) || kind == Kind::raw;
}

Status fits(int64_t v, DType dtype) {
  if (dtype == DType::int64 || dtype == DType::uint64 || !ir::is_integer(dtype)) return {};
  const int width = ir::bits(dtype) - (ir::is_signed_integer(dtype) ? 1 : 0);
  const int64_t top = (int64_t{1} << width) - 1;
  if (v > top || v < (ir::is_signed_integer(dtype) ? -top - 1 : 0))
    return fail(ErrorCode::malformed, "expected a value of type ", dtype, ", got ", v);
  return {};
}

Result<Tensor> immediate_tensor(const mil::TensorValue& value, Type type, const format::ModelFile& file,
                                MemoryBudget* budget) {
  using Kind = format::TensorData::Kind;
  if (!type.is_ranked()) return fail(ErrorCode::malformed, "expected a value of known rank");
  const format::TensorData data = MOKA_TRY(file.tensor_data(value));
  const DType dtype = type.dtype();
  Shape& shape = type.shape();
  // An attribute's type may leave the length of a vector open. The value determines it.
  if (shape.rank() == 1 && shape[0] < 0 && data.kind != Kind::raw) shape[0] = static_cast<int64_t>(data.count);
  const auto count = static_cast<uint64_t>(MOKA_TRY(shape.checked_count()));
  if (data.kind == Kind::none) {
    if (count != 0) return fail(ErrorCode::malformed, "expected ", count, " elements of ", type, ", got none");
    return Tensor::zeros(dtype, shape);
  }
  if (data.kind != Kind::raw && data.count != count)
    return fail(ErrorCode::malformed, "expected ", count, " elements of ", type, ", got ", data.count);
  if ((dtype == DType::string) != (data.kind == Kind::strings))
    return fail(ErrorCode::malformed, "expected elements of type ", dtype, ", got ",
                data.kind == Kind::strings ? "strings" : "numbers");
  if (data.kind == Kind::strings) {
    const auto& v = value.strings().values();
    return Tensor::strings(shape, {v.begin(), v.end()});
  }
  if (same_storage(data.kind, dtype)) {
    const size_t size = MOKA_TRY(ir::storage_bytes(dtype, shape));
    if (data.bytes.size() != size)
      return fail(ErrorCode::malformed, "expected ", size, " bytes of ", type, ", got ", data.bytes.size());
    return Tensor::wrap(dtype, shape, data.bytes);
  }
  if (budget != nullptr) MOKA_TRY(budget->take(MOKA_TRY(ir::storage_bytes(dtype, shape)), cat("a ", type)));
  Tensor out = MOKA_TRY(Tensor::zeros(dtype, shape));
  const ir::TensorView view = out.view();
  const bool to_float = ir::is_float(dtype);
  for (size_t i = 0; i < count; ++i) {
    const auto to = static_cast<int64_t>(i);
    switch (data.kind) {
      case Kind::floats:
      case Kind::doubles:
        if (!to_float)
          return fail(ErrorCode::malformed, "expected elements of type ", dtype, ", got floating-point numbers");
        store_f64(
            view, to,
            data.kind == Kind::floats ? static_cast<double>(at<float>(data.bytes, i)) : at<double>(data.bytes, i));
        break;
      case Kind::bools:
        if (dtype != DType::boolean)
          return fail(ErrorCode::malformed, "expected elements of type ", dtype, ", got booleans");
        store_i64(view, to, at<uint8_t>(data.bytes, i) != 0);
        break;
      default: {
        const int64_t v = data.kind == Kind::ints ? at<int32_t>(data.bytes, i) : at<int64_t>(data.bytes, i);
        if (to_float) return fail(ErrorCode::malformed, "expected elements of type ", dtype, ", got integers");
        MOKA_TRY(fits(v, dtype));
        store_i64(view, to, v);
      }
    }
  }
  return out;
}

Result<Constant> read_value(const mil::Value& value, const Type* expected, const format::ModelFile& file,
                            MemoryBudget* budget, int depth);

template <class Values>
Status read_parts(const Values& values, const Type& type, const format::ModelFile& file, MemoryBudget* budget,
                  int depth, std::vector<Constant>& parts) {
  for (const auto& v : values) {
    const size_t i = type.kind() == Type::Kind::tuple ? parts.size() : 0;
    if (i >= type.elements().size()) return fail(ErrorCode::malformed, "more values than ", type, " has");
    parts.push_back(MOKA_TRY(read_value(v, &type.element(i), file, budget, depth + 1)));
  }
  return {};
}

Result<Constant> read_value(const mil::Value& value, const Type* expected, const format::ModelFile& file,
                            MemoryBudget* budget, int depth) {
  if (depth > kMaxTypeDepth) return fail(ErrorCode::malformed, "values nested more than ", kMaxTypeDepth, " deep");
  Type type;
  if (value.type().type_case() != mil::ValueType::TYPE_NOT_SET || expected == nullptr)
    type = MOKA_TRY(read_type(value.type(), depth));
  else
    type = *expected;
  if (expected != nullptr && !ir::is_compatible(type, *expected))
    return fail(ErrorCode::malformed, "expected a value of type ", *expected, ", got ", type);
  if (value.has_blobfilevalue()) {
    const auto& blob = value.blobfilevalue();
    Constant out(MOKA_TRY(import_blob(file.weights(), blob.filename(), blob.offset(), type)));
    out.blob_path = blob.filename();
    out.blob_offset = blob.offset();
    return out;
  }
  // coremltools writes nothing for an empty list.
  if (value.immediatevalue().value_case() == mil::Value::ImmediateValue::VALUE_NOT_SET && type.is_list() &&
      type.length() == 0)
    return Constant(type, std::vector<Constant>());
  if (!value.has_immediatevalue()) return fail(ErrorCode::malformed, "expected a value of type ", type, ", got none");
  const auto& immediate = value.immediatevalue();
  const auto wrong = [&](std::string_view got) {
    return fail(ErrorCode::malformed, "expected a value of type ", type, ", got ", got);
  };
  std::vector<Constant> parts;
  switch (immediate.value_case()) {
    case mil::Value::ImmediateValue::kTensor:
      if (!type.is_tensor()) return wrong("a tensor");
      return Constant(MOKA_TRY(immediate_tensor(immediate.tensor(), type, file, budget)));
    case mil::Value::ImmediateValue::kTuple:
      if (type.kind() != Type::Kind::tuple) return wrong("a tuple");
      MOKA_TRY(read_parts(immediate.tuple().values(), type, file, budget, depth, parts));
      if (parts.size() != type.elements().size()) return wrong(cat("a tuple of ", parts.size()));
      return Constant(type, std::move(parts));
    case mil::Value::ImmediateValue::kList: {
      if (!type.is_list()) return wrong("a list");
      MOKA_TRY(read_parts(immediate.list().values(), type, file, budget, depth, parts));
      if (type.length() >= 0 && type.length() != static_cast<int64_t>(parts.size()))
        return wrong(cat("a list of ", parts.size()));
      return Constant(type, std::move(parts));
    }
    case mil::Value::ImmediateValue::kDictionary:
      if (!type.is_dict()) return wrong("a dictionary");
      for (const auto& pair : immediate.dictionary().values()) {
        parts.push_back(MOKA_TRY(read_value(pair.key(), &type.element(0), file, budget, depth + 1)));
        parts.push_back(MOKA_TRY(read_value(pair.value(), &type.element(1), file, budget, depth + 1)));
      }
      return Constant(type, std::move(parts));
    default: return wrong("none");
  }
}

}  // namespace

Result<Type> import_type(const mil::ValueType& type) { return read_type(type, 0); }

Result<Constant> import_value(const mil::Value& value, const format::ModelFile& file, MemoryBudget* budget) {
  return read_value(value, nullptr, file, budget, 0);
}

Result<Tensor> import_blob(const format::WeightStore& weights, std::string_view name, uint64_t offset,
                           const Type& type) {
  if (!type.is_tensor() || !type.is_concrete())
    return fail(ErrorCode::malformed, "expected a tensor type of known shape for weights, got ", type);
  const format::Blob blob = MOKA_TRY(weights.blob(name, offset));
  const DType got = dtype_of_blob(blob.type);
  const bool as_bool = type.dtype() == DType::boolean && (got == DType::int8 || got == DType::uint8);
  const auto count = static_cast<uint64_t>(MOKA_TRY(type.shape().checked_count()));
  if ((got != type.dtype() && !as_bool) || blob.count != count)
    return fail(ErrorCode::malformed, "weights '", name, "' at offset ", offset, ": expected ", type, ", got ",
                blob.count, " elements of type ", got);
  if (!as_bool) return Tensor::wrap(type.dtype(), type.shape(), blob.data);
  Tensor out = MOKA_TRY(Tensor::zeros(DType::boolean, type.shape()));
  for (uint64_t i = 0; i < count; ++i) out.mut<uint8_t>()[i] = blob.data.span[i] != std::byte{0};
  return out;
}

}  // namespace moka::import
