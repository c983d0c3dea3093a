// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/window.h"
#include "devices/gpu/kernels/family.h"

namespace moka::devices::gpu {

namespace {

struct PoolParams {
  uint32_t count;
  std::array<int32_t, 3> in_size, out_size, kernel, strides, pads;
};

Match match_pool(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"x"}); !why.empty()) return Match::no(why);
  const std::string_view op = m.call.version().def->name;
  auto window = ops::pool_window(m.call, op == "l2_pool" ? 2 : 3);
  if (!window.ok()) return Match::no(window.error().message());
  uint32_t kind = op == "max_pool" ? POOL_MAX : op == "l2_pool" ? POOL_L2 : POOL_MEAN;
  if (op == "avg_pool") {
    auto inside = m.call.flag("exclude_padding_from_average");
    if (!inside.ok()) return Match::no("a parameter that is not constant");
    if (*inside) kind = POOL_MEAN_INSIDE;
  }
  const ops::Window w = window->as_3d();
  const Element e = float_element(m);
  const int x = m.call.arg_index("x");
  KernelChoice c = choice_of(m, "pool", {"x"}, e);
  const double outputs = static_cast<double>(m.outputs[0].shape().count());
  set_cost(c, m, outputs * static_cast<double>(w.taps()));
  // Large windows are divided among the invocations of a group.
  const bool wide = w.taps() >= 64;
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    const auto n = static_cast<uint64_t>(args.out[0].shape.count());
    const WindowParams p(w);
    PoolParams params{static_cast<uint32_t>(n), p.in_size, p.out_size, {}, p.strides, p.pads};
    for (int i = 0; i < 3; i++) params.kernel[static_cast<size_t>(i)] = static_cast<int32_t>(w.kernel[i]);
    return recorder_of(recorder).dispatch(shader_name("pool", e), {kind, wide},
                                          {Use::read(view(args.in, x)), Use::write(args.out[0])}, params,
                                          CommandRecorder::lines(wide ? n * 256 : n));
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_pool() {
  static const KernelDef defs[] = {{"pool", {"max_pool", "avg_pool", "l2_pool"}, match_pool}};
  return {defs};
}

}  // namespace moka::devices::gpu
