// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/kernels/family.h"

namespace moka::devices::gpu {

namespace {

Match match_sgd_step(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"weight"}); !why.empty()) return Match::no(why);
  const auto index = [&](std::string_view param) { return m.call.arg_index(param); };
  const std::array<int, 5> in{index("weight"), index("gradient"), index("velocity"), index("learning_rate"),
                              index("momentum")};
  const uint32_t n = u32(m.outputs[0].shape().count());
  KernelChoice c = choice_of(m, "sgd_step", {"weight", "gradient", "velocity", "learning_rate", "momentum"});
  c.updates = {in[0], in[2]};
  set_cost(c, m);
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    std::vector<Use> uses;
    for (int i : in) uses.push_back(Use::read(view(args.in, i)));
    for (const BufferView& out : args.out) uses.push_back(Use::write(out));
    return recorder_of(recorder).dispatch("sgd_step_f32", {}, std::move(uses), n, CommandRecorder::lines(n));
  };
  return Match::yes(std::move(c));
}

/// The scalars are brought together first, because a dispatch has fewer bindings than there are inputs and outputs.
Match match_adam_step(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"weight"}); !why.empty()) return Match::no(why);
  const auto index = [&](std::string_view param) { return m.call.arg_index(param); };
  const std::array<int, 4> in{index("weight"), index("gradient"), index("first_moment"), index("second_moment")};
  const std::array<int, 5> numbers{index("learning_rate"), index("beta_1"), index("beta_2"), index("epsilon"),
                                   index("step")};
  const uint32_t n = u32(m.outputs[0].shape().count());
  KernelChoice c = choice_of(
      m, "adam_step",
      {"weight", "gradient", "first_moment", "second_moment", "learning_rate", "beta_1", "beta_2", "epsilon", "step"});
  c.updates = {in[0], in[2], in[3]};
  c.scratch = numbers.size() * 4;
  set_cost(c, m);
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    CommandRecorder& r = recorder_of(recorder);
    const Use together = scratch_of(args, static_cast<int64_t>(numbers.size()));
    for (size_t i = 0; i < numbers.size(); i++)
      r.copy(Use::read(view(args.in, numbers[i])), together.part(static_cast<int64_t>(i), 1));
    std::vector<Use> uses;
    for (int i : in) uses.push_back(Use::read(view(args.in, i)));
    uses.push_back(together.to_read());
    for (const BufferView& out : args.out) uses.push_back(Use::write(out));
    return r.dispatch("adam_step_f32", {}, std::move(uses), n, CommandRecorder::lines(n));
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_optimizer() {
  static const KernelDef defs[] = {{"sgd_step", {"moka_sgd_step"}, match_sgd_step},
                                   {"adam_step", {"moka_adam_step"}, match_adam_step}};
  return {defs};
}

}  // namespace moka::devices::gpu
