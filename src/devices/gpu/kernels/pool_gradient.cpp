// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/window.h"
#include "devices/gpu/kernels/family.h"

namespace moka::devices::gpu {

namespace {

struct PoolGradientParams {
  uint32_t count;
  std::array<int32_t, 3> in_size, out_size, kernel, strides, pads;
};

Match match_pool_gradient(const MatchCall& m, std::string_view name, uint32_t kind) {
  if (std::string why = refusal_of_floats(m, {"x", "dy"}); !why.empty()) return Match::no(why);
  const auto window = ops::pool_window(m.call);
  if (!window.ok()) return Match::no(window.error().message());
  const ops::Window w = window->as_3d();
  const Element e = float_element(m);
  const int x = m.call.arg_index("x"), dy = m.call.arg_index("dy");
  const WindowParams p(w);
  PoolGradientParams params{u32(m.outputs[0].shape().count()), p.in_size, p.out_size, {}, p.strides, p.pads};
  for (int i = 0; i < 3; i++) params.kernel[static_cast<size_t>(i)] = static_cast<int32_t>(w.kernel[i]);
  KernelChoice c = choice_of(m, name, {"x", "dy"}, e);
  set_cost(c, m, static_cast<double>(m.call.shape("dy").count() * w.taps()));
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    return recorder_of(recorder).dispatch(
        shader_name("pool_gradient", e), {kind},
        {Use::read(view(args.in, x)), Use::read(view(args.in, dy)), Use::write(args.out[0])}, params,
        CommandRecorder::lines(params.count));
  };
  return Match::yes(std::move(c));
}

Match match_max_pool_gradient(const MatchCall& m) { return match_pool_gradient(m, "max_pool_gradient", POOL_MAX); }

Match match_avg_pool_gradient(const MatchCall& m) {
  const auto inside = m.call.flag("exclude_padding_from_average");
  if (!inside.ok()) return Match::no("a parameter that is not constant");
  return match_pool_gradient(m, "avg_pool_gradient", *inside ? POOL_MEAN_INSIDE : POOL_MEAN);
}

}  // namespace

KernelFamily family_pool_gradient() {
  static const KernelDef defs[] = {{"max_pool_gradient", {"moka_max_pool_gradient"}, match_max_pool_gradient},
                                   {"avg_pool_gradient", {"moka_avg_pool_gradient"}, match_avg_pool_gradient}};
  return {defs};
}

}  // namespace moka::devices::gpu
