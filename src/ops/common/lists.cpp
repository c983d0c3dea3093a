// SPDX-License-Identifier: Apache-2.0
#include "ops/common/lists.h"

#include "ir/program.h"
#include "ops/common/strided.h"

namespace moka::ops {

Result<Type> list_type(const OpCall& call) {
  const Type& t = call.type("ls");
  if (!t.is_list()) return call.error("ls", "a list", cat(t));
  return t;
}

bool has_element_type(const Type& list) {
  return !list.elements().empty() && list.element().is_tensor() && list.element().dtype() != DType::none;
}

Result<Type> list_with_element(const OpCall& call, const Type& list, const Type& value) {
  if (!has_element_type(list)) return Type::list(value, list.length());
  if (!is_compatible(value, list.element()))
    return call.error("value", cat(list.element(), ", the elements' type"), cat(value));
  return list;
}

Result<size_t> index_in(const OpCall& call, int64_t index, const List& list) {
  const auto n = static_cast<int64_t>(list.size());
  if (index < 0 || index >= n) {
    return fail(ErrorCode::data, "operation '", call.name(), "' (", call.version().def->name, "): index ", index,
                " is outside of a list of length ", n);
  }
  return static_cast<size_t>(index);
}

Result<size_t> make_room(const OpCall& call, int64_t index, List& list) {
  const auto n = static_cast<int64_t>(list.size());
  // At run time the type may hold the current length. Only the program's type shows whether the length is fixed.
  const Value* declared = call.op != nullptr ? call.op->input("ls") : nullptr;
  const bool may_grow = call.type("ls").length() < 0 || (declared != nullptr && declared->type.length() < 0);
  if (index >= n && index < kMaxListLength && may_grow) list.resize(static_cast<size_t>(index + 1));
  return index_in(call, index, list);
}

Status check_known(const OpCall& call, int64_t index) {
  const Type& list = call.type("ls");
  if (has_element_type(list) && list.element().is_concrete()) return {};
  return fail(ErrorCode::data, "operation '", call.name(), "' (", call.version().def->name, "): element ", index,
              " of ", list, " was never written, so its shape is not known");
}

List& copy_list(const TensorView& out, const TensorView& in) {
  List& to = out.list();
  if (out.data != in.data) to = in.list();
  return to;
}

Status copy_item(const OpCall& call, const Tensor& item, const TensorView& out, int64_t at, const Shape& shape) {
  const int64_t n = shape.count();
  if (item.empty_handle()) {
    zero_elements(out, at, n);
    return {};
  }
  if (item.dtype() != out.dtype || !(item.shape() == shape)) {
    return fail(ErrorCode::data, "operation '", call.name(), "' (", call.version().def->name,
                "): expected an element of type tensor<", out.dtype, ", ", shape, ">, the list holds tensor<",
                item.dtype(), ", ", item.shape(), ">");
  }
  copy_elements(out, at, item.view(), 0, n);
  return {};
}

}  // namespace moka::ops
