#pragma once

#include "ir/op_def.h"

/// Inference and loops that several families share.
namespace moka::ops {

using namespace ir;

inline constexpr DTypes kF16F32 = any_of(DType::fp16, DType::fp32);
inline constexpr DTypes kI32 = only(DType::int32);

/// One output, typed as parameter `param` (default "x").
InferFn same_as(std::string param = "x");

/// A result, in the form InferFn wants it.
inline Result<std::vector<Type>> one(Type t) {
  std::vector<Type> v;
  v.push_back(std::move(t));
  return v;
}

/// The axis parameter, negative values counted from the end, checked against the rank. Precondition: known.
Result<int> axis_of(const OpCall& call, std::string_view param, int rank);
/// A list of axes, normalised, each at most once, in the given order.
Result<Ints> axes_of(const OpCall& call, std::string_view param, int rank);

/// Walks a broadcast: element offsets of up to two inputs for each output element in row-major order.
/// `fn(out_index, a_index, b_index)`. Shapes must broadcast to `out`.
void for_each_broadcast(const Shape& out, const Shape& a, const Shape& b,
                        const std::function<void(int64_t, int64_t, int64_t)>& fn);

/// Copies element `from` of `src` to element `to` of `dst`; any dtype, strings and sub-byte types included.
void copy_element(const TensorView& dst, int64_t to, const TensorView& src, int64_t from);
/// Copies `n` consecutive elements.
void copy_elements(const TensorView& dst, int64_t to, const TensorView& src, int64_t from, int64_t n);

}  // namespace moka::ops
