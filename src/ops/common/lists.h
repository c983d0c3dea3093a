#pragma once

#include "ops/common/common.h"

/// Run-time lists of tensors.
namespace moka::ops {

/// A list is never made longer than this.
inline constexpr int64_t kMaxListLength = int64_t{1} << 20;

/// The list type of parameter `ls`. Error: not a list.
Result<Type> list_type(const OpCall& call);
/// Whether the element type of a list is stated: lists may be made before it is known.
bool has_element_type(const Type& list);
/// Checks that a value of type `value` may be an element of `list`; the list's type afterwards.
Result<Type> list_with_element(const OpCall& call, const Type& list, const Type& value);
/// An index below the list's length. Error data.
Result<size_t> index_in(const OpCall& call, int64_t index, const List& list);
/// Makes room for `index` where the list's type says that it may grow. Error data.
Result<size_t> make_room(const OpCall& call, int64_t index, List& list);
/// Error data where element `index` was never written and the list's type leaves its shape open.
Status check_known(const OpCall& call, int64_t index);
/// `out` becomes a list of the same elements.
List& copy_list(const TensorView& out, const TensorView& in);
/// Copies an element of type `element` to places [at, at + element count) of `out`: zeros if it was never written.
Status copy_item(const OpCall& call, const Tensor& item, const TensorView& out, int64_t at, const Shape& shape);

}  // namespace moka::ops
