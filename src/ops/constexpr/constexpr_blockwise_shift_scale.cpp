// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/common/blockwise.h"
#include "ops/common/common.h"
#include "ops/common/packed.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_constexpr_blockwise_shift_scale(const OpCall& call) {
  const Type& data = call.type("data");
  if (!data.is_concrete()) return call.error("data", "a constant of known shape", cat(data));
  MOKA_TRY(check_blockwise(call, data.shape(), data.dtype()));
  return one(Type::tensor(call.dtype("scale"), data.shape()));
}

Status constexpr_blockwise_shift_scale_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &data = call.in("data"), &scale = call.in("scale");
  if (data.count() == 0) return {};
  std::vector<float> scales(static_cast<size_t>(scale.count())), offsets;
  load_floats(scale, 0, scale.count(), scales.data());
  if (call.has("offset")) {
    offsets.resize(scales.size());
    load_floats(call.in("offset"), 0, scale.count(), offsets.data());
  }
  BlockRuns runs(data.shape, scale.shape);
  shift_and_scale(out[0], data, 0, data.count(), runs, scales.data(), offsets.empty() ? nullptr : offsets.data());
  return {};
}

}  // namespace

OpDef define_constexpr_blockwise_shift_scale() {
  return OpBuilder("constexpr_blockwise_shift_scale",
                   "Weights as scale * (data - offset), with one scale and offset per block.", Opset::ios18)
      .type_var("SrcT", kBlockwiseData)
      .type_var("DstT", kF16F32)
      .type_var("OffsetT", kBlockwiseData)
      .constant("data", "SrcT")
      .constant("scale", "DstT")
      .constant("offset", "OffsetT")
      .optional()
      .infer(infer_constexpr_blockwise_shift_scale)
      .reference(constexpr_blockwise_shift_scale_reference)
      .traits(Trait::constexpr_weight)
      .note(
          "A block's size is the data's dimension divided by the scale's, which must divide it. Blocks may span "
          "several axes.",
          "coremltools' definition")
      .note(
          "offset has the data's type or a float type; its default is 0. int4 is two's complement, the first "
          "element in the low half of a byte.",
          "coremltools' definition; coremltools' iOS18 test_compression.py")
      .note("The data may be the output of constexpr_lut_to_dense, and the result may be the lut of one.",
            "coremltools' iOS18 test_compression.py, test_quant_lut")
      .build();
}

}  // namespace moka::ops
