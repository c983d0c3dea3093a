// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/common/common.h"
#include "ops/common/window.h"

namespace moka::ops {

namespace {

Status expect_window_numbers(const OpCall& call, std::string_view param, int64_t least) {
  const Ints v = MOKA_TRY(call.ints(param));
  if (v.size() != call.rank("x") - 2) return call.error(param, cat(call.rank("x") - 2, " numbers"), cat(v.size()));
  for (int64_t d : v)
    if (d < least || d > INT32_MAX) return call.error(param, cat("numbers of at least ", least), cat(d));
  return {};
}

Result<std::vector<Type>> infer_conv_weights_gradient(const OpCall& call) {
  const DType dtype = call.dtype("x");
  if (!call.type("x").is_ranked() || !call.type("dy").is_ranked()) return one(Type::unranked(dtype));
  const Shape &x = call.shape("x"), &dy = call.shape("dy");
  if (x.rank() < 3 || x.rank() > 5) return call.error("x", "rank 3 to 5", cat("rank ", x.rank()));
  if (dy.rank() != x.rank()) return call.error("dy", cat("rank ", x.rank(), ", that of x"), cat(dy));
  if (x[0] >= 0 && dy[0] >= 0 && x[0] != dy[0]) return call.error("dy", cat("the batch of x, ", x[0]), cat(dy));
  MOKA_TRY(expect_window_numbers(call, "kernel", 1));
  MOKA_TRY(expect_window_numbers(call, "strides", 1));
  MOKA_TRY(expect_window_numbers(call, "dilations", 1));
  MOKA_TRY(expect_window_numbers(call, "pad", INT32_MIN));
  const int64_t groups = MOKA_TRY(call.integer("groups"));
  if (groups < 1 || (x[1] >= 0 && x[1] % groups != 0) || (dy[1] >= 0 && dy[1] % groups != 0))
    return call.error("groups", "a divisor of both numbers of channels", cat(groups));
  Shape out{dy[1], x[1] < 0 ? kAnyDim : x[1] / groups};
  for (int64_t k : MOKA_TRY(call.ints("kernel"))) out.push_back(k);
  return one(Type::tensor(dtype, out));
}

Status conv_weights_gradient_reference(const OpCall& call, std::span<const TensorView> out) {
  const Window s = MOKA_TRY(weights_gradient_window(call)).as_3d();
  const TensorView &x = call.in("x"), &dy = call.in("dy");
  const int64_t batch = x.shape[0], made = dy.shape[1];
  const int64_t channels = x.shape[1] / s.groups, made_per_group = made / s.groups;
  const int64_t in_plane = s.in_count(), out_plane = s.out_count();
  int64_t at = 0;
  for (int64_t m = 0; m < made; m++)
    for (int64_t c = 0; c < channels; c++)
      for (int64_t kd = 0; kd < s.kernel[0]; kd++)
        for (int64_t kh = 0; kh < s.kernel[1]; kh++)
          for (int64_t kw = 0; kw < s.kernel[2]; kw++) {
            const TapReach d = tap_reach(s, 0, kd), h = tap_reach(s, 1, kh), w = tap_reach(s, 2, kw);
            double sum = 0;
            for (int64_t n = 0; n < batch; n++) {
              const int64_t from = (n * x.shape[1] + m / made_per_group * channels + c) * in_plane;
              const int64_t by = (n * made + m) * out_plane;
              for (int64_t od = d.first; od < d.last; od++)
                for (int64_t oh = h.first; oh < h.last; oh++)
                  for (int64_t ow = w.first; ow < w.last; ow++)
                    sum +=
                        load_f64(dy, by + (od * s.out[1] + oh) * s.out[2] + ow) *
                        load_f64(
                            x, from + ((od * s.strides[0] + d.base) * s.in[1] + oh * s.strides[1] + h.base) * s.in[2] +
                                   ow * s.strides[2] + w.base);
            }
            store_f64(out[0], at++, sum);
          }
  return {};
}

}  // namespace

OpDef define_moka_conv_weights_gradient() {
  return OpBuilder("moka_conv_weights_gradient",
                   "The gradient of a convolution's weights [out channels, channels / groups, kernel...] from its "
                   "input x and the gradient dy of its result.",
                   Opset::ios13)
      .type_var("T", kF16F32)
      .in("x", "T")
      .in("dy", "T")
      .constant("kernel", kI32)
      .constant("strides", kI32)
      .constant("dilations", kI32)
      .constant("pad", kI32)
      .constant("groups", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 1))
      .infer(infer_conv_weights_gradient)
      .reference(conv_weights_gradient_reference)
      .note("pad is the padding before each spatial dimension. Padding counts as zeros.", "torch.nn.grad.conv2d_weight")
      .note(
          "The weights of a transposed convolution have the same gradient, with its result's gradient as x and its "
          "input as dy.",
          "torch.autograd")
      .build();
}

}  // namespace moka::ops
