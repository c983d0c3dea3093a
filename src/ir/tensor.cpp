// SPDX-License-Identifier: Apache-2.0
#include "ir/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/copy.h"
#include "base/half.h"
#include "base/memory.h"

namespace moka::ir {

namespace {

uint64_t load_packed(const void* data, int64_t i, int width) {
  auto* p = static_cast<const uint8_t*>(data);
  auto bit = static_cast<uint64_t>(i) * static_cast<uint64_t>(width);
  uint64_t v = p[bit / 8] >> (bit % 8);
  int got = 8 - static_cast<int>(bit % 8);
  if (got < width) v |= static_cast<uint64_t>(p[bit / 8 + 1]) << got;
  return v & ((uint64_t{1} << width) - 1);
}

void store_packed(const TensorView& t, int64_t i, int width, uint64_t v) {
  auto* p = t.as<uint8_t>();
  for (int b = 0; b < width; b++) {
    auto bit = static_cast<uint64_t>(i) * static_cast<uint64_t>(width) + static_cast<uint64_t>(b);
    auto mask = static_cast<uint8_t>(1u << (bit % 8));
    if ((v >> b) & 1)
      p[bit / 8] |= mask;
    else
      p[bit / 8] = static_cast<uint8_t>(p[bit / 8] & ~mask);
  }
}

float fp8_to_float(uint8_t v, int exponent_bits, int bias, bool has_inf) {
  int mantissa_bits = 7 - exponent_bits;
  int e = (v >> mantissa_bits) & ((1 << exponent_bits) - 1);
  int m = v & ((1 << mantissa_bits) - 1);
  int all = (1 << exponent_bits) - 1;
  float s = v & 0x80 ? -1.0f : 1.0f;
  if (has_inf && e == all)
    return m == 0 ? s * std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  if (!has_inf && e == all && m == (1 << mantissa_bits) - 1) return std::numeric_limits<float>::quiet_NaN();
  if (e == 0) return s * std::ldexp(static_cast<float>(m), 1 - bias - mantissa_bits);
  return s * std::ldexp(static_cast<float>(m | (1 << mantissa_bits)), e - bias - mantissa_bits);
}

uint8_t float_to_fp8(double v, int exponent_bits, int bias, bool has_inf) {
  uint8_t best = 0;
  double best_error = std::numeric_limits<double>::infinity();
  if (std::isnan(v)) return 0x7f;
  uint8_t sign = std::signbit(v) ? 0x80 : 0;
  if (std::isinf(v)) return sign | (has_inf ? (0x7f >> (7 - exponent_bits)) << (7 - exponent_bits) : 0x7e);
  for (int c = 0; c < 128; c++) {
    float f = fp8_to_float(static_cast<uint8_t>(c), exponent_bits, bias, has_inf);
    if (std::isnan(f) || std::isinf(f)) continue;
    double err = std::fabs(std::fabs(v) - static_cast<double>(f));
    if (err < best_error || (err == best_error && (c & 1) == 0)) {
      best = static_cast<uint8_t>(c);
      best_error = err;
    }
  }
  return sign | best;
}

template <class T>
T saturate(double v) {
  if (std::isnan(v)) return 0;
  constexpr auto lo = static_cast<double>(std::numeric_limits<T>::min());
  constexpr auto hi = static_cast<double>(std::numeric_limits<T>::max());
  if (v <= lo) return std::numeric_limits<T>::min();
  if (v >= hi) return std::numeric_limits<T>::max();
  return static_cast<T>(v);
}

template <class T>
struct Tag {
  using type = T;
};

template <class F>
void visit_plain(DType t, F f) {
  switch (t) {
    case DType::int8: f(Tag<int8_t>{}); break;
    case DType::int16: f(Tag<int16_t>{}); break;
    case DType::int32: f(Tag<int32_t>{}); break;
    case DType::int64: f(Tag<int64_t>{}); break;
    case DType::uint8: f(Tag<uint8_t>{}); break;
    case DType::uint16: f(Tag<uint16_t>{}); break;
    case DType::uint32: f(Tag<uint32_t>{}); break;
    case DType::uint64: f(Tag<uint64_t>{}); break;
    default: break;
  }
}

/// Element i of numbers of type T.
template <class T>
T load_as(const void* data, int64_t i) {
  return static_cast<const T*>(data)[i];
}

}  // namespace

double load_f64(DType dtype, const void* data, int64_t i) {
  switch (dtype) {
    case DType::fp32: return static_cast<double>(load_as<float>(data, i));
    case DType::fp16: return static_cast<double>(half::to_float(load_as<uint16_t>(data, i)));
    case DType::fp64: return load_as<double>(data, i);
    case DType::bf16: return static_cast<double>(static_cast<float>(load_as<bfloat16>(data, i)));
    case DType::fp8e4m3fn: return static_cast<double>(fp8_to_float(load_as<uint8_t>(data, i), 4, 7, false));
    case DType::fp8e5m2: return static_cast<double>(fp8_to_float(load_as<uint8_t>(data, i), 5, 15, true));
    case DType::uint64: return static_cast<double>(load_as<uint64_t>(data, i));
    default: return static_cast<double>(load_i64(dtype, data, i));
  }
}

int64_t load_i64(DType dtype, const void* data, int64_t i) {
  switch (dtype) {
    case DType::boolean: return load_as<uint8_t>(data, i) != 0;
    case DType::fp32:
    case DType::fp16:
    case DType::fp64:
    case DType::bf16:
    case DType::fp8e4m3fn:
    case DType::fp8e5m2: return saturate<int64_t>(load_f64(dtype, data, i));
    case DType::int4: {
      auto v = static_cast<int64_t>(load_packed(data, i, 4));
      return v >= 8 ? v - 16 : v;
    }
    case DType::uint1:
    case DType::uint2:
    case DType::uint3:
    case DType::uint4:
    case DType::uint6: return static_cast<int64_t>(load_packed(data, i, bits(dtype)));
    default: {
      int64_t v = 0;
      visit_plain(dtype, [&](auto tag) { v = static_cast<int64_t>(load_as<typename decltype(tag)::type>(data, i)); });
      return v;
    }
  }
}

void store_f64(const TensorView& t, int64_t i, double v) {
  switch (t.dtype) {
    case DType::fp32: t.as<float>()[i] = static_cast<float>(v); return;
    case DType::fp16: t.as<uint16_t>()[i] = half(v).bits; return;
    case DType::fp64: t.as<double>()[i] = v; return;
    case DType::bf16: t.as<bfloat16>()[i] = bfloat16(static_cast<float>(v)); return;
    case DType::fp8e4m3fn: t.as<uint8_t>()[i] = float_to_fp8(v, 4, 7, false); return;
    case DType::fp8e5m2: t.as<uint8_t>()[i] = float_to_fp8(v, 5, 15, true); return;
    case DType::boolean: t.as<uint8_t>()[i] = v != 0; return;
    case DType::int4:
      store_packed(t, i, 4, static_cast<uint64_t>(std::clamp(saturate<int64_t>(v), int64_t{-8}, int64_t{7})));
      return;
    case DType::uint1:
    case DType::uint2:
    case DType::uint3:
    case DType::uint4:
    case DType::uint6: {
      int64_t top = (int64_t{1} << bits(t.dtype)) - 1;
      store_packed(t, i, bits(t.dtype), static_cast<uint64_t>(std::clamp(saturate<int64_t>(v), int64_t{0}, top)));
      return;
    }
    default:
      visit_plain(t.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        t.as<T>()[i] = saturate<T>(v);
      });
  }
}

void store_i64(const TensorView& t, int64_t i, int64_t v) {
  if (t.dtype == DType::fp32) {
    t.as<float>()[i] = static_cast<float>(v);  // through double, large numbers would be rounded twice
  } else if (is_float(t.dtype)) {
    store_f64(t, i, static_cast<double>(v));
  } else if (t.dtype == DType::boolean) {
    t.as<uint8_t>()[i] = v != 0;
  } else if (is_sub_byte(t.dtype)) {
    store_packed(t, i, bits(t.dtype), static_cast<uint64_t>(v));
  } else {
    visit_plain(t.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      t.as<T>()[i] = static_cast<T>(v);
    });
  }
}

Result<Tensor> Tensor::allocate(DType dtype, const Shape& shape, std::shared_ptr<void> (*allocator)(size_t)) {
  size_t n = MOKA_TRY(storage_bytes(dtype, shape));
  Tensor t;
  t.dtype_ = dtype;
  t.shape_ = shape;
  t.size_ = n;
  if (dtype == DType::string) {
    auto v = std::make_shared<std::vector<std::string>>(n / sizeof(std::string));
    t.data_ = v->data();
    t.owner_ = v;
  } else {
    std::shared_ptr<void> memory = allocator(n);
    if (memory == nullptr)
      return fail(ErrorCode::out_of_budget, "no memory for ", n, " bytes of tensor<", dtype, ", ", shape, ">");
    t.data_ = memory.get();
    t.owner_ = std::move(memory);
  }
  return t;
}

Result<Tensor> Tensor::zeros(DType dtype, const Shape& shape) {
  return allocate(dtype, shape, [](size_t bytes) -> std::shared_ptr<void> { return allocate_zeros(bytes); });
}

Result<Tensor> Tensor::uninitialized(DType dtype, const Shape& shape) {
  return allocate(dtype, shape, [](size_t bytes) -> std::shared_ptr<void> { return allocate_large(bytes); });
}

Result<Tensor> Tensor::copy_of(const TensorView& view) {
  if (view.dtype == DType::string)
    return strings(view.shape, std::vector<std::string>(view.as<std::string>(), view.as<std::string>() + view.count()));
  Tensor out = MOKA_TRY(uninitialized(view.dtype, view.shape));
  copy_bytes(out.mutable_data(), view.data, out.bytes());
  return out;
}

Result<Tensor> Tensor::wrap(DType dtype, const Shape& shape, Bytes data) {
  if (dtype == DType::string || dtype == DType::none)
    return fail(ErrorCode::malformed, "bytes cannot hold a tensor of element type ", dtype);
  Tensor shared = MOKA_TRY(wrap_unaligned(dtype, shape, std::move(data)));
  size_t align = bits(dtype) >= 8 ? static_cast<size_t>(bits(dtype) / 8) : 1;
  if (shared.bytes() == 0 || reinterpret_cast<uintptr_t>(shared.data()) % align == 0) return shared;
  Tensor t = MOKA_TRY(zeros(dtype, shape));
  std::memcpy(t.mutable_data(), shared.data(), shared.bytes());
  return t;
}

Result<Tensor> Tensor::wrap_unaligned(DType dtype, const Shape& shape, Bytes data) {
  const size_t n = MOKA_TRY(storage_bytes(dtype, shape));
  if (data.size() < n)
    return fail(ErrorCode::malformed, "tensor<", dtype, ", ", shape, "> needs ", n, " bytes, got ", data.size());
  Tensor t;
  t.dtype_ = dtype;
  t.shape_ = shape;
  t.size_ = n;
  t.data_ = data.data();
  t.owner_ = data.owner;
  return t;
}

Tensor Tensor::strings(const Shape& shape, std::vector<std::string> values) {
  auto v = std::make_shared<std::vector<std::string>>(std::move(values));
  Tensor t;
  t.dtype_ = DType::string;
  t.shape_ = shape;
  t.size_ = v->size() * sizeof(std::string);
  t.data_ = v->data();
  t.owner_ = v;
  return t;
}

Tensor Tensor::scalar(DType dtype, double v) {
  Tensor t = zeros(dtype, {}).value();
  store_f64(t.view(), 0, v);
  return t;
}

Tensor Tensor::scalar_i64(DType dtype, int64_t v) {
  Tensor t = zeros(dtype, {}).value();
  store_i64(t.view(), 0, v);
  return t;
}

Tensor Tensor::text(std::string v) { return strings({}, {std::move(v)}); }
Tensor Tensor::boolean(bool v) { return scalar_i64(DType::boolean, v); }

Tensor Tensor::i32(std::span<const int64_t> values) {
  Tensor t = zeros(DType::int32, Shape{static_cast<int64_t>(values.size())}).value();
  for (size_t i = 0; i < values.size(); i++) t.mut<int32_t>()[i] = static_cast<int32_t>(values[i]);
  return t;
}
Tensor Tensor::i32(std::initializer_list<int64_t> values) {
  return i32(std::span<const int64_t>(values.begin(), values.size()));
}

Tensor Tensor::f32(const Shape& shape, std::span<const float> values) {
  Tensor t = zeros(DType::fp32, shape).value();
  std::copy(values.begin(), values.end(), t.mut<float>().begin());
  return t;
}

Tensor Tensor::reshaped(const Shape& shape) const {
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

bool Tensor::operator==(const Tensor& o) const {
  if (dtype_ != o.dtype_ || !(shape_ == o.shape_)) return false;
  if (dtype_ == DType::none || data_ == o.data_) return true;
  if (dtype_ == DType::string) {
    auto a = as<std::string>(), b = o.as<std::string>();
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  return size_ == o.size_ && (size_ == 0 || std::memcmp(data_, o.data_, size_) == 0);
}

Constant::Constant() = default;
Constant::Constant(Tensor t) : type(Type::tensor(t.dtype(), t.shape())), tensor(std::move(t)) {}
Constant::Constant(Type t, std::vector<Constant> p) : type(std::move(t)), parts(std::move(p)) {}
Constant::Constant(const Constant&) = default;
Constant::Constant(Constant&&) noexcept = default;
Constant& Constant::operator=(const Constant&) = default;
Constant& Constant::operator=(Constant&&) noexcept = default;
Constant::~Constant() = default;

bool Constant::operator==(const Constant& o) const { return type == o.type && tensor == o.tensor && parts == o.parts; }

void List::resize(size_t n) {
  for (size_t i = n; i < items_.size(); i++) set(i, {});
  items_.resize(n);
}

void List::reset(size_t n) {
  items_.assign(n, Tensor());
  bytes_ = 0;
}

void List::set(size_t i, Tensor item) {
  const auto bytes = [](const Tensor& t) { return t.empty_handle() ? 0 : t.bytes(); };
  bytes_ += bytes(item) - bytes(items_[i]);
  items_[i] = std::move(item);
}

}  // namespace moka::ir

template class std::vector<moka::ir::Constant>;
