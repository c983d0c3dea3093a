// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "devices/cpu/common/common.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/gradients.h"

namespace moka::devices::cpu {

namespace {

using vector::gradients;
using vector::Gradients;

/// Calls `run` with ranges of elements. `updates`: as KernelChoice::updates.
template <class Run>
KernelChoice optimizer_choice(const MatchCall& m, std::string_view name, std::vector<int> updates, Run run) {
  const Chunks chunks{m.outputs[0].shape().count()};
  KernelChoice c;
  c.kernel = name;
  c.tiles = chunks.tiles();
  c.cost = cost_of(m, 0, traffic(m));
  c.updates = std::move(updates);
  c.run = [=](const KernelArgs& args) -> Status {
    const int64_t first = chunks.first(args.begin);
    run(args, first, chunks.first(args.end) - first);
    return {};
  };
  return c;
}

Match match_sgd_step(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"weight"}); !why.empty()) return Match::no(why);
  const int weight = m.call.arg_index("weight"), gradient = m.call.arg_index("gradient"),
            velocity = m.call.arg_index("velocity"), rate = m.call.arg_index("learning_rate"),
            momentum = m.call.arg_index("momentum");
  return Match::yes(
      optimizer_choice(m, "cpu.sgd_step", {weight, velocity}, [=](const KernelArgs& args, int64_t first, int64_t n) {
        gradients().sgd(data_of(args, weight) + first, data_of(args, gradient) + first, data_of(args, velocity) + first,
                        *data_of(args, rate), *data_of(args, momentum), args.out[0].as<float>() + first,
                        args.out[1].as<float>() + first, n);
      }));
}

Match match_adam_step(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"weight"}); !why.empty()) return Match::no(why);
  const int weight = m.call.arg_index("weight"), gradient = m.call.arg_index("gradient"),
            first_moment = m.call.arg_index("first_moment"), second_moment = m.call.arg_index("second_moment"),
            rate = m.call.arg_index("learning_rate"), beta_1 = m.call.arg_index("beta_1"),
            beta_2 = m.call.arg_index("beta_2"), epsilon = m.call.arg_index("epsilon"), step = m.call.arg_index("step");
  return Match::yes(optimizer_choice(
      m, "cpu.adam_step", {weight, first_moment, second_moment}, [=](const KernelArgs& args, int64_t first, int64_t n) {
        const auto number = [&](int i) { return static_cast<double>(*data_of(args, i)); };
        const double b1 = number(beta_1), b2 = number(beta_2);
        const Gradients::Adam numbers{
            .beta_1 = static_cast<float>(b1),
            .rest_1 = static_cast<float>(1 - b1),
            .beta_2 = static_cast<float>(b2),
            .rest_2 = static_cast<float>(1 - b2),
            .rate = static_cast<float>(number(rate) / (1 - std::pow(b1, number(step)))),
            .scale = static_cast<float>(1 / std::sqrt(1 - std::pow(b2, number(step)))),
            .epsilon = static_cast<float>(number(epsilon)),
        };
        const float* kept[] = {data_of(args, first_moment) + first, data_of(args, second_moment) + first};
        float* new_kept[] = {args.out[1].as<float>() + first, args.out[2].as<float>() + first};
        gradients().adam(numbers, data_of(args, weight) + first, data_of(args, gradient) + first, kept,
                         args.out[0].as<float>() + first, new_kept, n);
      }));
}

}  // namespace

KernelFamily family_optimizer() {
  static const KernelDef defs[] = {{.name = "cpu.sgd_step", .ops = {"moka_sgd_step"}, .match = match_sgd_step},
                                   {.name = "cpu.adam_step", .ops = {"moka_adam_step"}, .match = match_adam_step}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
