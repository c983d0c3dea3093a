// SPDX-License-Identifier: Apache-2.0
#include "ops/common/addend.h"
#include "ops/common/common.h"
#include "ops/common/convolution.h"
#include "ops/common/gradients.h"
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

/// The gradient of x where each position of the window reads one: a convolution with reversed weights. False: it is
/// none.
bool set_as_conv(Gradient& g, const Window& w) {
  Ints pad;
  for (int i = 0; i < w.rank; i++) {
    const int64_t begin = w.extent(i) - 1 - w.pads_begin[i], end = w.extent(i) - 1 - w.pads_end[i];
    if (w.strides[i] != 1 || begin < 0 || end < 0) return false;
    pad.push_back(begin);
    pad.push_back(end);
  }
  const Term flipped =
      g.call("moka_flip_weights", {{"weight", g.in("weight").value()}, {"groups", static_cast<int>(w.groups)}});
  g.set("x", g.call("conv", {{"x", g.dy().value()},
                             {"weight", flipped.value()},
                             {"dilations", w.dilations},
                             {"groups", static_cast<int>(w.groups)},
                             {"pad_type", "custom"},
                             {"pad", pad}}));
  return true;
}

void conv_gradient(Gradient& g) {
  if (const Window w = g.take(conv_window(g.known())); g.wants("x") && !set_as_conv(g, w)) {
    Ints pad, size;
    for (int i = 0; i < w.rank; i++) {
      pad.push_back(w.pads_begin[i]);
      pad.push_back(std::max<int64_t>(0, w.pads_end[i]));
    }
    for (int64_t d : g.x().shape()) size.push_back(d);
    g.set("x", g.call("conv_transpose", {{"x", g.dy().value()},
                                         {"weight", g.in("weight").value()},
                                         {"strides", w.strides},
                                         {"dilations", w.dilations},
                                         {"groups", static_cast<int>(w.groups)},
                                         {"pad_type", "custom"},
                                         {"pad", pad},
                                         {"output_shape", size}}));
  }
  if (g.wants("weight")) g.set("weight", conv_weights_gradient(g, g.take(conv_window(g.known())), g.x(), g.dy()));
  if (g.wants("bias")) g.set("bias", sum_but_channels(g, g.dy()));
}

}  // namespace

OpDef define_conv() {
  OpBuilder b("conv",
              "Convolution of [batch, channels, spatial...] with [out channels, channels / groups, kernel...], one "
              "to three spatial dimensions.");
  b.type_var("T", kF16F32).in("x", "T").in("weight", "T").constant("bias", "T").optional();
  add_window_params(b)
      .infer(infer_conv)
      .reference(conv_reference)
      .traits(Trait::costly)
      .at(Opset::ios17,
          [](OpVersion& v) {
            v.set_domain("U", kF16F32);
            v.edit("weight").type_var = "U";
            v.edit("bias").type_var = "U";
            v.edit("bias").constant = false;
          })
      .note("Tap t reads at t * dilation. The result has floor((in + pads - extent) / stride) + 1 elements.",
            "coremltools' definition")
      .note(
          "same gives ceil(in / stride) elements. An odd element of padding goes to the end, with same_lower to "
          "the beginning.",
          "TensorFlow's SAME; coremltools' spatial_dimensions_out_shape")
      .note("pad is ignored unless pad_type is custom. same_lower is accepted in iOS15, too.",
            "coremltools' definition; other tools write such models")
      .note("Padding is zeros, so an infinite weight on padding gives NaN.", "torch.nn.functional.conv1d");
  return with_addend(b.gradient(conv_gradient).build());
}

}  // namespace moka::ops
