// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <limits>

#include "io/io_error.h"
#include "io/npy.h"

namespace moka::io {
namespace {

struct TypeFacts {
  std::string_view name;
  size_t size;
};

TypeFacts facts(ElementType type) {
  switch (type) {
    case ElementType::boolean: return {"bool", 1};
    case ElementType::int8: return {"int8", 1};
    case ElementType::uint8: return {"uint8", 1};
    case ElementType::int16: return {"int16", 2};
    case ElementType::uint16: return {"uint16", 2};
    case ElementType::int32: return {"int32", 4};
    case ElementType::uint32: return {"uint32", 4};
    case ElementType::int64: return {"int64", 8};
    case ElementType::uint64: return {"uint64", 8};
    case ElementType::float16: return {"float16", 2};
    case ElementType::float32: return {"float32", 4};
    case ElementType::float64: return {"float64", 8};
    case ElementType::text: return {"text", 0};
  }
  return {"unknown", 0};
}

double half_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  double magnitude;
  if (exponent == 31) {
    magnitude = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else {
    magnitude = std::ldexp(1024 + fraction, exponent - 25);
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

template <typename T>
std::vector<double> widen(const Array& array) {
  auto values = array.as<T>();
  return {values.begin(), values.end()};
}

}  // namespace

size_t element_size(ElementType type) { return facts(type).size; }
std::string_view element_name(ElementType type) { return facts(type).name; }

size_t Array::count() const { return type == ElementType::text ? texts.size() : bytes.size() / element_size(type); }

void Array::require(ElementType wanted) const {
  if (type != wanted) fail("array", "expected ", element_name(wanted), " elements, got ", element_name(type));
}

void Array::require_consistent() const {
  size_t product = 1;
  for (size_t dimension : shape) {
    if (__builtin_mul_overflow(product, dimension, &product)) fail("array", "its shape overflows");
  }
  if (product != count()) fail("array", "expected ", product, " elements for its shape, got ", count());
}

Array Array::of_texts(std::vector<size_t> shape, std::vector<std::string> texts) {
  Array array{ElementType::text, std::move(shape), {}, std::move(texts)};
  array.require_consistent();
  return array;
}

std::vector<double> Array::to_doubles() const {
  switch (type) {
    case ElementType::boolean: return widen<bool>(*this);
    case ElementType::int8: return widen<int8_t>(*this);
    case ElementType::uint8: return widen<uint8_t>(*this);
    case ElementType::int16: return widen<int16_t>(*this);
    case ElementType::uint16: return widen<uint16_t>(*this);
    case ElementType::int32: return widen<int32_t>(*this);
    case ElementType::uint32: return widen<uint32_t>(*this);
    case ElementType::int64: return widen<int64_t>(*this);
    case ElementType::uint64: return widen<uint64_t>(*this);
    case ElementType::float32: return widen<float>(*this);
    case ElementType::float64: return widen<double>(*this);
    case ElementType::float16: {
      std::vector<double> result;
      for (Float16 h : as<Float16>()) result.push_back(half_value(h.bits));
      return result;
    }
    case ElementType::text: break;
  }
  fail("array", "expected numbers, got text");
}

}  // namespace moka::io
