// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/recurrent_gradient.h"
#include "devices/cpu/kernels/family.h"

namespace moka::devices::cpu {

using vector::Binary;
using vector::loops;

namespace {

/// Steps of a GRU of known sizes, backwards. Gates are in the order reset, new, update.
struct GruBack {
  int64_t steps, batch, hidden;
  bool after;
  int x_gates, weight_hh, initial_h, bias, y, dy, dh;
  ops::Gate recurrent, activation;
  StepWeights weights;
  int threads = 1;

  size_t scratch() const {
    return sizeof(float) *
           static_cast<size_t>(weights.floats() + weights.transposed_floats() + (steps + 2) * batch * hidden);
  }
  Status run(const KernelArgs& args) const;

 private:
  /// Row-major: gates and products [steps, batch, 3, hidden], states and kept [steps, batch, hidden], `fresh` the
  /// products of the new value [steps, batch, hidden], d [2, batch, hidden].
  struct Memory {
    const float *y, *dy, *bias, *ahead, *back;
    float *gates, *products, *dh, *states, *kept, *fresh, *d;
  };
  void walk(const Memory& m, int64_t first, int64_t rows) const;
  void forward(const Memory& m, int64_t t, int64_t first, int64_t rows) const;
  void forward_row(const Memory& m, int64_t row) const;
  void new_row(const Memory& m, int64_t t, int64_t b) const;
  void backward(const Memory& m, int64_t t, int64_t first, int64_t rows) const;
  void gates_row(const Memory& m, int64_t t, int64_t b) const;
  void reset_row(const Memory& m, int64_t t, int64_t b) const;
};

/// The reset and update gates, and what the weights of the new value multiply.
void GruBack::forward_row(const Memory& m, int64_t row) const {
  const int64_t n = hidden;
  float *z = m.gates + row * 3 * n, *product = m.products + row * 3 * n;
  for (const int64_t gate : {int64_t{0}, 2 * n}) {
    loops().binary(Binary::add, z + gate, 1, product + gate, 1, z + gate, n);
    apply(activation_of_gate(recurrent), z + gate, n);
  }
  if (after)
    std::copy_n(m.states + row * n, n, m.kept + row * n);
  else
    loops().binary(Binary::mul, z, 1, m.states + row * n, 1, m.kept + row * n, n);
}

void GruBack::new_row(const Memory& m, int64_t t, int64_t b) const {
  const int64_t n = hidden, row = t * batch + b;
  float *z = m.gates + row * 3 * n, *fresh = z + n, *update = fresh + n, *product = m.products + row * 3 * n + n;
  if (after)
    loops().multiply_add(z, product, fresh, fresh, n);
  else
    loops().binary(Binary::add, fresh, 1, product, 1, fresh, n);
  apply(activation_of_gate(activation), fresh, n);
  std::copy_n(product, n, m.fresh + row * n);
  if (m.y != nullptr || t + 1 == steps) return;
  constexpr float one = 1;
  float *h = m.states + (row + batch) * n, *rest = m.d + b * n;
  loops().binary(Binary::mul, update, 1, m.states + row * n, 1, h, n);
  loops().binary(Binary::sub, &one, 0, update, 1, rest, n);
  loops().multiply_add(rest, fresh, h, h, n);
}

void GruBack::forward(const Memory& m, int64_t t, int64_t first, int64_t rows) const {
  const int64_t row = t * batch + first;
  float* products = m.products + row * 3 * hidden;
  for (int64_t r = 0; r < rows; r++)
    if (m.bias == nullptr)
      std::fill_n(products + r * 3 * hidden, 3 * hidden, 0.0f);
    else
      std::copy_n(m.bias, 3 * hidden, products + r * 3 * hidden);
  const float* h = m.states + row * hidden;
  weights.add_gates(m.ahead, h, rows, 0, 1, products);
  weights.add_gates(m.ahead, h, rows, 2, 3, products);
  for (int64_t r = row; r < row + rows; r++) forward_row(m, r);
  weights.add_gates(m.ahead, m.kept + row * hidden, rows, 1, 2, products);
  for (int64_t b = first; b < first + rows; b++) new_row(m, t, b);
}

/// The gradients of the new value and of the update gate. What remains of dh is that of the old state through the
/// update gate.
void GruBack::gates_row(const Memory& m, int64_t t, int64_t b) const {
  const int64_t n = hidden, row = t * batch + b;
  float *reset = m.gates + row * 3 * n, *fresh = reset + n, *update = fresh + n, *product = m.products + row * 3 * n;
  float *dh = m.dh + b * n, *d = m.d + b * n;
  if (m.dy != nullptr) loops().accumulate(vector::Reduce::sum, dh, m.dy + row * n, n);
  loops().binary(Binary::sub, m.states + row * n, 1, fresh, 1, d, n);
  loops().binary(Binary::mul, d, 1, dh, 1, d, n);
  multiply_by_slope(recurrent, update, d, product + 2 * n, n);
  constexpr float one = 1;
  loops().binary(Binary::sub, &one, 0, update, 1, d, n);
  loops().binary(Binary::mul, d, 1, dh, 1, d, n);
  multiply_by_slope(activation, fresh, d, fresh, n);
  loops().binary(Binary::mul, dh, 1, update, 1, dh, n);
  std::copy_n(product + 2 * n, n, update);
  if (after)
    loops().binary(Binary::mul, fresh, 1, reset, 1, product + n, n);
  else
    std::copy_n(fresh, n, product + n);
}

/// The gradient of the reset gate.
void GruBack::reset_row(const Memory& m, int64_t t, int64_t b) const {
  const int64_t n = hidden, row = t * batch + b;
  float *reset = m.gates + row * 3 * n, *product = m.products + row * 3 * n, *dh = m.dh + b * n, *d = m.d + b * n;
  if (after) {
    loops().binary(Binary::mul, reset + n, 1, m.fresh + row * n, 1, d, n);
  } else {
    loops().multiply_add(d, reset, dh, dh, n);
    loops().binary(Binary::mul, d, 1, m.states + row * n, 1, d, n);
  }
  multiply_by_slope(recurrent, reset, d, reset, n);
  std::copy_n(reset, n, product);
}

void GruBack::backward(const Memory& m, int64_t t, int64_t first, int64_t rows) const {
  float *products = m.products + (t * batch + first) * 3 * hidden, *dh = m.dh + first * hidden;
  for (int64_t b = first; b < first + rows; b++) gates_row(m, t, b);
  if (!after) weights.to_state(m.back, 1, products, rows, m.d + first * hidden, false);
  for (int64_t b = first; b < first + rows; b++) reset_row(m, t, b);
  weights.to_state(m.back, 0, products, rows, dh, true);
  if (!after) weights.to_state(m.back, 2, products, rows, dh, true);
}

void GruBack::walk(const Memory& m, int64_t first, int64_t rows) const {
  for (int64_t t = 0; t < steps; t++) forward(m, t, first, rows);
  for (int64_t t = steps - 1; t >= 0; t--) backward(m, t, first, rows);
}

Status GruBack::run(const KernelArgs& args) const {
  const int64_t states = batch * hidden;
  auto* const ahead = reinterpret_cast<float*>(args.scratch);
  float* const back = ahead + weights.floats();
  float* const fresh = back + weights.transposed_floats();
  const Memory m{data_of(args, y),
                 data_of(args, dy),
                 data_of(args, bias),
                 ahead,
                 back,
                 args.out[0].as<float>(),
                 args.out[1].as<float>(),
                 args.out[2].as<float>(),
                 args.out[3].as<float>(),
                 args.out[4].as<float>(),
                 fresh,
                 fresh + steps * states};
  weights.pack(data_of(args, weight_hh), ahead);
  weights.pack_transposed(data_of(args, weight_hh), back);
  std::copy_n(data_of(args, x_gates), steps * states * 3, m.gates);
  std::copy_n(data_of(args, initial_h), states, m.states);
  if (m.y != nullptr) std::copy_n(m.y, (steps - 1) * states, m.states + states);
  std::copy_n(data_of(args, dh), states, m.dh);
  divide_batch(threads, batch, [&](int64_t first, int64_t rows) { walk(m, first, rows); });
  return {};
}

Match match_gru_gradient(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x_gates", "weight_hh"}); !why.empty()) return Match::no(why);
  auto recurrent = ops::gate_of(m.call, "recurrent_activation"), activation = ops::gate_of(m.call, "activation");
  auto after = m.call.flag("reset_after");
  if (!recurrent.ok() || !activation.ok() || !after.ok()) return Match::no("settings that are not constant");
  const ir::Shape& x = m.call.shape("x_gates");
  const int64_t hidden = m.call.shape("weight_hh")[1];
  const auto at = [&](std::string_view p) { return m.call.arg_index(p); };
  GruBack back{
      x[0],       x[1],    hidden,   *after,   at("x_gates"), at("weight_hh"), at("initial_h"),
      at("bias"), at("y"), at("dy"), at("dh"), *recurrent,    *activation,     StepWeights(3, hidden, *after ? 1 : 3)};
  const double flops = 8.0 * static_cast<double>(x.count()) * static_cast<double>(hidden);
  const size_t scratch = back.scratch();
  return gradient_kernel(m, "cpu.gru_gradient", std::move(back), flops, scratch);
}

}  // namespace

KernelFamily family_gru_gradient() {
  static const KernelDef defs[] = {
      {.name = "cpu.gru_gradient", .ops = {"moka_gru_gradient"}, .match = match_gru_gradient}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
