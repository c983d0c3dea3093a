// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/lists.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

/// The first selected element that was written; nullptr: none was.
Result<const Tensor*> first_written(const OpCall& call, const List& list, const TensorView& indices) {
  for (int64_t i = 0; i < indices.count(); i++) {
    const size_t at = MOKA_TRY(index_in(call, load_i64(indices, i), list));
    if (!list[at].empty_handle()) return &list[at];
  }
  return nullptr;
}

Result<std::vector<Type>> infer_list_gather(const OpCall& call) {
  const Type list = MOKA_TRY(list_type(call));
  MOKA_TRY(expect_vector(call, "indices"));
  const int64_t n = length_of(call, "indices");
  Type element = has_element_type(list) ? list.element() : Type();
  const TensorView *ls = call.value("ls"), *indices = call.value("indices");
  if (ls != nullptr && ls->data != nullptr && indices != nullptr) {
    const Tensor* item = MOKA_TRY(first_written(call, ls->list(), *indices));
    if (item != nullptr)
      element = Type::tensor(item->dtype(), item->shape());
    else
      MOKA_TRY(check_known(call, indices->count() > 0 ? load_i64(*indices, 0) : 0));
  }
  if (!element.is_tensor()) return call.error("ls", "a list whose element type is known", cat(list));
  if (!element.is_ranked()) return one(element);
  if (element.rank() == kMaxRank) return call.error("ls", cat("elements of rank below ", kMaxRank), cat(element));
  Shape out = element.shape();
  out.insert(0, n);
  return tensor_result(call, element.dtype(), out);
}

Status list_gather_reference(const OpCall& call, std::span<const TensorView> out) {
  const List& list = call.in("ls").list();
  const TensorView& indices = call.in("indices");
  Shape element = out[0].shape;
  element.erase(0);
  const int64_t size = element.count();
  for (int64_t i = 0; i < indices.count(); i++) {
    const size_t at = MOKA_TRY(index_in(call, load_i64(indices, i), list));
    MOKA_TRY(copy_item(call, list[at], out[0], i * size, element));
  }
  return {};
}

}  // namespace

OpDef define_list_gather() {
  return OpBuilder("list_gather", "Some elements of a list as one tensor, along a new first axis.")
      .in_kind("ls", ParamKind::list)
      .in("indices", kI32)
      .infer(infer_list_gather)
      .reference(list_gather_reference)
      .note(kElementNote.text, kElementNote.evidence)
      .build();
}

}  // namespace moka::ops
