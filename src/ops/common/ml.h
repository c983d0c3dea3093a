// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <string_view>

#include "ops/common/common.h"

/// Helpers for the operations of classic models, which compute in double on vectors of double.
namespace moka::ops::ml {

inline constexpr DTypes kF64 = only(DType::fp64);
inline constexpr DTypes kI64 = only(DType::int64);
inline constexpr DTypes kKeys = any_of(DType::string, DType::int64);
inline constexpr DTypes kNumeric = kNumbers | kBool;

/// The standard normal distribution function.
inline double normal_cdf(double v) { return 0.5 * std::erfc(-v / std::numbers::sqrt2); }

/// Starts an operation that exists in every opset.
OpBuilder define(std::string name, std::string doc);

/// Whether the operation's constant `rows` is set: the first axis of x then counts rows, which are computed separately.
Result<bool> has_rows(const OpCall& call);
/// x as `count` rows of `length` elements; a single row unless `rows` is set.
struct Rows {
  int64_t count = 1, length = 0;
};
Result<Rows> rows_of(const OpCall& call, const TensorView& x);
/// The type of x without its rows. Error: `rows` is set, and x has no axis.
Result<Type> row_type(const OpCall& call, std::string_view param);

/// Element count of a tensor type; -1: a dimension is unknown.
int64_t count_of(const Type& t);
inline Type vector_of(DType t, int64_t n) { return Type::tensor(t, Shape{n}); }
/// A vector of n elements, for each row of x where `rows` is set.
Result<Type> vectors_of(const OpCall& call, DType t, int64_t n);
/// dict<tensor<string or int64, []>, tensor<fp64, []>>.
Type dict_of(bool string_keys);
inline bool has_string_keys(const Type& dict) { return dict.element(0).dtype() == DType::string; }

/// The known count of elements of a constant vector. Error unless it has rank 1.
Result<int64_t> vector_length(const OpCall& call, std::string_view param);
/// Error unless the constant vector has `expected` elements.
Status check_length(const OpCall& call, std::string_view param, int64_t expected);
/// Error unless parameter `x`, or each of its rows, is a tensor of `expected` elements or of unknown count.
Status check_count(const OpCall& call, std::string_view param, int64_t expected);

template <class T>
std::span<const T> span_of(const TensorView& t) {
  return {t.as<T>(), static_cast<size_t>(t.count())};
}

/// Index of `key` in the ascending `keys`; the first one if several are equal; -1: absent.
template <class T, class K>
int64_t find_sorted(std::span<const T> keys, const K& key) {
  auto it = std::lower_bound(keys.begin(), keys.end(), key);
  return it == keys.end() || *it != key ? -1 : it - keys.begin();
}
/// The same for element `i` of `x`, a string or an int64.
int64_t find_sorted(const TensorView& keys, const TensorView& x, int64_t i);
/// Error unless the constant vector of strings or int64 is ascending.
Status check_sorted(const OpCall& call, std::string_view param);

/// Clears a dictionary and sets the type of its keys.
void clear(Dict& dict, bool string_keys);
/// Copies one key, an element of a string or int64 tensor, and its value.
void append(Dict& dict, const TensorView& keys, int64_t i, double value);

}  // namespace moka::ops::ml
