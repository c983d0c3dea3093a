#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
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
  template <class T>
  std::span<T> as() {
    return {static_cast<T*>(data_), static_cast<size_t>(count_)};
  }
  template <class T>
  std::span<const T> as() const {
    return {static_cast<const T*>(data_), static_cast<size_t>(count_)};
  }
  /// Element `i` in row-major order of the shape, converted to double. Throws invalid_argument when out of range.
  double at(int64_t i) const;
  /// A row-major copy with elements of another type. Floats that become integers lose their fraction and saturate;
  /// integers wrap to narrower types.
  MultiArray converted(DataType type) const;

 private:
  DataType type_ = DataType::float32;
  bool contiguous_ = true;
  int64_t count_ = 0;
  std::vector<int64_t> shape_, strides_;
  void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

}  // namespace moka
