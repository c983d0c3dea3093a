// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/lists.h"

namespace moka::ops {

namespace {

/// A written element determines the shape, which the list's type may leave unknown.
Result<std::vector<Type>> infer_list_read(const OpCall& call) {
  const Type list = MOKA_TRY(list_type(call));
  if (const TensorView* ls = call.value("ls"); ls != nullptr && ls->data != nullptr && call.is_known("index")) {
    const size_t at = MOKA_TRY(index_in(call, MOKA_TRY(call.integer("index")), ls->list()));
    const Tensor& item = ls->list()[at];
    if (!item.empty_handle()) return one(Type::tensor(item.dtype(), item.shape()));
    MOKA_TRY(check_known(call, static_cast<int64_t>(at)));
  }
  if (!has_element_type(list)) return call.error("ls", "a list whose element type is known", cat(list));
  return one(list.element());
}

Status list_read_reference(const OpCall& call, std::span<const TensorView> out) {
  const List& list = call.in("ls").list();
  const size_t at = MOKA_TRY(index_in(call, MOKA_TRY(call.integer("index")), list));
  return copy_item(call, list[at], out[0], 0, out[0].shape);
}

}  // namespace

OpDef define_list_read() {
  return OpBuilder("list_read", "One element of a list; zeros if it was never written.")
      .in_kind("ls", ParamKind::list)
      .in("index", kI32)
      .infer(infer_list_read)
      .reference(list_read_reference)
      .note(kElementNote.text, kElementNote.evidence)
      .build();
}

}  // namespace moka::ops
