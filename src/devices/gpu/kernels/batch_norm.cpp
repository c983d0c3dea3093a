// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/groups.h"
#include "devices/gpu/kernels/family.h"

/// Batch norms of training. A group of invocations computes a channel.
namespace moka::devices::gpu {

namespace {

struct ChannelWalkParams {
  uint32_t groups, members;
  float epsilon;
  GroupWalk::Params walk;
};

GroupWalk channel_walk(const MatchCall& m) {
  const ir::Shape& x = m.call.shape("x");
  return {features_of(m), ops::Groups({x[0], x[1], x.count(2, x.rank())}, {0, 2})};
}

/// As the model holds them: statistics in float16 would be too coarse for a float32 model.
Element channel_element(const MatchCall& m) { return *element_of(features_of(m), m.call.dtype("x")); }

Match match_batch_norm_training(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"x", "gamma", "beta"}); !why.empty()) return Match::no(why);
  const auto epsilon = m.call.number("epsilon");
  if (!epsilon.ok()) return Match::no("an epsilon that is not constant");
  const GroupWalk walk = channel_walk(m);
  const Element e = channel_element(m);
  const int x = m.call.arg_index("x"), gamma = m.call.arg_index("gamma"), beta = m.call.arg_index("beta");
  KernelChoice c = choice_of(m, "batch_norm_training", {"x", "gamma", "beta"}, e);
  set_cost(c, m, 6 * static_cast<double>(m.call.shape("x").count()));
  c.record = [=, epsilon = static_cast<float>(*epsilon)](Recorder& recorder, const RecordArgs& args) -> Status {
    const Use in = Use::read(view(args.in, x));
    const auto given = [&](int arg) { return arg >= 0 ? Use::read(view(args.in, arg)) : in.unused(); };
    return recorder_of(recorder).dispatch(
        shader_name("batch_norm_training", e), walk.constants({gamma >= 0, beta >= 0}),
        {in, given(gamma), given(beta), Use::write(args.out[0]), Use::write(args.out[1]), Use::write(args.out[2])},
        ChannelWalkParams{walk.groups, walk.members, epsilon, walk.params}, walk.work_groups());
  };
  return Match::yes(std::move(c));
}

Match match_gradient_of_norm(const MatchCall& m, std::string_view name, bool training) {
  if (std::string why = refusal_of_floats(m, {"x", "dy", "mean", "variance", "gamma"}); !why.empty())
    return Match::no(why);
  const auto epsilon = m.call.number("epsilon");
  if (!epsilon.ok()) return Match::no("an epsilon that is not constant");
  const GroupWalk walk = channel_walk(m);
  const Element e = channel_element(m);
  const auto index = [&](std::string_view param) { return m.call.arg_index(param); };
  const std::array<int, 5> in{index("x"), index("dy"), index("mean"), index("variance"), index("gamma")};
  KernelChoice c = choice_of(m, name, {"x", "dy", "mean", "variance", "gamma"}, e);
  set_cost(c, m, 6 * static_cast<double>(m.call.shape("x").count()));
  c.record = [=, epsilon = static_cast<float>(*epsilon)](Recorder& recorder, const RecordArgs& args) -> Status {
    std::vector<Use> uses;
    for (int i : in) uses.push_back(i >= 0 ? Use::read(view(args.in, i)) : uses[0].unused());
    for (const BufferView& out : args.out) uses.push_back(Use::write(out));
    return recorder_of(recorder).dispatch(
        shader_name("batch_norm_gradient", e), walk.constants({in[4] >= 0, training}), std::move(uses),
        ChannelWalkParams{walk.groups, walk.members, epsilon, walk.params}, walk.work_groups());
  };
  return Match::yes(std::move(c));
}

Match match_batch_norm_gradient(const MatchCall& m) { return match_gradient_of_norm(m, "batch_norm_gradient", false); }

Match match_batch_norm_training_gradient(const MatchCall& m) {
  return match_gradient_of_norm(m, "batch_norm_training_gradient", true);
}

}  // namespace

KernelFamily family_batch_norm() {
  static const KernelDef defs[] = {
      {"batch_norm_training", {"moka_batch_norm_training"}, match_batch_norm_training},
      {"batch_norm_gradient", {"moka_batch_norm_gradient"}, match_batch_norm_gradient},
      {"batch_norm_training_gradient", {"moka_batch_norm_training_gradient"}, match_batch_norm_training_gradient}};
  return {defs};
}

}  // namespace moka::devices::gpu
