// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/lists.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_list_scatter(const OpCall& call) {
  const Type list = MOKA_TRY(list_type(call));
  const Type& value = call.type("value");
  MOKA_TRY(expect_vector(call, "indices"));
  if (!value.is_ranked()) return one(list);
  if (value.rank() < 1) return call.error("value", "rank 1 or more", "a scalar");
  int64_t n = 0;
  if (!unify_dim(value.shape()[0], length_of(call, "indices"), n)) {
    return call.error("value", cat(length_of(call, "indices"), " elements, one for each index"), cat(value));
  }
  Shape element = value.shape();
  element.erase(0);
  return one(MOKA_TRY(list_with_element(call, list, Type::tensor(value.dtype(), element))));
}

/// The new elements share one block of storage.
Status list_scatter_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &value = call.in("value"), &indices = call.in("indices");
  List& list = copy_list(out[0], call.in("ls"));
  Shape shape = value.shape;
  shape.erase(0);
  const int64_t n = indices.count(), size = shape.count();
  Tensor block;
  const bool shared = value.dtype != DType::string && !is_sub_byte(value.dtype);
  if (shared) {
    block = MOKA_TRY(Tensor::zeros(value.dtype, value.shape));
    copy_elements(block.view(), 0, value, 0, n * size);
  }
  const size_t bytes = n > 0 ? block.bytes() / static_cast<size_t>(n) : 0;
  for (int64_t i = 0; i < n; i++) {
    const size_t at = MOKA_TRY(make_room(call, load_i64(indices, i), list));
    if (shared) {
      const auto* data = static_cast<const std::byte*>(block.data()) + static_cast<size_t>(i) * bytes;
      list.set(at, MOKA_TRY(Tensor::wrap(value.dtype, shape, Bytes{{data, bytes}, block.owner()})));
    } else {
      Tensor item = MOKA_TRY(Tensor::zeros(value.dtype, shape));
      copy_elements(item.view(), 0, value, i * size, size);
      list.set(at, std::move(item));
    }
  }
  return {};
}

}  // namespace

OpDef define_list_scatter() {
  return OpBuilder("list_scatter", "The list with elements replaced by the slices of a tensor along its first axis.")
      .type_var("T", kPlain15)
      .in_kind("ls", ParamKind::list)
      .in("indices", kI32)
      .in("value", "T")
      .infer(infer_list_scatter)
      .reference(list_scatter_reference)
      .note("Of equal indices the last wins. Indices beyond the end grow a list of dynamic length.",
            "tf.TensorArray.scatter in order")
      .build();
}

}  // namespace moka::ops
