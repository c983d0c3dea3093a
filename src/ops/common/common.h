// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/op_def.h"

/// Type inference and loops shared by several families.
namespace moka::ops {

using namespace ir;

inline constexpr DTypes kF16F32 = any_of(DType::fp16, DType::fp32);
inline constexpr DTypes kI32 = only(DType::int32);

/// Infers one output with the type of parameter `param`.
InferFn same_as(std::string param = "x");

/// One output type, in the form that InferFn returns.
inline Result<std::vector<Type>> one(Type t) {
  std::vector<Type> v;
  v.push_back(std::move(t));
  return v;
}

/// The axis in parameter `param`, checked against the rank. Negative axes count from the end. Precondition: it is
/// known.
Result<int> axis_of(const OpCall& call, std::string_view param, int rank);
/// A list of axes, counted from the front, in the given order. Error: an axis occurs twice.
Result<Ints> axes_of(const OpCall& call, std::string_view param, int rank);

/// Calls fn(out_index, a_index, b_index) for each output element, in row-major order, with the offsets of the inputs'
/// elements. Shapes must broadcast to `out`.
void for_each_broadcast(const Shape& out, const Shape& a, const Shape& b,
                        const std::function<void(int64_t, int64_t, int64_t)>& fn);

/// Copies element `from` of `src` to element `to` of `dst`. Takes any dtype, also strings and types of less than a
/// byte.
void copy_element(const TensorView& dst, int64_t to, const TensorView& src, int64_t from);
/// Copies `n` consecutive elements.
void copy_elements(const TensorView& dst, int64_t to, const TensorView& src, int64_t from, int64_t n);

}  // namespace moka::ops
