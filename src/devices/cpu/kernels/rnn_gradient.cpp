// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/recurrent_gradient.h"
#include "devices/cpu/kernels/family.h"

namespace moka::devices::cpu {

namespace {

/// Steps of a plain recurrent layer of known sizes, backwards.
struct RnnBack {
  int64_t steps, batch, hidden;
  int x_gates, weight_hh, initial_h, y, dy, dh;
  ops::Gate activation;
  StepWeights weights;
  int threads = 1;

  Status run(const KernelArgs& args) const;

 private:
  struct Memory {
    const float *y, *dy, *ahead, *back;
    float *gates, *states, *dh;
  };
  /// States become those before each step, gates the gradients of the products.
  void walk(const Memory& m, int64_t first, int64_t rows) const;
};

void RnnBack::walk(const Memory& m, int64_t first, int64_t rows) const {
  const int64_t n = rows * hidden, own = first * hidden, step = batch * hidden;
  const auto f = activation_of_gate(activation);
  for (int64_t t = 0; t < steps; t++) {
    const int64_t at = t * step + own;
    float* now = m.gates + at;
    if (m.y == nullptr) {
      weights.add_gates(m.ahead, m.states + at, rows, 0, 1, now);
      apply(f, now, n);
    } else {
      std::copy_n(m.y + at, n, now);
    }
    if (t + 1 < steps) std::copy_n(now, n, m.states + at + step);
  }
  float* d = m.dh + own;
  for (int64_t t = steps - 1; t >= 0; t--) {
    const int64_t at = t * step + own;
    if (m.dy != nullptr) vector::loops().accumulate(vector::Reduce::sum, d, m.dy + at, n);
    multiply_by_slope(activation, m.gates + at, d, m.gates + at, n);
    weights.to_state(m.back, 0, m.gates + at, rows, d, false);
  }
}

Status RnnBack::run(const KernelArgs& args) const {
  const int64_t states = batch * hidden;
  auto* const ahead = reinterpret_cast<float*>(args.scratch);
  float* const back = ahead + weights.floats();
  const Memory m{data_of(args, y),        data_of(args, dy),      ahead, back, args.out[0].as<float>(),
                 args.out[2].as<float>(), args.out[1].as<float>()};
  weights.pack_transposed(data_of(args, weight_hh), back);
  std::copy_n(data_of(args, initial_h), states, m.states);
  std::copy_n(data_of(args, dh), states, m.dh);
  if (m.y == nullptr) {
    weights.pack(data_of(args, weight_hh), ahead);
    std::copy_n(data_of(args, x_gates), steps * states, m.gates);
  }
  divide_batch(threads, batch, [&](int64_t first, int64_t rows) { walk(m, first, rows); });
  return {};
}

Match match_rnn_gradient(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x_gates", "weight_hh"}); !why.empty()) return Match::no(why);
  auto activation = ops::gate_of(m.call, "activation");
  if (!activation.ok()) return Match::no("an activation that is not constant");
  const ir::Shape& x = m.call.shape("x_gates");
  const int64_t hidden = m.call.shape("weight_hh")[1];
  const auto at = [&](std::string_view p) { return m.call.arg_index(p); };
  RnnBack back{x[0],    x[1],     hidden,   at("x_gates"), at("weight_hh"),          at("initial_h"),
               at("y"), at("dy"), at("dh"), *activation,   StepWeights(1, hidden, 1)};
  const double flops = 4.0 * static_cast<double>(x.count()) * static_cast<double>(hidden);
  const size_t scratch = sizeof(float) * static_cast<size_t>(back.weights.floats() + back.weights.transposed_floats());
  return gradient_kernel(m, "cpu.rnn_gradient", std::move(back), flops, scratch);
}

}  // namespace

KernelFamily family_rnn_gradient() {
  static const KernelDef defs[] = {
      {.name = "cpu.rnn_gradient", .ops = {"moka_rnn_gradient"}, .match = match_rnn_gradient}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
