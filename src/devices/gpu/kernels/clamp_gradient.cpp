// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "devices/gpu/kernels/family.h"

namespace moka::devices::gpu {

namespace {

struct ClampGradientParams {
  uint32_t count;
  float low, high;
};

Match match_clamp_gradient(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"x", "dy"}); !why.empty()) return Match::no(why);
  const auto low = m.call.number("alpha"), high = m.call.number("beta");
  if (!low.ok() || !high.ok()) return Match::no("limits that are not constant");
  if (std::isnan(*low) || std::isnan(*high)) return Match::no("a limit that is NaN");
  const Element e = float_element(m);
  const int x = m.call.arg_index("x"), dy = m.call.arg_index("dy");
  const ClampGradientParams params{u32(m.outputs[0].shape().count()), static_cast<float>(*low),
                                   static_cast<float>(*high)};
  KernelChoice c = choice_of(m, "clamp_gradient", {"x", "dy"}, e);
  c.in_place = dy;
  set_cost(c, m);
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    return recorder_of(recorder).dispatch(
        shader_name("clamp_gradient", e), {std::isfinite(params.high) || params.high < 0},
        {Use::read(view(args.in, x)), Use::read(view(args.in, dy)), Use::write(args.out[0])}, params,
        CommandRecorder::lines(params.count));
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_clamp_gradient() {
  static const KernelDef defs[] = {{"clamp_gradient", {"moka_clamp_gradient"}, match_clamp_gradient}};
  return {defs};
}

}  // namespace moka::devices::gpu
