// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "ops/common/blockwise.h"
#include "ops/common/common.h"
#include "ops/common/packed.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_constexpr_sparse_blockwise_shift_scale(const OpCall& call) {
  const Type &mask = call.type("data_mask"), &data = call.type("nonzero_data");
  if (!mask.is_concrete()) return call.error("data_mask", "a constant of known shape", cat(mask));
  if (!data.is_concrete() || data.rank() != 1) return call.error("nonzero_data", "a vector of known length", cat(data));
  MOKA_TRY(check_blockwise(call, mask.shape(), data.dtype()));
  return std::vector<Type>{mask, Type::tensor(call.dtype("scale"), data.shape())};
}

Status constexpr_sparse_blockwise_shift_scale_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &mask = call.in("data_mask"), &data = call.in("nonzero_data"), &scale = call.in("scale");
  const auto* set = mask.as<uint8_t>();
  const int64_t n = mask.count(), found = count_bits(set, 0, n);
  if (found != data.count())
    return call.error("data_mask", cat(data.count(), " set bits, one for each of nonzero_data"), cat(found));
  copy_all(out[0], mask);
  if (data.count() == 0) return {};
  std::vector<float> scales(static_cast<size_t>(scale.count())), offsets(scales.size());
  load_floats(scale, 0, scale.count(), scales.data());
  if (call.has("offset")) load_floats(call.in("offset"), 0, scale.count(), offsets.data());
  BlockRuns runs(mask.shape, scale.shape);
  int64_t next = 0;
  for (int64_t at = 0; at < n;) {
    const int64_t length = runs.left(), m = count_bits(set, at, length);
    const auto group = static_cast<size_t>(runs.group());
    BlockRuns same(Shape{std::max<int64_t>(m, 1)}, Shape{1});
    shift_and_scale(out[1], data, next, m, same, &scales[group], &offsets[group]);
    next += m;
    at += length;
    runs.advance(length);
  }
  return {};
}

}  // namespace

OpDef define_constexpr_sparse_blockwise_shift_scale() {
  return OpBuilder("constexpr_sparse_blockwise_shift_scale",
                   "The values of sparse weights as scale * (value - offset), with one scale and offset per block of "
                   "the dense "
                   "tensor; gives the mask and the values.",
                   Opset::ios18)
      .type_var("SrcT", kBlockwiseData)
      .type_var("DstT", kF16F32)
      .type_var("OffsetT", kBlockwiseData)
      .constant("data_mask", only(DType::uint1))
      .constant("nonzero_data", "SrcT")
      .constant("scale", "DstT")
      .constant("offset", "OffsetT")
      .optional()
      .infer(infer_constexpr_sparse_blockwise_shift_scale)
      .reference(constexpr_sparse_blockwise_shift_scale_reference)
      .traits(Trait::constexpr_weight)
      .note("Scale and offset are those of the block that holds the set bit in the dense tensor.",
            "coremltools' iOS18 test_compression.py, test_builder_eval_sparse_per_block")
      .note("Zeros outside of the mask stay zero with any offset.", "coremltools' definition")
      .build();
}

}  // namespace moka::ops
