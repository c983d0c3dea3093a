// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "ops/common/common.h"
#include "ops/common/gradients.h"
#include "ops/common/product.h"
#include "ops/common/ranks.h"
#include "ops/common/runs.h"
#include "ops/common/window.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_conv_transpose(const OpCall& call) {
  const DType dtype = call.dtype("x");
  if (any_unranked(call, {"x", "weight"})) return one(Type::unranked(dtype));
  const Window w = MOKA_TRY(conv_transpose_window(call));
  const int64_t made = call.shape("weight")[1];
  Shape out{call.shape("x")[0], made < 0 ? kAnyDim : made * w.groups};
  for (int64_t d : w.out) out.push_back(d);
  return one(Type::tensor(dtype, out));
}

/// Along one dimension, outputs with the same remainder by the stride use the same taps: kernel positions first_tap + t
/// * tap_step for t < taps. Tap t of output first_out + m * stride reads input in_base + m - t * in_step.
struct Phase {
  int64_t outputs = 0, first_out = 0;
  int64_t taps = 0, first_tap = 0, tap_step = 1;
  int64_t in_base = 0, in_step = 0;
};

Phase phase_of(const Window& w, int i, int64_t remainder) {
  Phase p;
  const int64_t s = w.strides[i], d = w.dilations[i];
  p.first_out = remainder;
  p.outputs = remainder < w.out[i] ? (w.out[i] - remainder - 1) / s + 1 : 0;
  const int64_t at = remainder + w.pads_begin[i];  // position in the full result; at == input * s + tap * d
  int64_t gcd = s, other = d;
  while (other != 0) {
    const int64_t rest = gcd % other;
    gcd = other;
    other = rest;
  }
  p.tap_step = s / gcd;
  p.in_step = d / gcd;
  for (int64_t k = 0; k < std::min(w.kernel[i], p.tap_step); ++k) {
    if ((at - k * d) % s != 0) continue;
    p.first_tap = k;
    p.in_base = (at - k * d) / s;
    p.taps = (w.kernel[i] - k - 1) / p.tap_step + 1;
    break;
  }
  return p;
}

struct Phases {
  std::array<Phase, 3> p;
  int64_t taps() const { return p[0].taps * p[1].taps * p[2].taps; }
  int64_t outputs() const { return p[0].outputs * p[1].outputs * p[2].outputs; }
  std::array<int64_t, 3> split_tap(int64_t t) const {
    return {t / (p[1].taps * p[2].taps), t / p[2].taps % p[1].taps, t % p[2].taps};
  }
};

/// Computes all outputs of one phase, for one image and group.
void run_phase(const OpCall& call, const Window& w, const Phases& ph, int64_t image, int64_t group,
               const TensorView& out) {
  const TensorView& x = call.in("x");
  const TensorView& weight = call.in("weight");
  const TensorView* bias = call.has("bias") ? &call.in("bias") : nullptr;
  const int64_t channels = x.shape[1] / w.groups, made = weight.shape[1];
  const int64_t in_plane = w.in_count(), out_plane = w.out_count(), kernel = w.taps(), taps = ph.taps();
  const int64_t x_base = (image * w.groups + group) * channels * in_plane;
  const int64_t out_base = (image * w.groups + group) * made * out_plane;
  const auto &pd = ph.p[0], &ph1 = ph.p[1], &pw = ph.p[2];  // captured below: no structured binding
  auto load_weight = [&](int64_t i, int64_t k, int64_t n, double* to) {
    while (n > 0) {
      const auto t = ph.split_tap(k % taps);
      const int64_t run = std::min(n, pw.taps - t[2]);
      const int64_t kd = pd.first_tap + t[0] * pd.tap_step, kh = ph1.first_tap + t[1] * ph1.tap_step,
                    kw = pw.first_tap + t[2] * pw.tap_step;
      const int64_t channel = group * channels + k / taps;
      load_run(weight, (channel * made + i) * kernel + (kd * w.kernel[1] + kh) * w.kernel[2] + kw, pw.tap_step, run,
               to);
      to += run;
      k += run;
      n -= run;
    }
  };
  auto load_input = [&](int64_t k, int64_t position, int64_t n, double* to) {
    const auto t = ph.split_tap(k % taps);
    const int64_t plane = x_base + k / taps * in_plane;
    while (n > 0) {
      const int64_t mw = position % pw.outputs, row = position / pw.outputs;
      const int64_t run = std::min(n, pw.outputs - mw);
      const int64_t id = pd.in_base + row / ph1.outputs - t[0] * pd.in_step;
      const int64_t ih = ph1.in_base + row % ph1.outputs - t[1] * ph1.in_step;
      const int64_t iw = pw.in_base + mw - t[2] * pw.in_step;
      int64_t first = 0, last = 0;
      if (id >= 0 && id < w.in[0] && ih >= 0 && ih < w.in[1]) {
        first = std::clamp<int64_t>(-iw, 0, run);
        last = std::clamp<int64_t>(w.in[2] - iw, first, run);
        if (last > first) load_run(x, plane + (id * w.in[1] + ih) * w.in[2] + iw + first, 1, last - first, to + first);
      }
      std::fill(to, to + first, 0.0);
      std::fill(to + last, to + run, 0.0);
      to += run;
      position += run;
      n -= run;
    }
  };
  auto store = [&](int64_t i, int64_t position, int64_t n, double* c) {
    const double b = bias != nullptr ? load_f64(*bias, group * made + i) : 0.0;
    for (int64_t q = 0; q < n; ++q) c[q] += b;
    while (n > 0) {
      const int64_t mw = position % pw.outputs, row = position / pw.outputs;
      const int64_t run = std::min(n, pw.outputs - mw);
      const int64_t od = pd.first_out + row / ph1.outputs * w.strides[0];
      const int64_t oh = ph1.first_out + row % ph1.outputs * w.strides[1];
      const int64_t ow = pw.first_out + mw * w.strides[2];
      store_run(out, out_base + i * out_plane + (od * w.out[1] + oh) * w.out[2] + ow, w.strides[2], run, c);
      c += run;
      position += run;
      n -= run;
    }
  };
  blocked_product<double>(made, ph.outputs(), channels * taps, load_weight, load_input, store);
}

/// The taps [first, last) that output m of the phase reads inside an input of `in` elements.
struct Reach {
  int64_t first = 0, last = 0;
};

Reach reach_of(const Phase& p, int64_t m, int64_t in) {
  const int64_t at = p.in_base + m;  // tap t reads at - t * in_step
  if (at < 0) return {};
  const int64_t first = at < in ? 0 : (at - in) / p.in_step + 1;
  return {first, std::max(first, std::min(p.taps, at / p.in_step + 1))};
}

/// Like run_phase(), but skips taps outside the input: 0 times an infinite weight would be NaN.
void run_phase_inside(const OpCall& call, const Window& w, const Phases& ph, int64_t image, int64_t group,
                      const TensorView& out) {
  const TensorView& x = call.in("x");
  const TensorView& weight = call.in("weight");
  const TensorView* bias = call.has("bias") ? &call.in("bias") : nullptr;
  const int64_t channels = x.shape[1] / w.groups, made = weight.shape[1];
  const int64_t in_plane = w.in_count(), kernel = w.taps(), outputs = ph.outputs();
  const int64_t x_base = (image * w.groups + group) * channels * in_plane;
  const auto& p = ph.p;
  for (int64_t i = 0; i < made; ++i) {
    const int64_t plane = ((image * w.groups + group) * made + i) * w.out_count();
    for (int64_t o = 0; o < outputs; ++o) {
      const int64_t m[3] = {o / (p[1].outputs * p[2].outputs), o / p[2].outputs % p[1].outputs, o % p[2].outputs};
      const Reach d = reach_of(p[0], m[0], w.in[0]), h = reach_of(p[1], m[1], w.in[1]),
                  v = reach_of(p[2], m[2], w.in[2]);
      double sum = 0;
      auto tap = [&](int64_t td, int64_t th, int64_t tv) {
        const int64_t id = p[0].in_base + m[0] - td * p[0].in_step, ih = p[1].in_base + m[1] - th * p[1].in_step,
                      iv = p[2].in_base + m[2] - tv * p[2].in_step;
        const int64_t kd = p[0].first_tap + td * p[0].tap_step, kh = p[1].first_tap + th * p[1].tap_step,
                      kv = p[2].first_tap + tv * p[2].tap_step;
        const int64_t from = x_base + (id * w.in[1] + ih) * w.in[2] + iv;
        const int64_t by = group * channels * made * kernel + (kd * w.kernel[1] + kh) * w.kernel[2] + kv;
        for (int64_t c = 0; c < channels; ++c)
          sum += load_f64(x, from + c * in_plane) * load_f64(weight, by + (c * made + i) * kernel);
      };
      for (int64_t td = d.first; td < d.last; ++td)
        for (int64_t th = h.first; th < h.last; ++th)
          for (int64_t tv = v.first; tv < v.last; ++tv) tap(td, th, tv);
      if (bias != nullptr) sum += load_f64(*bias, group * made + i);
      const int64_t od = p[0].first_out + m[0] * w.strides[0], oh = p[1].first_out + m[1] * w.strides[1],
                    ov = p[2].first_out + m[2] * w.strides[2];
      store_run(out, plane + (od * w.out[1] + oh) * w.out[2] + ov, 1, 1, &sum);
    }
  }
}

bool all_finite(const TensorView& t) {
  return with_reader(t, [n = t.count()](auto read) {
    for (int64_t i = 0; i < n; ++i)
      if (!std::isfinite(read(i))) return false;
    return true;
  });
}

Status conv_transpose_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  const Window w = MOKA_TRY(conv_transpose_window(call)).as_3d();
  const int64_t batch = call.in("x").shape[0];
  const auto run = all_finite(call.in("weight")) ? run_phase : run_phase_inside;
  auto phases = [&](int i) { return std::min(w.strides[i], w.out[i]); };
  Phases ph;
  for (int64_t d = 0; d < phases(0); ++d) {
    ph.p[0] = phase_of(w, 0, d);
    for (int64_t h = 0; h < phases(1); ++h) {
      ph.p[1] = phase_of(w, 1, h);
      for (int64_t v = 0; v < phases(2); ++v) {
        ph.p[2] = phase_of(w, 2, v);
        for (int64_t n = 0; n < batch; ++n) {
          for (int64_t g = 0; g < w.groups; ++g) run(call, w, ph, n, g, out[0]);
        }
      }
    }
  }
  return {};
}

void conv_transpose_gradient(Gradient& g) {
  const Window w = g.take(conv_transpose_window(g.known()));
  if (g.wants("x")) {
    Ints pad, begin{0, 0}, end{g.y().shape()[0], g.y().shape()[1]};
    for (int i = 0; i < w.rank; i++) {
      begin.push_back(std::max<int64_t>(0, -w.pads_begin[i]));
      end.push_back(w.out[i] - std::max<int64_t>(0, -w.pads_end[i]));
      pad.push_back(std::max<int64_t>(0, w.pads_begin[i]));
      pad.push_back(std::max<int64_t>(0, w.pads_end[i]));
    }
    // Elements of the result that no tap reaches.
    const Term dy = g.call("slice_by_index", {{"x", g.dy().value()}, {"begin", begin}, {"end", end}});
    g.set("x", g.call("conv", {{"x", dy.value()},
                               {"weight", g.in("weight").value()},
                               {"strides", w.strides},
                               {"dilations", w.dilations},
                               {"groups", static_cast<int>(w.groups)},
                               {"pad_type", "custom"},
                               {"pad", pad}}));
  }
  if (g.wants("weight")) g.set("weight", conv_weights_gradient(g, w, g.dy(), g.x()));
  if (g.wants("bias")) g.set("bias", sum_but_channels(g, g.dy()));
}

}  // namespace

OpDef define_conv_transpose() {
  return OpBuilder("conv_transpose",
                   "Transposed convolution of [batch, channels, spatial...] with [channels, out channels / groups, "
                   "kernel...], one to three spatial dimensions.")
      .type_var("T", kF16F32)
      .in("x", "T")
      .constant("weight", "T")
      .constant("bias", "T")
      .optional()
      .constant("pad", kI32)
      .optional()
      .constant("output_shape", kI32)
      .optional()
      .constant("pad_type", kString)
      .one_of({"valid", "same", "custom"})
      .or_else(Tensor::text("valid"))
      .constant("strides", kI32)
      .optional()
      .constant("dilations", kI32)
      .optional()
      .constant("groups", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 1))
      .infer(infer_conv_transpose)
      .reference(conv_transpose_reference)
      .traits(Trait::costly)
      .at(Opset::ios17,
          [](OpVersion& v) {
            v.set_domain("U", kF16F32);
            v.edit("weight").type_var = "U";
            v.edit("weight").constant = false;
            v.edit("bias").type_var = "U";
            v.edit("bias").constant = false;
          })
      .note(
          "same gives in * stride elements; half of the surplus, rounded down, is cropped at the beginning. custom: "
          "full size less "
          "pad.",
          "coremltools' definition")
      .note("output_shape sets the end of the result. Elements that no tap reaches hold the bias alone.",
            "torch.nn.functional.conv_transpose2d with output_padding")
      .note("Taps outside of the input are skipped, so zero times an infinite weight is not added.",
            "onnxruntime, PyTorch")
      .gradient(conv_transpose_gradient)
      .build();
}

}  // namespace moka::ops
