// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/common/common.h"

/// Lists of tensors at run time.
namespace moka::ops {

/// The greatest length of a list.
inline constexpr int64_t kMaxListLength = int64_t{1} << 20;

/// The list type of parameter `ls`. Error: not a list.
Result<Type> list_type(const OpCall& call);
/// Whether the element type of a list is known. A list may be created before its element type is known.
bool has_element_type(const Type& list);
/// Checks that a value of type `value` may be an element of `list`. Returns the list's type afterwards.
Result<Type> list_with_element(const OpCall& call, const Type& list, const Type& value);
/// Checks that the index is below the list's length. Error: data.
Result<size_t> index_in(const OpCall& call, int64_t index, const List& list);
/// Grows the list to hold `index` if its type allows that. Error: data.
Result<size_t> make_room(const OpCall& call, int64_t index, List& list);
/// Error data if element `index` was never written and the list's type does not specify its shape.
Status check_known(const OpCall& call, int64_t index);
/// Makes `out` a list of the same elements.
List& copy_list(const TensorView& out, const TensorView& in);
/// Copies a list element of type `element` to elements [at, at + its count) of `out`, or zeros if it was never written.
Status copy_item(const OpCall& call, const Tensor& item, const TensorView& out, int64_t at, const Shape& shape);

inline constexpr ir::Note kElementNote{
    "An element that was never written reads as zeros of the list's element type. An index outside is an error.",
    "tf.TensorArray"};

}  // namespace moka::ops
