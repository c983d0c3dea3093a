// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "io/file.h"

namespace moka::io {

/// numpy's dtype. `text` covers '<U', '>U' and '|S'.
enum class ElementType {
  boolean,
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  float32,
  float64,
  text
};

/// Bytes of one element; 0 for text.
size_t element_size(ElementType type);
/// "float32", "bool", "text", ...
std::string_view element_name(ElementType type);

/// IEEE binary16, stored as its bits.
struct Float16 {
  uint16_t bits = 0;
};

/// A numpy array in C order and the machine's byte order. Numbers are in `bytes`, strings (UTF-8) in `texts`.
struct Array {
  ElementType type = ElementType::float32;
  std::vector<size_t> shape;
  Bytes bytes;
  std::vector<std::string> texts;

  size_t count() const;

  /// The elements as T. Throws IoError when T is not this array's type.
  template <typename T>
  std::span<const T> as() const {
    require(type_of<T>());
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  /// Every number converted to double; throws IoError for text.
  std::vector<double> to_doubles() const;

  template <typename T>
  static Array of(std::vector<size_t> shape, std::span<const T> values) {
    Array array{type_of<T>(), std::move(shape), {}, {}};
    auto raw = std::as_bytes(values);
    array.bytes.assign(raw.begin(), raw.end());
    array.require_consistent();
    return array;
  }
  template <typename T>
  static Array of(std::vector<size_t> shape, const std::vector<T>& values) {
    return of(std::move(shape), std::span<const T>(values));
  }
  static Array of_texts(std::vector<size_t> shape, std::vector<std::string> texts);

  template <typename T>
  static constexpr ElementType type_of() {
    if constexpr (std::is_same_v<T, bool>)
      return ElementType::boolean;
    else if constexpr (std::is_same_v<T, int8_t>)
      return ElementType::int8;
    else if constexpr (std::is_same_v<T, uint8_t>)
      return ElementType::uint8;
    else if constexpr (std::is_same_v<T, int16_t>)
      return ElementType::int16;
    else if constexpr (std::is_same_v<T, uint16_t>)
      return ElementType::uint16;
    else if constexpr (std::is_same_v<T, int32_t>)
      return ElementType::int32;
    else if constexpr (std::is_same_v<T, uint32_t>)
      return ElementType::uint32;
    else if constexpr (std::is_same_v<T, int64_t>)
      return ElementType::int64;
    else if constexpr (std::is_same_v<T, uint64_t>)
      return ElementType::uint64;
    else if constexpr (std::is_same_v<T, Float16>)
      return ElementType::float16;
    else if constexpr (std::is_same_v<T, float>)
      return ElementType::float32;
    else {
      static_assert(std::is_same_v<T, double>, "no numpy type for this");
      return ElementType::float64;
    }
  }

  /// Throws IoError when the number of elements differs from the product of the shape.
  void require_consistent() const;

 private:
  void require(ElementType wanted) const;
};

struct NamedArray {
  std::string name;
  Array array;
};

/// Parses .npy: format versions 1 to 3, either byte order, C or Fortran order. `name` is used in messages. Throws
/// IoError for malformed files, and for structured, complex, object and date types.
Array parse_npy(std::span<const std::byte> bytes, std::string_view name);
Array read_npy(const std::filesystem::path& path);

/// Writes version 1 (2 if the header is long) in C order, little-endian; text as '<U'.
Bytes encode_npy(const Array& array);
void write_npy(const std::filesystem::path& path, const Array& array);

/// Parses .npz: the arrays in the order of the archive, with names without ".npy". Skips members that are not .npy.
std::vector<NamedArray> parse_npz(std::span<const std::byte> bytes, std::string_view name);
std::vector<NamedArray> read_npz(const std::filesystem::path& path);
/// Writes .npz without compression, as numpy.savez does.
Bytes encode_npz(std::span<const NamedArray> arrays);
void write_npz(const std::filesystem::path& path, std::span<const NamedArray> arrays);

}  // namespace moka::io
