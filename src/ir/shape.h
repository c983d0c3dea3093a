// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace moka::ir {

inline constexpr int kMaxRank = 8;
/// An unknown dimension. Smaller numbers are symbols of the program: equal symbols stand for equal sizes.
inline constexpr int64_t kAnyDim = -1;

/// Up to kMaxRank dimensions, each a size (>= 0), kAnyDim, or a symbol (< kAnyDim). Never allocates.
class Shape {
 public:
  Shape() = default;
  /// Precondition: at most kMaxRank dimensions. Use `make` when a file determines the number.
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(std::span<const int64_t> dims);
  /// Error unsupported when there are more than kMaxRank dimensions.
  static Result<Shape> make(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return dims_[static_cast<size_t>(i)]; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  std::vector<int64_t> to_vector() const { return {begin(), end()}; }

  /// Precondition: rank() < kMaxRank.
  void push_back(int64_t d) { dims_[static_cast<size_t>(rank_++)] = d; }
  void insert(int at, int64_t d);
  void erase(int at);

  bool is_concrete() const;
  /// Product of the dimensions. Precondition: concrete and checked (see `checked_count`).
  int64_t count() const;
  /// Product of dims [from, to). Precondition: concrete and checked.
  int64_t count(int from, int to) const;
  /// Errors: unsupported when not concrete or when the product does not fit in 62 bits.
  Result<int64_t> checked_count() const;
  /// Row-major strides in elements; unused entries are 0.
  std::array<int64_t, kMaxRank> strides() const;

  bool operator==(const Shape& o) const;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

/// "[1, 3, ?, 224]". Symbols also print as '?', because MIL text has no names for them.
void append_to(std::string& out, const Shape& s);

/// NumPy broadcasting over sizes and symbols; kAnyDim where the result is unknown. The error names both shapes.
Result<Shape> broadcast(const Shape& a, const Shape& b);
/// Maps -rank..rank-1 to 0..rank-1. The error states the allowed range.
Result<int> normalize_axis(int64_t axis, int rank, std::string_view what = "axis");

}  // namespace moka::ir
