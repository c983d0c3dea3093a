// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/lists.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_list_length(const OpCall& call) {
  MOKA_TRY(list_type(call));
  return one(Type::scalar(DType::int32));
}

Status list_length_reference(const OpCall& call, std::span<const TensorView> out) {
  store_i64(out[0], 0, static_cast<int64_t>(call.in("ls").list().size()));
  return {};
}

}  // namespace

OpDef define_list_length() {
  return OpBuilder("list_length", "The number of elements of a list.")
      .in_kind("ls", ParamKind::list)
      .infer(infer_list_length)
      .reference(list_length_reference)
      .note("For a list of dynamic length this is its current length.", "coremltools' definition")
      .build();
}

}  // namespace moka::ops
