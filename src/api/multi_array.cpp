#include "moka/multi_array.h"

#include <algorithm>

#include "api/internal.h"
#include "base/half.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

#if defined(__x86_64__)
__attribute__((target("avx"))) int64_t widen_avx(const float* from, double* to, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256d a = _mm256_cvtps_pd(_mm_loadu_ps(from + i)), b = _mm256_cvtps_pd(_mm_loadu_ps(from + i + 4)),
                  c = _mm256_cvtps_pd(_mm_loadu_ps(from + i + 8)), d = _mm256_cvtps_pd(_mm_loadu_ps(from + i + 12));
    _mm256_storeu_pd(to + i, a);
    _mm256_storeu_pd(to + i + 4, b);
    _mm256_storeu_pd(to + i + 8, c);
    _mm256_storeu_pd(to + i + 12, d);
  }
  return i;
}
#endif

/// Several numbers at a time: this library is compiled without vectorization.
void widen(const float* from, double* to, int64_t n) {
  typedef float Floats __attribute__((vector_size(8)));
  typedef double Doubles __attribute__((vector_size(16)));
  int64_t i = 0;
#if defined(__x86_64__)
  static const bool has_avx = __builtin_cpu_supports("avx");
  if (has_avx) i = widen_avx(from, to, n);
#endif
  for (; i + 2 <= n; i += 2) {
    Floats some;
    std::memcpy(&some, from + i, sizeof some);
    const Doubles wide = __builtin_convertvector(some, Doubles);
    std::memcpy(to + i, &wide, sizeof wide);
  }
  if (i < n) to[i] = static_cast<double>(from[i]);
}

}  // namespace

Exception::~Exception() = default;

std::string_view to_string(DataType type) { return row(type).name; }
size_t size_of(DataType type) { return row(type).size; }

namespace api {

ir::DType to_ir(DataType type) { return row(type).dtype; }

Result<DataType> from_ir(ir::DType type) {
  for (size_t i = 0; i < std::size(kTypes); i++)
    if (kTypes[i].dtype == type) return static_cast<DataType>(i);
  return fail(ErrorCode::unsupported, "multi-arrays of element type ", type);
}

void copy_array(const MultiArray& from, const ir::TensorView& to) {
  ir::TensorView source{to_ir(from.type()), ir::Shape(std::span<const int64_t>(from.shape())),
                        const_cast<void*>(from.data())};
  int64_t n = from.count();
  if (from.is_contiguous()) {
    if (source.dtype == to.dtype) {
      std::copy_n(static_cast<const std::byte*>(from.data()), static_cast<size_t>(n) * size_of(from.type()),
                  to.as<std::byte>());
      return;
    }
    if (source.dtype == ir::DType::fp16 && to.dtype == ir::DType::fp32)
      return half_to_float(source.as<uint16_t>(), to.as<float>(), static_cast<size_t>(n));
    if (source.dtype == ir::DType::fp32 && to.dtype == ir::DType::fp64)
      return widen(source.as<float>(), to.as<double>(), n);
    if (source.dtype == ir::DType::fp32 && to.dtype == ir::DType::fp16)
      return float_to_half(source.as<float>(), to.as<uint16_t>(), static_cast<size_t>(n));
  }
  // Numbers of uint64 from 2^63 on do not fit into int64.
  const bool whole = !ir::is_float(source.dtype) && (source.dtype != ir::DType::uint64 || !ir::is_float(to.dtype));
  int64_t index[ir::kMaxRank] = {};
  size_t rank = from.shape().size();
  int64_t offset = 0;
  for (int64_t i = 0; i < n; i++) {
    if (whole)
      ir::store_i64(to, i, ir::load_i64(source, offset));
    else
      ir::store_f64(to, i, ir::load_f64(source, offset));
    for (size_t d = rank; d-- > 0;) {
      offset += from.strides()[d];
      if (++index[d] < from.shape()[d]) break;
      offset -= from.strides()[d] * from.shape()[d];
      index[d] = 0;
    }
  }
}

Result<MultiArray> new_array(ir::DType dtype, const ir::Shape& shape) {
  const DataType type = MOKA_TRY(from_ir(dtype));
  ir::Tensor t = MOKA_TRY(ir::Tensor::uninitialized(dtype, shape));
  std::vector<int64_t> dims = shape.to_vector();
  if (dims.empty()) dims.push_back(1);
  return MultiArray(t.mutable_data(), type, std::move(dims), {}, t.owner());
}

Result<MultiArray> to_array(const ir::TensorView& view) {
  MultiArray a = MOKA_TRY(new_array(view.dtype, view.shape));
  std::copy_n(view.as<std::byte>(), static_cast<size_t>(a.count()) * size_of(a.type()),
              static_cast<std::byte*>(a.data()));
  return a;
}

}  // namespace api

MultiArray::MultiArray(DataType type, std::vector<int64_t> shape) : type_(type), shape_(std::move(shape)) {
  count_ = checked_count(shape_, type);
  strides_ = row_major(shape_);
  ir::Tensor t = api::unwrap(ir::Tensor::zeros(api::to_ir(type), ir::Shape(std::span<const int64_t>(shape_))));
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

double MultiArray::at(int64_t i) const {
  if (i < 0 || i >= count_)
    throw Exception(ErrorKind::invalid_argument, cat("multi-array: expected an index below ", count_, ", got ", i));
  int64_t offset = 0;
  for (size_t d = shape_.size(); d-- > 0;) {
    offset += i % shape_[d] * strides_[d];
    i /= shape_[d];
  }
  return ir::load_f64({api::to_ir(type_), {}, data_}, offset);
}

MultiArray MultiArray::converted(DataType type) const {
  MultiArray out(type, shape_);
  api::copy_array(*this, {api::to_ir(type), ir::Shape(std::span<const int64_t>(shape_)), out.data()});
  return out;
}

}  // namespace moka
