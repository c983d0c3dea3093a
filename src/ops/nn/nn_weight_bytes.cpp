// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/nn_weights.h"

namespace moka::ops {

namespace {

struct FloatBytes {
  Shape shape;
  bool half = false;
};

Result<FloatBytes> float_bytes(const OpCall& call) {
  FloatBytes p;
  Ints dims = MOKA_TRY(call.ints("shape"));
  p.shape = MOKA_TRY(Shape::make(dims.span()));
  p.half = MOKA_TRY(call.text("dtype")) == "fp16";
  size_t bytes = MOKA_TRY(storage_bytes(p.half ? DType::fp16 : DType::fp32, p.shape));
  if (call.rank("data") != 1 || call.shape("data")[0] != static_cast<int64_t>(bytes))
    return call.error("data", cat(bytes, " bytes"), cat(call.type("data")));
  return p;
}

Result<std::vector<Type>> infer_nn_weight_bytes(const OpCall& call) {
  return one(Type::tensor(DType::fp32, MOKA_TRY(float_bytes(call)).shape));
}

Status nn_weight_bytes_reference(const OpCall& call, std::span<const TensorView> out) {
  FloatBytes p = MOKA_TRY(float_bytes(call));
  load_unaligned(call.in("data").as<const std::byte>(), p.half, p.shape.count(), out[0].as<float>());
  return {};
}

}  // namespace

OpDef define_nn_weight_bytes() {
  return OpBuilder("nn_weight_bytes",
                   "A neural network's fp32 or fp16 weight whose bytes are unaligned in the model file, as fp32, so "
                   "that they "
                   "need no copy until a kernel packs them.")
      .constant("data", only(DType::uint8))
      .constant("shape", kI32)
      .constant("dtype", kString)
      .one_of({"fp32", "fp16"})
      .infer(infer_nn_weight_bytes)
      .reference(nn_weight_bytes_reference)
      .traits(Trait::constexpr_weight)
      .note("Bytes are little endian.", "NeuralNetwork.proto")
      .build();
}

}  // namespace moka::ops
