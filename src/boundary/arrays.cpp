// SPDX-License-Identifier: Apache-2.0
#include "boundary/arrays.h"

#include <algorithm>

#include "boundary/descriptions.h"
#include "boundary/errors.h"
#include "moka/multi_array.h"

namespace moka {

namespace {

constexpr struct {
  std::string_view name;
  size_t size;
  ir::DType dtype;
} kTypes[] = {{"float16", 2, ir::DType::fp16},  {"float32", 4, ir::DType::fp32},  {"float64", 8, ir::DType::fp64},
              {"int8", 1, ir::DType::int8},     {"int16", 2, ir::DType::int16},   {"int32", 4, ir::DType::int32},
              {"int64", 8, ir::DType::int64},   {"uint8", 1, ir::DType::uint8},   {"uint16", 2, ir::DType::uint16},
              {"uint32", 4, ir::DType::uint32}, {"uint64", 8, ir::DType::uint64}, {"boolean", 1, ir::DType::boolean}};

const auto& row(DataType t) { return kTypes[static_cast<size_t>(t)]; }

std::vector<int64_t> row_major(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t n = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = n;
    n *= shape[i];
  }
  return strides;
}

int64_t checked_count(const std::vector<int64_t>& shape, DataType type) {
  int64_t n = static_cast<int64_t>(size_of(type));
  if (shape.size() > ir::kMaxRank)
    throw Exception(ErrorKind::invalid_argument,
                    cat("multi-array: expected at most ", ir::kMaxRank, " dimensions, got ", shape.size()));
  for (int64_t d : shape)
    if (d < 0 || (d > 0 && __builtin_mul_overflow(n, d, &n)))
      throw Exception(ErrorKind::invalid_argument, cat("multi-array: impossible dimension ", d));
  return std::any_of(shape.begin(), shape.end(), [](int64_t d) { return d == 0; })
             ? 0
             : n / static_cast<int64_t>(size_of(type));
}

}  // namespace

Exception::~Exception() = default;

std::string_view to_string(DataType type) { return row(type).name; }
size_t size_of(DataType type) { return row(type).size; }

namespace boundary {

ir::DType to_ir(DataType type) { return row(type).dtype; }

Result<DataType> from_ir(ir::DType type) {
  for (size_t i = 0; i < std::size(kTypes); i++)
    if (kTypes[i].dtype == type) return static_cast<DataType>(i);
  return fail(ErrorCode::unsupported, "multi-arrays of element type ", type);
}

ir::ArrayView view_of(const MultiArray& a) {
  return {to_ir(a.type()), a.shape(), a.is_contiguous() ? std::span<const int64_t>() : a.strides(), a.data()};
}

Result<MultiArray> array_in(const ir::TensorView& view, std::shared_ptr<const void> owner) {
  const DataType type = MOKA_TRY(from_ir(view.dtype));
  std::vector<int64_t> dims = view.shape.to_vector();
  if (dims.empty()) dims.push_back(1);
  return MultiArray(view.data, type, std::move(dims), {}, std::move(owner));
}

Result<MultiArray> new_array(ir::DType dtype, const ir::Shape& shape) {
  MOKA_TRY(from_ir(dtype));
  const ir::Tensor t = MOKA_TRY(ir::Tensor::uninitialized(dtype, shape));
  return array_in(t.view(), t.owner());
}

Result<MultiArray> to_array(const ir::TensorView& view) {
  MultiArray a = MOKA_TRY(new_array(view.dtype, view.shape));
  std::copy_n(view.as<std::byte>(), static_cast<size_t>(a.count()) * size_of(a.type()),
              static_cast<std::byte*>(a.data()));
  return a;
}

}  // namespace boundary

MultiArray::MultiArray(DataType type, std::vector<int64_t> shape) : type_(type), shape_(std::move(shape)) {
  count_ = checked_count(shape_, type);
  strides_ = row_major(shape_);
  ir::Tensor t =
      boundary::unwrap(ir::Tensor::zeros(boundary::to_ir(type), ir::Shape(std::span<const int64_t>(shape_))));
  data_ = t.mutable_data();
  owner_ = t.owner();
}

MultiArray::MultiArray(void* data, DataType type, std::vector<int64_t> shape, std::vector<int64_t> strides)
    : MultiArray(data, type, std::move(shape), std::move(strides), nullptr) {}

MultiArray::MultiArray(void* data, DataType type, std::vector<int64_t> shape, std::vector<int64_t> strides,
                       std::shared_ptr<const void> owner)
    : type_(type), shape_(std::move(shape)), strides_(std::move(strides)), data_(data), owner_(std::move(owner)) {
  count_ = checked_count(shape_, type);
  std::vector<int64_t> dense = row_major(shape_);
  if (strides_.empty()) strides_ = dense;
  if (strides_.size() != shape_.size())
    throw Exception(ErrorKind::invalid_argument,
                    cat("multi-array: expected ", shape_.size(), " strides, got ", strides_.size()));
  for (size_t i = 0; i < shape_.size(); i++) contiguous_ &= shape_[i] <= 1 || strides_[i] == dense[i];
  if (reinterpret_cast<uintptr_t>(data) % size_of(type) != 0)
    throw Exception(ErrorKind::invalid_argument, cat("multi-array: data is not aligned to ", size_of(type), " bytes"));
}

MultiArray MultiArray::of(std::span<const float> values, std::vector<int64_t> shape) {
  MultiArray a(DataType::float32, std::move(shape));
  if (static_cast<size_t>(a.count()) != values.size())
    throw Exception(ErrorKind::invalid_argument,
                    cat("multi-array: its shape has ", a.count(), " elements, got ", values.size(), " values"));
  std::copy(values.begin(), values.end(), a.as<float>().begin());
  return a;
}

void refuse_element_type(DataType type) {
  throw Exception(ErrorKind::invalid_argument,
                  cat("array: the elements are ", to_string(type), ": another C++ type was asked for"));
}

void MultiArray::check_row_major() const {
  if (!contiguous_)
    throw Exception(ErrorKind::invalid_argument,
                    "multi-array: its strides are not row-major: view and converted take these");
}

int64_t offset_of(std::span<const int64_t> indices, std::span<const int64_t> shape, std::span<const int64_t> strides) {
  if (indices.size() != shape.size())
    throw Exception(ErrorKind::invalid_argument,
                    cat("multi-array: expected ", shape.size(), " indices, got ", indices.size()));
  int64_t offset = 0;
  for (size_t i = 0; i < indices.size(); i++) {
    if (indices[i] < 0 || indices[i] >= shape[i])
      throw Exception(ErrorKind::invalid_argument,
                      cat("multi-array: dimension ", i, ": expected an index below ", shape[i], ", got ", indices[i]));
    offset += indices[i] * strides[i];
  }
  return offset;
}

double MultiArray::at(int64_t i) const {
  if (i < 0 || i >= count_)
    throw Exception(ErrorKind::invalid_argument, cat("multi-array: expected an index below ", count_, ", got ", i));
  const ir::ArrayView view = boundary::view_of(*this);
  return view.load_f64(view.offset(i));
}

MultiArray MultiArray::converted(DataType type) const {
  MultiArray out(type, shape_);
  ir::copy_array(boundary::view_of(*this),
                 {boundary::to_ir(type), ir::Shape(std::span<const int64_t>(shape_)), out.data()});
  return out;
}

}  // namespace moka
