// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "import/onnx/scope.h"

namespace moka::import::onnx {
namespace {

DType stored_as(DataType type) {
  switch (type) {
    case DataType::float32: return DType::fp32;
    case DataType::float16: return DType::fp16;
    case DataType::bfloat16: return DType::bf16;
    case DataType::float64: return DType::fp64;
    case DataType::float8e4m3fn: return DType::fp8e4m3fn;
    case DataType::float8e5m2: return DType::fp8e5m2;
    case DataType::int4: return DType::int4;
    case DataType::int8: return DType::int8;
    case DataType::int16: return DType::int16;
    case DataType::int32: return DType::int32;
    case DataType::int64: return DType::int64;
    case DataType::uint2: return DType::uint2;
    case DataType::uint4: return DType::uint4;
    case DataType::uint8: return DType::uint8;
    case DataType::uint16: return DType::uint16;
    case DataType::uint32: return DType::uint32;
    case DataType::uint64: return DType::uint64;
    case DataType::boolean: return DType::boolean;
    case DataType::string: return DType::string;
    default: return DType::none;
  }
}

size_t alignment_of(DType type) { return std::max<size_t>(static_cast<size_t>(ir::bits(type)) / 8, 1); }

/// Elements of two bits with a sign as int8.
Tensor widened_int2(const Bytes& bytes, const Shape& shape) {
  Tensor out = need(Tensor::zeros(DType::int8, shape));
  const auto values = out.mut<int8_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    const unsigned v = (static_cast<unsigned>(bytes.data()[i / 4]) >> (2 * (i % 4))) & 3u;
    values[i] = static_cast<int8_t>(v < 2 ? static_cast<int>(v) : static_cast<int>(v) - 4);
  }
  return out;
}

}  // namespace

DType computed_as(DataType type) {
  switch (type) {
    case DataType::float16: return DType::fp16;
    case DataType::float32:
    case DataType::float64:
    case DataType::bfloat16:
    case DataType::float8e4m3fn:
    case DataType::float8e5m2:
    case DataType::float8e4m3fnuz:
    case DataType::float8e5m2fnuz:
    case DataType::float4e2m1:
    case DataType::float8e8m0: return DType::fp32;
    case DataType::boolean: return DType::boolean;
    case DataType::int2:
    case DataType::int4:
    case DataType::int8:
    case DataType::int16:
    case DataType::int32:
    case DataType::int64:
    case DataType::uint2:
    case DataType::uint4:
    case DataType::uint8:
    case DataType::uint16:
    case DataType::uint32:
    case DataType::uint64: return DType::int32;
    default: refuse(ErrorCode::unsupported, "Core ML has no tensors of type ", format::onnx::to_string(type));
  }
}

Tensor tensor_of(const format::onnx::Tensor& t, const format::onnx::ModelFile& file) {
  const Shape shape = need(Shape::make(t.dims));
  if (t.type == DataType::string) {
    if (static_cast<int64_t>(t.strings.size()) != need(format::onnx::count_of(t)))
      refuse(ErrorCode::malformed, "tensor '", t.name, "' has ", t.strings.size(), " strings for its shape ", shape);
    return Tensor::strings(shape, t.strings);
  }
  const DType type = stored_as(t.type);
  if (type == DType::none && t.type != DataType::int2) {
    computed_as(t.type);  // names the type
    refuse(ErrorCode::unsupported, "tensor '", t.name, "': elements of type ", format::onnx::to_string(t.type));
  }
  Bytes bytes = need(format::onnx::contents(t, file.files));
  if (t.type == DataType::int2) return widened_int2(bytes, shape);
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % alignment_of(type) == 0;
  if (aligned && bytes.size() > 0) return need(Tensor::wrap(type, shape, bytes));
  Tensor out = need(Tensor::uninitialized(type, shape));
  if (!bytes.empty()) std::memcpy(out.mutable_data(), bytes.data(), bytes.size());
  return out;
}

Tensor tensor_of(const format::onnx::SparseTensor& t, const format::onnx::ModelFile& file) {
  const Shape shape = need(Shape::make(t.dims));
  const Tensor values = tensor_of(t.values, file), indices = tensor_of(t.indices, file);
  const int64_t count = need(shape.checked_count());
  Tensor out = need(Tensor::zeros(values.dtype(), shape));
  const std::vector<int64_t> at = integers_of(indices);
  const int64_t n = values.count();
  const bool tuples = indices.shape().rank() == 2;
  const auto width = static_cast<size_t>(tuples ? shape.rank() : 1);
  if (at.size() != static_cast<size_t>(n) * width)
    refuse(ErrorCode::malformed, "sparse tensor '", t.values.name, "': ", at.size(), " indices for ", n, " values");
  const auto strides = shape.strides();
  for (int64_t i = 0; i < n; ++i) {
    int64_t to = tuples ? 0 : at[static_cast<size_t>(i)];
    for (size_t d = 0; tuples && d < width; ++d) {
      const int64_t v = at[static_cast<size_t>(i) * width + d];
      if (v < 0 || v >= shape[static_cast<int>(d)]) to = -1;
      if (to >= 0) to += v * strides[d];
    }
    if (to < 0 || to >= count) refuse(ErrorCode::malformed, "sparse tensor '", t.values.name, "': an index is outside");
    if (ir::is_float(values.dtype()))
      ir::store_f64(out.view(), to, ir::load_f64(values.view(), i));
    else
      ir::store_i64(out.view(), to, ir::load_i64(values.view(), i));
  }
  return out;
}

}  // namespace moka::import::onnx
