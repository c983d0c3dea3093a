// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ir/op_def.h"

/// Helpers for type inference of data movement: element types, arithmetic with unknown dimensions, changes between
/// versions of an operation.
namespace moka::ops {

using namespace ir;

/// Element types of general tensors: until iOS16, and since iOS17.
inline constexpr DTypes kPlain15 = any_of(DType::fp16, DType::fp32, DType::int32, DType::boolean);
inline constexpr DTypes kPlain17 = kPlain15 | any_of(DType::int8, DType::int16, DType::uint8, DType::uint16);
/// The same without booleans.
inline constexpr DTypes kNumbers15 = any_of(DType::fp16, DType::fp32, DType::int32);
inline constexpr DTypes kNumbers17 = kNumbers15 | any_of(DType::int8, DType::int16, DType::uint8, DType::uint16);
/// Element types of shapes and sizes since iOS17.
inline constexpr DTypes kSizes17 = any_of(DType::int8, DType::int16, DType::int32);

/// Error: the number of elements of a result overflows.
Status expect_countable(const OpCall& call, const Shape& shape);
/// One output of this type. Error: the number of elements overflows.
Result<std::vector<Type>> tensor_result(const OpCall& call, DType dtype, const Shape& shape);

/// Products and sums of dimensions; kAnyDim where unknown. Errors: overflow.
Result<int64_t> multiply_dims(int64_t a, int64_t b);
Result<int64_t> add_dims(int64_t a, int64_t b);
Result<int64_t> product_of_dims(const Shape& s, int from, int to);
/// The quotient, rounded down. An unknown dimension becomes kAnyDim unless `by` is 1.
int64_t divide_dim(int64_t a, int64_t by);
/// Of two dimensions that must be equal, the more specific one. False: they are known to differ.
bool unify_dim(int64_t a, int64_t b, int64_t& out);
bool is_compatible(const Shape& a, const Shape& b);

/// A non-negative size that could be a dimension. Error: negative or huge.
Result<int64_t> dim_from_value(const OpCall& call, std::string_view param, int64_t v);

/// The parameter axis, from 0 to `rank`, of an operation that inserts an axis into a tensor of this rank. Error: out of
/// range.
Result<int> new_axis_of(const OpCall& call, std::string_view param, int rank);

/// Checks that a parameter is a vector; its length may be unknown.
Status expect_vector(const OpCall& call, std::string_view param);
/// Length of a vector parameter; kAnyDim: unknown. Precondition: expect_vector().
int64_t length_of(const OpCall& call, std::string_view param);

/// Changes the element types of a parameter to `dtypes` in a newer version, with the type variable `type_var`.
void retype(OpVersion& v, std::string_view param, std::string type_var, DTypes dtypes);
/// Adds an optional constant parameter to a newer version.
void add_constant(OpVersion& v, std::string name, DTypes dtypes, Constant default_value);

}  // namespace moka::ops
