#include "ops/common/addend.h"
#include "ops/common/common.h"
#include "ops/common/convolution.h"
#include "ops/common/ranks.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_conv(const OpCall& call) {
  const DType dtype = call.dtype("x");
  if (any_unranked(call, {"x", "weight"})) return one(Type::unranked(dtype));
  const Window w = MOKA_TRY(conv_window(call));
  Shape out{call.shape("x")[0], call.shape("weight")[0]};
  for (int64_t d : w.out) out.push_back(d);
  return one(Type::tensor(dtype, out));
}

Status conv_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  convolve(call.in("x"), call.in("weight"), call.has("bias") ? &call.in("bias") : nullptr,
           MOKA_TRY(conv_window(call)).as_3d(), out[0]);
  return {};
}

}  // namespace

OpDef define_conv() {
  return with_addend(
      OpBuilder("conv",
                "Convolution of [batch, channels, spatial...] with [out channels, channels / groups, kernel...], one "
                "to three spatial dimensions.")
          .type_var("T", kF16F32)
          .in("x", "T")
          .in("weight", "T")
          .constant("bias", "T")
          .optional()
          .constant("strides", kI32)
          .optional()
          .constant("pad_type", kString)
          .one_of({"valid", "same", "same_lower", "custom"})
          .or_else(Tensor::text("valid"))
          .constant("pad", kI32)
          .optional()
          .constant("dilations", kI32)
          .optional()
          .constant("groups", kI32)
          .or_else(Tensor::scalar_i64(DType::int32, 1))
          .infer(infer_conv)
          .reference(conv_reference)
          .at(Opset::ios17,
              [](OpVersion& v) {
                v.set_domain("U", kF16F32);
                v.edit("weight").type_var = "U";
                v.edit("bias").type_var = "U";
                v.edit("bias").constant = false;
              })
          .note("Taps read at index * dilation; the result has floor((in + pads - extent) / stride) + 1 elements.",
                "coremltools' definition")
          .note("same: ceil(in / stride) elements, the odd element of padding behind; same_lower: in front.",
                "TensorFlow's SAME; coremltools' spatial_dimensions_out_shape")
          .note("pad is ignored unless pad_type is custom; same_lower is taken in iOS15, too.",
                "coremltools' definition; refusing it would refuse models that other writers made")
          .note("Padding is zeros: an infinite weight over it gives NaN.", "torch.nn.functional.conv1d")
          .build());
}

}  // namespace moka::ops
