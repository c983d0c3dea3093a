// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/window.h"
#include "devices/gpu/kernels/family.h"

namespace moka::devices::gpu {

namespace {

struct WeightsGradientParams {
  uint32_t count, lane_bits;
  int32_t batch, channels, made, groups;
  std::array<int32_t, 3> in_size, out_size, kernel, strides, dilations, pads;
};

/// Products that make another lane worth its part of the sum.
constexpr int64_t kProductsOfLane = 8;

/// How many invocations share a weight: one where shared memory is slow; more than a few only if there are few weights.
uint32_t lane_bits_of(const Features& card, int64_t weights, int64_t products) {
  constexpr uint32_t kFew = 5, kWorkGroup = 8;
  constexpr int64_t kEnough = 1 << 20;
  uint32_t bits = 0;
  if (!card.local_memory) return bits;
  while (bits < kWorkGroup && (kProductsOfLane << (bits + 1)) <= products && (bits < kFew || weights << bits < kEnough))
    bits++;
  return bits;
}

Match match_conv_weights_gradient(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"x", "dy"}); !why.empty()) return Match::no(why);
  const auto window = ops::weights_gradient_window(m.call);
  if (!window.ok()) return Match::no(window.error().message());
  const ops::Window w = window->as_3d();
  const ir::Shape &x = m.call.shape("x"), &dy = m.call.shape("dy");
  const Element e = float_element(m);
  const int in = m.call.arg_index("x"), by = m.call.arg_index("dy");
  const int64_t count = m.outputs[0].shape().count(), products = dy[0] * w.out_count();
  const uint32_t bits = lane_bits_of(features_of(m), count, products);
  const WindowParams p(w);
  WeightsGradientParams params{u32(count),
                               bits,
                               static_cast<int32_t>(x[0]),
                               static_cast<int32_t>(x[1] / w.groups),
                               static_cast<int32_t>(dy[1]),
                               static_cast<int32_t>(w.groups),
                               p.in_size,
                               p.out_size,
                               {},
                               p.strides,
                               p.dilations,
                               p.pads};
  for (int i = 0; i < 3; i++) params.kernel[static_cast<size_t>(i)] = static_cast<int32_t>(w.kernel[i]);
  KernelChoice c = choice_of(m, "conv_weights_gradient", {"x", "dy"}, e);
  set_cost(c, m, static_cast<double>(count) * static_cast<double>(products));
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    return recorder_of(recorder).dispatch(
        shader_name("conv_weights_gradient", e), {},
        {Use::read(view(args.in, in)), Use::read(view(args.in, by)), Use::write(args.out[0])}, params,
        CommandRecorder::lines(static_cast<uint64_t>(count) << bits));
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_weights_gradient() {
  static const KernelDef defs[] = {
      {"conv_weights_gradient", {"moka_conv_weights_gradient"}, match_conv_weights_gradient}};
  return {defs};
}

}  // namespace moka::devices::gpu
