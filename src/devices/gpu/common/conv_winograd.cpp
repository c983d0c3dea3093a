// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/conv.h"
#include "ops/common/packed.h"

namespace moka::devices::gpu {

namespace {

constexpr int64_t kTaps = 16;             // matrix products of F(2x2, 3x3)
constexpr int64_t kTile = 32;             // channels, and tiles of 2 x 2 pixels, of a workgroup
constexpr double kLeastWork = 1e8;        // multiply-adds
constexpr int64_t kWinogradGroups = 128;  // workgroups of a large GPU
constexpr double kLeastSaved = 16;  // multiply-adds per additional byte; a GPU computes 7 to 40 while it moves a byte

/// Multiply-adds that the transforms save for each additional byte that they move. A pixel needs 4 multiply-adds
/// instead of 9 for each pair of channels, but each kernel has 16 numbers instead of 9.
double saved_for_a_byte(const Conv& conv) {
  return 5 * static_cast<double>(conv.batch) * static_cast<double>(conv.window.out_count()) / (4 * 7);
}

struct WinogradParams {
  AfterParams after;
  uint32_t channels, made, columns, in_image, across;
  std::array<int32_t, 2> in_size, out_size, pads;
};

/// The weights as [16, channels, made / 4] of four: G w G^T of each kernel.
Status transform_weights(const Conv& conv, const ir::TensorView& value, float* to) {
  const int64_t padded = (conv.made + 3) / 4 * 4;
  std::fill_n(to, kTaps * conv.channels * padded, 0.0f);
  auto line = [](const float* w, int64_t step, float* out) {
    const float a = w[0], b = w[step], c = w[2 * step];
    out[0] = a;
    out[1] = (a + b + c) / 2;
    out[2] = (a - b + c) / 2;
    out[3] = c;
  };
  std::vector<float> kernels(static_cast<size_t>(conv.channels * 9));
  for (int64_t r = 0; r < conv.made; r++) {
    ops::load_floats(value, r * conv.channels * 9, conv.channels * 9, kernels.data());
    for (int64_t c = 0; c < conv.channels; c++) {
      float rows[12], all[16];  // [3][4], [4][4]
      for (int i = 0; i < 3; i++) line(kernels.data() + c * 9 + static_cast<ptrdiff_t>(3) * i, 1, rows + 4 * i);
      for (int i = 0; i < 4; i++) {
        float column[4];
        line(rows + i, 4, column);
        for (int k = 0; k < 4; k++) all[k * 4 + i] = column[k];
      }
      for (int64_t e = 0; e < kTaps; e++) to[(e * conv.channels + c) * padded + r] = all[e];
    }
  }
  return {};
}

}  // namespace

Match match_conv_winograd(const MatchCall& m) {
  std::string refusal;
  const auto conv = conv_of(m, refusal);
  if (!conv) return Match::no(refusal);
  const ops::Window& w = conv->window;
  bool fits = w.groups == 1 && w.in[0] == 1 && w.kernel[0] == 1 && w.pads_begin[0] == 0 && w.out[0] == 1;
  for (int i = 1; i < 3; i++) fits &= w.kernel[i] == 3 && w.strides[i] == 1 && w.dilations[i] == 1;
  if (!fits) return Match::no("a window other than 3 x 3 without strides");
  if (!conv->card->shares_tiles() && !m.asked) return Match::no("no memory of a workgroup's own");
  if (!m.is_constant("weight")) return Match::no("weights that are not constant");
  if (refusal = refusal_of_floats(m, {"x", "bias"}); !refusal.empty()) return Match::no(refusal);
  if (conv->channels < 16 || conv->made < 16 || (conv->multiply_adds() < kLeastWork && !m.asked))
    return Match::no("too little work");
  if (saved_for_a_byte(*conv) < kLeastSaved && !m.asked) return Match::no("less saved than moved");
  const int64_t across = (w.out[2] + 1) / 2, in_image = (w.out[1] + 1) / 2 * across, columns = conv->batch * in_image;
  const std::array<int64_t, 3> groups{(columns + kTile - 1) / kTile, (conv->made + kTile - 1) / kTile, 1};
  if (conv->card->is_large && groups[0] * groups[1] < kWinogradGroups && !m.asked)
    return Match::no("too few workgroups for a large GPU");
  if (std::string why = features_of(m).refusal_of_groups(groups); !why.empty()) return Match::no(why);
  KernelChoice c = choice_of(m, "conv.winograd", {"x", "bias", "addend"}, conv->floats);
  const After after = after_of(m.epilogue);
  c.epilogues = after.count;
  const auto held = uploaded_before(
      c, conv->weight, "winograd", kTaps * conv->channels * ((conv->made + 3) / 4 * 4), Element::f32,
      [conv = *conv](const ir::TensorView& value, float* to) { return transform_weights(conv, value, to); });
  set_cost(c, m, conv->multiply_adds() / 2.25);
  c.record = [=, conv = *conv](Recorder& recorder, const RecordArgs& args) -> Status {
    const Use x = conv.use(args.in, conv.x);
    auto size = [](const ir::Ints& v) {
      return std::array<int32_t, 2>{static_cast<int32_t>(v[1]), static_cast<int32_t>(v[2])};
    };
    const ops::Window& w = conv.window;
    const WinogradParams params{AfterParams(after), u32(conv.channels), u32(conv.made),
                                u32(columns),       u32(in_image),      u32(across),
                                size(w.in),         size(w.out),        size(w.pads_begin)};
    const std::string shader = shader_name("winograd", conv.floats);
    auto constants = after.constants({conv.bias >= 0, conv.addend >= 0});
    std::vector<Use> uses{x,
                          Use::read(held->buffer, 16),
                          conv.use_or(args.in, conv.bias, x),
                          conv.use_or(args.in, conv.addend, x),
                          Use::write(args.out[0]),
                          x.unused()};
    MOKA_TRY(recorder_of(recorder).dispatch(shader, constants, uses, params, groups_of(groups)));
    recorder_of(recorder).may_norm(conv.normed([=](Recorder& again, const Norm& norm) mutable {
      uses[4] = norm.out;
      uses[5] = norm.scales;
      constants.push_back(true);
      return recorder_of(again).dispatch(shader, constants, uses, params, groups_of(groups));
    }));
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace moka::devices::gpu
