// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/lists.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_list_write(const OpCall& call) {
  const Type list = MOKA_TRY(list_type(call));
  return one(MOKA_TRY(list_with_element(call, list, call.type("value"))));
}

Status list_write_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& value = call.in("value");
  List& list = copy_list(out[0], call.in("ls"));
  const size_t at = MOKA_TRY(make_room(call, MOKA_TRY(call.integer("index")), list));
  Tensor item = MOKA_TRY(Tensor::zeros(value.dtype, value.shape));
  copy_all(item.view(), value);
  list.set(at, std::move(item));
  return {};
}

}  // namespace

OpDef define_list_write() {
  return OpBuilder("list_write", "The list with one element replaced.")
      .type_var("T", kPlain15)
      .in_kind("ls", ParamKind::list)
      .in("index", kI32)
      .in("value", "T")
      .infer(infer_list_write)
      .reference(list_write_reference)
      .note(
          "The list is a value, so readers of the former list do not see the change. Elements may have different "
          "shapes.",
          "SSA; tf.TensorArray with element_shape unknown")
      .build();
}

}  // namespace moka::ops
