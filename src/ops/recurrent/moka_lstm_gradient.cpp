// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/common/common.h"
#include "ops/common/recurrent_gradient.h"
#include "ops/common/runs.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_lstm_gradient(const OpCall& call) {
  MOKA_TRY(recurrent_gate_of(call));
  for (const char* p : {"cell_activation", "activation"}) MOKA_TRY(gate_of(call, p));
  bool unranked = false;
  const RecurrentSizes s = MOKA_TRY(recurrent_gradient_sizes(call, 4, unranked));
  const DType dtype = call.dtype("x_gates");
  if (unranked) return std::vector<Type>(5, Type::unranked(dtype));
  const int64_t gates = s.hidden < 0 ? kAnyDim : 4 * s.hidden, peeps = s.hidden < 0 ? kAnyDim : 3 * s.hidden;
  for (const char* p : {"initial_c", "dc"}) MOKA_TRY(check_shape(call, p, {s.batch, s.hidden}));
  if (call.has("peephole")) MOKA_TRY(check_shape(call, "peephole", {peeps}));
  if (call.has("clip")) {
    const double clip = MOKA_TRY(call.number("clip"));
    if (!(clip >= 0)) return call.error("clip", "0 or more", cat(clip));
  }
  const Type state = Type::tensor(dtype, {s.batch, s.hidden});
  return std::vector<Type>{Type::tensor(dtype, {s.steps, s.batch, gates}), state, state, Type::tensor(dtype, {peeps}),
                           Type::tensor(dtype, {s.steps, s.batch, s.hidden})};
}

/// The steps of one row of the batch. Gates are in the order input, forget, output, cell.
struct LstmRow {
  const TensorView& weight_hh;
  const double *peephole, *y, *dy;  // null: none; y and dy of step t begin at t * step
  RecurrentGate recurrent;
  Gate cell, activation;
  double clip;
  int64_t steps, hidden, step;

  std::vector<double> states, cells;  // of all steps, with those before the first one

  void forward(int64_t t, double* z);
  void backward(int64_t t, double* z, double* dh, double* dc, double* d_peephole) const;
};

void LstmRow::forward(int64_t t, double* z) {
  double *h = states.data() + t * hidden, *c = cells.data() + t * hidden, *next = c + hidden;
  add_product(weight_hh, 0, 4 * hidden, hidden, h, z);
  if (peephole != nullptr)
    for (int64_t i = 0; i < 2 * hidden; ++i) z[i] += peephole[i] * c[i % hidden];
  apply_gate(recurrent.gate, z, 2 * hidden);
  for (int64_t i = 0; recurrent.is_coupled && i < hidden; ++i) z[hidden + i] = 1 - z[i];
  apply_gate(cell, z + 3 * hidden, hidden);
  for (int64_t i = 0; i < hidden; ++i) {
    next[i] = std::min(std::max(z[hidden + i] * c[i] + z[i] * z[3 * hidden + i], -clip), clip);
    if (peephole != nullptr) z[2 * hidden + i] += peephole[2 * hidden + i] * next[i];
  }
  apply_gate(recurrent.gate, z + 2 * hidden, hidden);
  std::vector<double> squashed(next, next + hidden);
  apply_gate(activation, squashed.data(), hidden);
  for (int64_t i = 0; i < hidden; ++i)
    h[hidden + i] = y != nullptr ? y[t * step + i] : z[2 * hidden + i] * squashed[static_cast<size_t>(i)];
}

void LstmRow::backward(int64_t t, double* z, double* dh, double* dc, double* d_peephole) const {
  const double *c = cells.data() + t * hidden, *next = c + hidden;
  const Gate& r = recurrent.gate;
  for (int64_t i = 0; i < hidden; ++i) {
    double &in = z[i], &forget = z[hidden + i], &out = z[2 * hidden + i], &fresh = z[3 * hidden + i];
    const double d = dh[i] + (dy != nullptr ? dy[t * step + i] : 0);
    double squashed = next[i];
    apply_gate(activation, &squashed, 1);
    const double d_out = d * squashed * gate_slope(r, out);
    double d_cell = dc[i] + d * out * gate_slope(activation, squashed);
    if (peephole != nullptr) d_cell += d_out * peephole[2 * hidden + i];
    if (std::fabs(forget * c[i] + in * fresh) > clip) d_cell = 0;
    const double from_forget = d_cell * c[i];
    const double d_in = (d_cell * fresh - (recurrent.is_coupled ? from_forget : 0)) * gate_slope(r, in);
    const double d_forget = recurrent.is_coupled ? 0 : from_forget * gate_slope(r, forget);
    const double d_fresh = d_cell * in * gate_slope(cell, fresh);
    dc[i] = d_cell * forget;
    if (peephole != nullptr) {
      dc[i] += d_in * peephole[i] + d_forget * peephole[hidden + i];
      d_peephole[i] += d_in * c[i];
      d_peephole[hidden + i] += d_forget * c[i];
      d_peephole[2 * hidden + i] += d_out * next[i];
    }
    in = d_in;
    forget = d_forget;
    out = d_out;
    fresh = d_fresh;
  }
  std::fill_n(dh, hidden, 0.0);
  add_transposed_product(weight_hh, 0, 4 * hidden, hidden, z, dh);
}

Status lstm_gradient_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& weight_hh = call.in("weight_hh");
  const int64_t steps = out[0].shape[0], batch = out[0].shape[1], hidden = weight_hh.shape[1];
  const auto given = [&](std::string_view p) { return call.has(p) ? doubles_of(call.in(p)) : std::vector<double>(); };
  const std::vector<double> initial_h = given("initial_h"), initial_c = given("initial_c"), y = given("y"),
                            dy = given("dy"), peephole = given("peephole");
  std::vector<double> gates = given("x_gates"), dh = given("dh"), dc = given("dc");
  std::vector<double> d_peephole(static_cast<size_t>(3 * hidden)), before(static_cast<size_t>(out[4].count())),
      z(static_cast<size_t>(steps * 4 * hidden));
  const auto from = [](const std::vector<double>& v, int64_t at) { return v.empty() ? nullptr : v.data() + at; };
  for (int64_t b = 0; b < batch; ++b) {
    LstmRow row{weight_hh,
                from(peephole, 0),
                from(y, b * hidden),
                from(dy, b * hidden),
                MOKA_TRY(recurrent_gate_of(call)),
                MOKA_TRY(gate_of(call, "cell_activation")),
                MOKA_TRY(gate_of(call, "activation")),
                call.has("clip") ? MOKA_TRY(call.number("clip")) : INFINITY,
                steps,
                hidden,
                batch * hidden};
    row.states.resize(static_cast<size_t>((steps + 1) * hidden));
    row.cells = row.states;
    std::copy_n(initial_h.data() + b * hidden, hidden, row.states.data());
    std::copy_n(initial_c.data() + b * hidden, hidden, row.cells.data());
    for (int64_t t = 0; t < steps; ++t) {
      std::copy_n(gates.data() + (t * batch + b) * 4 * hidden, 4 * hidden, z.data() + t * 4 * hidden);
      row.forward(t, z.data() + t * 4 * hidden);
      std::copy_n(row.states.data() + t * hidden, hidden, before.data() + (t * batch + b) * hidden);
    }
    for (int64_t t = steps - 1; t >= 0; --t) {
      row.backward(t, z.data() + t * 4 * hidden, dh.data() + b * hidden, dc.data() + b * hidden, d_peephole.data());
      std::copy_n(z.data() + t * 4 * hidden, 4 * hidden, gates.data() + (t * batch + b) * 4 * hidden);
    }
  }
  const std::vector<double>* const results[] = {&gates, &dh, &dc, &d_peephole, &before};
  for (size_t i = 0; i < 5; ++i) store_doubles(out[i], *results[i]);
  return {};
}

}  // namespace

OpDef define_moka_lstm_gradient() {
  return recurrent_gradient_builder(
             "moka_lstm_gradient",
             "Walks one direction of an lstm backwards. From the products x_gates of x with its weights and the "
             "gradients of the results: the gradients of these products, of initial_h, initial_c and peephole; and the "
             "hidden state before each step. Steps are in the order of computation.")
      .in("initial_c", "T")
      .in("peephole", "T")
      .optional()
      .in("dc", "T")
      .constant("recurrent_activation", kString)
      .or_else(Tensor::text("sigmoid"))
      .constant("cell_activation", kString)
      .or_else(Tensor::text("tanh"))
      .constant("activation", kString)
      .or_else(Tensor::text("tanh"))
      .constant("clip", "T")
      .optional()
      .infer(infer_lstm_gradient)
      .reference(lstm_gradient_reference)
      .note("The products of all steps give the gradients of x, of the weights and of the bias.",
            "torch.nn.LSTM with torch.autograd")
      .note("y holds the hidden states, if they are known. Without it they are computed again.",
            "they are those of the lstm")
      .note("A cell state that clip limits has no gradient. One that is exactly at the limit has.",
            "torch.clamp with torch.autograd")
      .build();
}

}  // namespace moka::ops
