// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "moka/error.h"

namespace moka {

/// Element types of multi-arrays. boolean: one byte, 0 or 1.
enum class DataType : uint8_t {
  float16,
  float32,
  float64,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  boolean
};

MOKA_EXPORT std::string_view to_string(DataType type);  ///< "float32"
MOKA_EXPORT size_t size_of(DataType type);              ///< size of one element in bytes

/// The element types that a C++ type stands for, a bit for each: uint8_t is also boolean, and uint16_t also float16.
template <class Element>
constexpr uint32_t element_types() {
  using T = std::remove_const_t<Element>;
  constexpr auto bit = [](DataType t) { return uint32_t{1} << static_cast<int>(t); };
  if constexpr (std::is_same_v<T, float>) return bit(DataType::float32);
  if constexpr (std::is_same_v<T, double>) return bit(DataType::float64);
  if constexpr (std::is_same_v<T, bool>) return bit(DataType::boolean);
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if constexpr (sizeof(T) == 1)
      return std::is_signed_v<T> ? bit(DataType::int8) : bit(DataType::uint8) | bit(DataType::boolean);
    if constexpr (sizeof(T) == 2)
      return std::is_signed_v<T> ? bit(DataType::int16) : bit(DataType::uint16) | bit(DataType::float16);
    if constexpr (sizeof(T) == 4) return bit(std::is_signed_v<T> ? DataType::int32 : DataType::uint32);
    if constexpr (sizeof(T) == 8) return bit(std::is_signed_v<T> ? DataType::int64 : DataType::uint64);
  }
  static_assert(std::is_arithmetic_v<T>, "the elements of arrays are numbers");
  return 0;
}
/// Throws invalid_argument: elements of `type` were asked for as another C++ type.
[[noreturn]] MOKA_EXPORT void refuse_element_type(DataType type);
/// Throws invalid_argument unless T is a C++ type of these elements.
template <class T>
void check_element_type(DataType type) {
  if ((element_types<T>() >> static_cast<int>(type) & 1) == 0) refuse_element_type(type);
}

/// Where the element of an array is, in elements. Throws invalid_argument (the number of indices, their range).
MOKA_EXPORT int64_t offset_of(std::span<const int64_t> indices, std::span<const int64_t> shape,
                              std::span<const int64_t> strides);

/// Elements of an array that outlives the view: `view(row, column)`.
template <class T>
class StridedView {
 public:
  StridedView(T* data, std::span<const int64_t> shape, std::span<const int64_t> strides)
      : data_(data), shape_(shape), strides_(strides) {}
  std::span<const int64_t> shape() const { return shape_; }
  std::span<const int64_t> strides() const { return strides_; }  ///< in elements
  /// Throws invalid_argument when their number is not that of the dimensions, or one is out of range.
  T& operator()(std::span<const int64_t> indices) const { return data_[offset_of(indices, shape_, strides_)]; }
  template <class... I>
  requires(std::is_integral_v<I>&&...) T& operator()(I... indices) const {
    const int64_t all[] = {static_cast<int64_t>(indices)..., 0};
    return (*this)(std::span(all, sizeof...(I)));
  }

 private:
  T* data_;
  std::span<const int64_t> shape_, strides_;
};

/// Core ML's MLMultiArray: an n-dimensional array, owned or borrowed. Copies share the elements.
class MOKA_EXPORT MultiArray {
 public:
  MultiArray() = default;
  /// Owned, zero-filled, row-major. Throws invalid_argument (negative or too many dimensions).
  MultiArray(DataType type, std::vector<int64_t> shape);
  /// Borrows `data`, which must outlive the array and every prediction that uses it. `strides` count elements; empty
  /// means row-major.
  MultiArray(void* data, DataType type, std::vector<int64_t> shape, std::vector<int64_t> strides = {});
  /// As above. The array keeps `owner` alive.
  MultiArray(void* data, DataType type, std::vector<int64_t> shape, std::vector<int64_t> strides,
             std::shared_ptr<const void> owner);
  /// An owned copy of float32 values. Throws invalid_argument when the count differs from the shape's.
  static MultiArray of(std::span<const float> values, std::vector<int64_t> shape);

  DataType type() const { return type_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  const std::vector<int64_t>& strides() const { return strides_; }  ///< in elements
  int64_t count() const { return count_; }
  bool is_contiguous() const { return contiguous_; }
  void* data() { return data_; }
  const void* data() const { return data_; }
  /// The elements in row-major order. T is the C++ type of `type()`: float for float32, uint8_t or bool for boolean,
  /// and for float16 uint16_t, its bits. Throws invalid_argument for another T, and where the strides are not
  /// row-major: `view` takes these.
  template <class T>
  std::span<T> as() {
    check_element_type<T>(type_);
    check_row_major();
    return {static_cast<T*>(data_), static_cast<size_t>(count_)};
  }
  template <class T>
  std::span<const T> as() const {
    check_element_type<T>(type_);
    check_row_major();
    return {static_cast<const T*>(data_), static_cast<size_t>(count_)};
  }
  /// The elements by their indices, of any strides. Throws invalid_argument as `as` does for T.
  template <class T>
  StridedView<T> view() {
    check_element_type<T>(type_);
    return {static_cast<T*>(data_), shape_, strides_};
  }
  template <class T>
  StridedView<const T> view() const {
    check_element_type<T>(type_);
    return {static_cast<const T*>(data_), shape_, strides_};
  }
  /// Element `i` in row-major order of the shape, converted to double. Throws invalid_argument when out of range.
  double at(int64_t i) const;
  /// A row-major copy with elements of another type. Floats that become integers lose their fraction and saturate;
  /// integers wrap to narrower types.
  MultiArray converted(DataType type) const;

 private:
  void check_row_major() const;

  DataType type_ = DataType::float32;
  bool contiguous_ = true;
  int64_t count_ = 0;
  std::vector<int64_t> shape_, strides_;
  void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

}  // namespace moka
