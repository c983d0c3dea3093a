// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "devices/cpu/common/recurrent_gradient.h"
#include "devices/cpu/kernels/family.h"

namespace moka::devices::cpu {

using vector::Binary;
using vector::loops;
using vector::Unary;

namespace {

/// Steps of an LSTM of known sizes, backwards.
struct LstmBack {
  int64_t steps, batch, hidden;
  int x_gates, weight_hh, initial_h, initial_c, y, dy, dh, dc, peephole;
  ops::RecurrentGate recurrent;
  ops::Gate cell, activation;
  float clip;
  StepWeights weights;
  int threads = 1;

  size_t scratch() const {
    return sizeof(float) * static_cast<size_t>((steps + 1) * batch * hidden + weights.floats() +
                                               weights.transposed_floats() + batch * kRowParts * hidden);
  }
  Status run(const KernelArgs& args) const;

 private:
  static constexpr int64_t kRowParts = 3;  ///< of scratch memory, each of `hidden` floats
  /// What all rows share. Row-major: gates [steps, batch, 4, hidden], states [steps, batch, hidden], before each step,
  /// and cells [steps + 1, batch, hidden].
  struct Memory {
    const float *y, *dy, *peephole, *ahead, *back;
    float *gates, *states, *cells, *dh, *dc, *rows;
  };
  void known_states(const Memory& m) const;
  void walk(const Memory& m, int64_t first, int64_t rows) const;
  void forward_row(const Memory& m, int64_t t, int64_t b) const;
  void backward_row(const Memory& m, int64_t t, int64_t b) const;
  void through_gates(const float* c, const float* p, float* gates, float* dc, float* d, float* more) const;
  void peephole_gradient(const Memory& m, float* to) const;
};

/// Adds the products with states that are known.
void LstmBack::known_states(const Memory& m) const {
  constexpr int64_t kRows = 128;
  const int64_t all = steps * batch, parts = (all + kRows - 1) / kRows;
  std::copy_n(m.y, (steps - 1) * batch * hidden, m.states + batch * hidden);
  kernel::parallel_for(threads, parts, [&](int64_t i, int) {
    const int64_t first = all * i / parts, rows = all * (i + 1) / parts - first;
    weights.add_gates(m.ahead, m.states + first * hidden, rows, 0, 4, m.gates + first * 4 * hidden);
  });
}

void LstmBack::forward_row(const Memory& m, int64_t t, int64_t b) const {
  const int64_t n = hidden;
  float *i = m.gates + (t * batch + b) * 4 * n, *f = i + n, *o = f + n, *fresh = o + n;
  const float* c = m.cells + (t * batch + b) * n;
  float *next = m.cells + ((t + 1) * batch + b) * n, *product = m.rows + b * kRowParts * n;
  const auto squash = activation_of_gate(recurrent.gate);
  if (m.peephole != nullptr) {
    loops().multiply_add(m.peephole, c, i, i, n);
    loops().multiply_add(m.peephole + n, c, f, f, n);
  }
  apply(squash, i, n);
  constexpr float one = 1;
  if (recurrent.is_coupled)
    loops().binary(Binary::sub, &one, 0, i, 1, f, n);
  else
    apply(squash, f, n);
  apply(activation_of_gate(cell), fresh, n);
  loops().binary(Binary::mul, i, 1, fresh, 1, product, n);
  loops().multiply_add(f, c, product, next, n);
  if (clip != INFINITY) loops().unary(Unary::clip, next, next, n, -clip, clip);
  if (m.peephole != nullptr) loops().multiply_add(m.peephole + 2 * n, next, o, o, n);
  apply(squash, o, n);
  if (m.y != nullptr || t + 1 == steps) return;
  float* h = m.states + ((t + 1) * batch + b) * n;
  std::copy_n(next, n, h);
  apply(activation_of_gate(activation), h, n);
  loops().binary(Binary::mul, o, 1, h, 1, h, n);
}

/// From the gradient dc of the new cell state to those of all gates but the output gate, and of the old cell state.
void LstmBack::through_gates(const float* c, const float* p, float* i, float* dc, float* d, float* more) const {
  const int64_t n = hidden;
  float *f = i + n, *fresh = f + 2 * n;
  loops().binary(Binary::mul, dc, 1, i, 1, d, n);         // of the fresh value
  loops().binary(Binary::mul, dc, 1, fresh, 1, more, n);  // of the input gate
  multiply_by_slope(cell, fresh, d, fresh, n);
  loops().binary(Binary::mul, dc, 1, c, 1, d, n);  // of the forget gate
  if (recurrent.is_coupled) loops().binary(Binary::sub, more, 1, d, 1, more, n);
  multiply_by_slope(recurrent.gate, i, more, i, n);
  loops().binary(Binary::mul, dc, 1, f, 1, dc, n);
  if (recurrent.is_coupled)
    std::fill_n(f, n, 0.0f);
  else
    multiply_by_slope(recurrent.gate, f, d, f, n);
  if (p == nullptr) return;
  loops().multiply_add(i, p, dc, dc, n);
  loops().multiply_add(f, p + n, dc, dc, n);
}

void LstmBack::backward_row(const Memory& m, int64_t t, int64_t b) const {
  const int64_t n = hidden;
  float *i = m.gates + (t * batch + b) * 4 * n, *f = i + n, *o = f + n, *fresh = o + n;
  const float *c = m.cells + (t * batch + b) * n, *next = c + batch * n;
  float *dh = m.dh + b * n, *dc = m.dc + b * n;
  float *squashed = m.rows + b * kRowParts * n, *d = squashed + n, *more = d + n;
  if (m.dy != nullptr) loops().accumulate(vector::Reduce::sum, dh, m.dy + (t * batch + b) * n, n);
  std::copy_n(next, n, squashed);
  apply(activation_of_gate(activation), squashed, n);
  loops().binary(Binary::mul, dh, 1, o, 1, d, n);
  multiply_by_slope(activation, squashed, d, d, n);
  loops().binary(Binary::add, dc, 1, d, 1, dc, n);
  loops().binary(Binary::mul, dh, 1, squashed, 1, d, n);
  multiply_by_slope(recurrent.gate, o, d, o, n);
  if (m.peephole != nullptr) loops().multiply_add(o, m.peephole + 2 * n, dc, dc, n);
  for (int64_t k = 0; k < n && clip != INFINITY; k++)
    if (std::fabs(f[k] * c[k] + i[k] * fresh[k]) > clip) dc[k] = 0;
  through_gates(c, m.peephole, i, dc, d, more);
}

void LstmBack::walk(const Memory& m, int64_t first, int64_t rows) const {
  for (int64_t t = 0; t < steps; t++) {
    if (m.y == nullptr)
      weights.add_gates(m.ahead, m.states + (t * batch + first) * hidden, rows, 0, 4,
                        m.gates + (t * batch + first) * 4 * hidden);
    for (int64_t b = first; b < first + rows; b++) forward_row(m, t, b);
  }
  for (int64_t t = steps - 1; t >= 0; t--) {
    for (int64_t b = first; b < first + rows; b++) backward_row(m, t, b);
    weights.to_state(m.back, 0, m.gates + (t * batch + first) * 4 * hidden, rows, m.dh + first * hidden, false);
  }
}

void LstmBack::peephole_gradient(const Memory& m, float* to) const {
  std::fill_n(to, 3 * hidden, 0.0f);
  if (m.peephole == nullptr) return;
  std::vector<double> sums(static_cast<size_t>(3 * hidden));
  for (int64_t r = 0; r < steps * batch; r++)
    for (int64_t i = 0; i < 3 * hidden; i++) {
      const float* c = m.cells + (i < 2 * hidden ? r : r + batch) * hidden;
      sums[static_cast<size_t>(i)] +=
          static_cast<double>(m.gates[r * 4 * hidden + i]) * static_cast<double>(c[i % hidden]);
    }
  for (int64_t i = 0; i < 3 * hidden; i++) to[i] = static_cast<float>(sums[static_cast<size_t>(i)]);
}

Status LstmBack::run(const KernelArgs& args) const {
  const int64_t states = batch * hidden;
  auto* const scratch = reinterpret_cast<float*>(args.scratch);
  float* const ahead = scratch + (steps + 1) * states;
  float* const back = ahead + weights.floats();
  Memory m{data_of(args, y),
           data_of(args, dy),
           data_of(args, peephole),
           ahead,
           back,
           args.out[0].as<float>(),
           args.out[4].as<float>(),
           scratch,
           args.out[1].as<float>(),
           args.out[2].as<float>(),
           back + weights.transposed_floats()};
  weights.pack(data_of(args, weight_hh), ahead);
  weights.pack_transposed(data_of(args, weight_hh), back);
  std::copy_n(data_of(args, x_gates), steps * states * 4, m.gates);
  std::copy_n(data_of(args, initial_h), states, m.states);
  std::copy_n(data_of(args, initial_c), states, m.cells);
  std::copy_n(data_of(args, dh), states, m.dh);
  std::copy_n(data_of(args, dc), states, m.dc);
  if (m.y != nullptr) known_states(m);
  divide_batch(threads, batch, [&](int64_t first, int64_t rows) { walk(m, first, rows); });
  peephole_gradient(m, args.out[3].as<float>());
  return {};
}

Match match_lstm_gradient(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x_gates", "weight_hh"}); !why.empty()) return Match::no(why);
  auto recurrent = ops::recurrent_gate_of(m.call);
  auto cell = ops::gate_of(m.call, "cell_activation"), activation = ops::gate_of(m.call, "activation");
  if (!recurrent.ok() || !cell.ok() || !activation.ok()) return Match::no("settings that are not constant");
  float clip = INFINITY;
  if (m.call.has("clip")) {
    auto v = m.call.number("clip");
    if (!v.ok()) return Match::no("a clip that is not constant");
    clip = static_cast<float>(*v);
  }
  const ir::Shape& x = m.call.shape("x_gates");
  const int64_t hidden = m.call.shape("weight_hh")[1];
  const auto at = [&](std::string_view p) { return m.call.arg_index(p); };
  LstmBack back{x[0],
                x[1],
                hidden,
                at("x_gates"),
                at("weight_hh"),
                at("initial_h"),
                at("initial_c"),
                at("y"),
                at("dy"),
                at("dh"),
                at("dc"),
                at("peephole"),
                *recurrent,
                *cell,
                *activation,
                clip,
                StepWeights(4, hidden, 1)};
  const double flops = 4.0 * static_cast<double>(x.count()) * static_cast<double>(hidden);
  const size_t scratch = back.scratch();
  return gradient_kernel(m, "cpu.lstm_gradient", std::move(back), flops, scratch);
}

}  // namespace

KernelFamily family_lstm_gradient() {
  static const KernelDef defs[] = {
      {.name = "cpu.lstm_gradient", .ops = {"moka_lstm_gradient"}, .match = match_lstm_gradient}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
