// SPDX-License-Identifier: Apache-2.0
#include "ops/common/recurrent.h"

#include <limits>

#include "compiler/onnx/call.h"
#include "compiler/onnx/limited_lstm.h"

namespace moka::compiler::onnx {
namespace {

using Blocks = std::vector<int>;

/// The names and numbers of activations as ONNX has them.
struct Activations {
  std::vector<std::string> names;
  std::vector<float> alpha, beta;

  void add(const ops::Gate& g) {
    using F = ops::Gate::Function;
    switch (g.f) {
      case F::tanh: return names.push_back("Tanh");
      case F::sigmoid: return names.push_back("Sigmoid");
      case F::relu: return names.push_back("Relu");
      case F::scaled_tanh: names.push_back("ScaledTanh"); break;
      case F::hard_sigmoid: names.push_back("HardSigmoid"); break;
      case F::linear: names.push_back("Affine"); break;
    }
    alpha.push_back(static_cast<float>(g.alpha));
    beta.push_back(static_cast<float>(g.beta));
  }
  void add_to(std::vector<ox::Attribute>& out) const {
    out.push_back(attr("activations", names));
    if (!alpha.empty()) out.push_back(attr("activation_alpha", alpha));
    if (!beta.empty()) out.push_back(attr("activation_beta", beta));
  }
};

/// The constants of all directions as one tensor [directions, ...], with the blocks of gates in another order. Each
/// part is a constant or absent, which is zeros; parts of one direction follow each other (the two biases).
class Stacked {
 public:
  Stacked(Call& c, DType type, int64_t hidden) : c_(c), type_(type), hidden_(hidden) {}

  void add(const char* param, const Blocks& order, int64_t columns) {
    const size_t row = static_cast<size_t>(hidden_ * columns);
    const size_t first = values_.size();
    values_.resize(first + row * order.size());
    if (param == nullptr || !c_.has(param)) return;
    const auto t = c_.constant(param);
    if (!t) return c_.refuse(cat(param, " is not a constant"));
    any_ = true;
    for (size_t block = 0; block < order.size(); block++)
      for (size_t i = 0; i < row; i++)
        values_[first + block * row + i] =
            ir::load_f64(t->view(), static_cast<int64_t>(static_cast<size_t>(order[block]) * row + i));
  }
  bool any() const { return any_; }
  Name make(const ir::Shape& shape) {
    ir::Tensor t = c_.take(ir::Tensor::uninitialized(type_, shape));
    if (c_.refused()) return {};
    for (int64_t i = 0; i < t.count(); i++) ir::store_f64(t.view(), i, values_[static_cast<size_t>(i)]);
    return c_.graph.tensor(t);
  }

 private:
  Call& c_;
  DType type_;
  int64_t hidden_;
  std::vector<double> values_;
  bool any_ = false;
};

/// A layer of any kind: sizes and directions.
struct Layer {
  int64_t hidden = 0, inputs = 0, directions = 1;
  ops::Direction direction = ops::Direction::forward;
  bool sequence = false;
};

Layer layer_of(Call& c, bool both_allowed) {
  Layer l;
  l.direction = c.take(ops::direction_of(c.known(), both_allowed));
  l.directions = l.direction == ops::Direction::bidirectional ? 2 : 1;
  const auto w = c.constant("weight_ih"), h = c.constant("weight_hh");
  if (!w || !h) {
    c.refuse("its weights are not constants");
    return l;
  }
  l.inputs = w->shape()[1];
  l.hidden = h->shape()[1];
  l.sequence = c.flag("output_sequence");
  return l;
}

/// [batch, directions * hidden] as [directions, batch, hidden].
Name state_in(Call& c, const char* param, const Layer& l) {
  const ir::Type& state = c.type(param);
  const ir::Type& x = c.type("x");
  Name v = c.x(param);
  if (state.is_ranked() && x.is_ranked() && state.shape()[0] != x.shape()[1] && x.shape()[1] >= 0 &&
      state.shape()[0] >= 0)
    v = c.slice(v, 0, 0, x.shape()[1]);
  if (l.directions == 1) return c.unsqueeze(v, {0});
  return c.transpose(c.reshape(v, {0, 2, l.hidden}), {1, 0, 2});
}

Name state_out(Call& c, const Name& v, const Layer& l) {
  if (l.directions == 1) return c.squeeze(v, {0});
  return c.reshape(c.transpose(v, {1, 0, 2}), {0, 2 * l.hidden});
}

/// Sets the first output from Y [steps, directions, batch, hidden], or the final state.
void set_sequence(Call& c, const Name& y, const Name& final_state, const Layer& l) {
  if (!l.sequence) return c.set(c.unsqueeze(final_state, {0}), 0);
  if (l.directions == 2) return c.set(c.reshape(c.transpose(y, {0, 2, 1, 3}), {0, 0, 2 * l.hidden}), 0);
  Name steps = c.squeeze(y, {1});
  // Steps are in the order of computation.
  if (l.direction == ops::Direction::reverse) steps = c.slice(steps, 0, -1, std::numeric_limits<int64_t>::min(), -1);
  c.set(steps, 0);
}

std::vector<ox::Attribute> attributes_of(const Layer& l) {
  std::vector<ox::Attribute> out{attr("hidden_size", l.hidden)};
  if (l.direction == ops::Direction::reverse) out.push_back(attr("direction", "reverse"));
  if (l.directions == 2) out.push_back(attr("direction", "bidirectional"));
  return out;
}

/// Whether the cell state cannot reach the limit: with gates of at most 1 it grows by at most 1 a step.
bool is_idle_clip(Call& c, const ops::RecurrentGate& gate) {
  using F = ops::Gate::Function;
  constexpr double most_steps = 10000;
  const ops::Gate cell = c.take(ops::gate_of(c.known(), "cell_activation"));
  const bool bounded = (gate.gate.f == F::sigmoid || gate.gate.f == F::hard_sigmoid) &&
                       (cell.f == F::tanh || cell.f == F::sigmoid || cell.f == F::hard_sigmoid);
  return bounded && c.number("clip") >= most_steps;
}

void lstm(Call& c) {
  const Layer l = layer_of(c, true);
  const auto gate = ops::recurrent_gate_of(c.known());
  if (!gate) return c.refuse(gate.error().to_string());
  if (c.refused()) return;
  if (c.has("clip") && !is_idle_clip(c, *gate)) return write_limited_lstm(c);
  const DType t = c.dtype("x");
  const Blocks order{0, 2, 1, 3}, peeps{0, 2, 1};  // input, output, forget, cell
  Stacked w(c, t, l.hidden), r(c, t, l.hidden), b(c, t, l.hidden), p(c, t, l.hidden);
  const char* const names[2][4] = {{"weight_ih", "weight_hh", "bias", "peephole"},
                                   {"weight_ih_back", "weight_hh_back", "bias_back", "peephole_back"}};
  Activations a;
  for (int64_t d = 0; d < l.directions; d++) {
    w.add(names[d][0], order, l.inputs);
    r.add(names[d][1], order, l.hidden);
    b.add(names[d][2], order, 1);
    b.add(nullptr, order, 1);
    p.add(names[d][3], peeps, 1);
    a.add(gate->gate);
    a.add(c.take(ops::gate_of(c.known(), "cell_activation")));
    a.add(c.take(ops::gate_of(c.known(), "activation")));
  }
  std::vector<ox::Attribute> attributes = attributes_of(l);
  a.add_to(attributes);
  if (gate->is_coupled) attributes.push_back(attr("input_forget", 1));
  const Name x = c.x(), weights = w.make({l.directions, 4 * l.hidden, l.inputs});
  const Name recurrent = r.make({l.directions, 4 * l.hidden, l.hidden});
  const Name bias = b.any() ? b.make({l.directions, 8 * l.hidden}) : Name();
  const Name peephole = p.any() ? p.make({l.directions, 3 * l.hidden}) : Name();
  const Name h = state_in(c, "initial_h", l), cell = state_in(c, "initial_c", l);
  const auto y = c.nodes("LSTM", {x, weights, recurrent, bias, Name(), h, cell, peephole}, std::move(attributes), 3);
  const Name last = state_out(c, y[1], l);
  set_sequence(c, y[0], last, l);
  c.set(last, 1);
  c.set(state_out(c, y[2], l), 2);
}

void gru(Call& c) {
  const Layer l = layer_of(c, false);
  if (c.refused()) return;
  const DType t = c.dtype("x");
  const Blocks order{2, 0, 1};  // update, reset, new
  const bool has_after = c.op.version().param_index("reset_after") >= 0;
  Stacked w(c, t, l.hidden), r(c, t, l.hidden), b(c, t, l.hidden);
  w.add("weight_ih", order, l.inputs);
  r.add("weight_hh", order, l.hidden);
  b.add(has_after ? "input_bias" : nullptr, order, 1);
  b.add("bias", order, 1);
  Activations a;
  a.add(c.take(ops::gate_of(c.known(), "recurrent_activation")));
  a.add(c.take(ops::gate_of(c.known(), "activation")));
  std::vector<ox::Attribute> attributes = attributes_of(l);
  a.add_to(attributes);
  if (has_after && c.flag("reset_after")) attributes.push_back(attr("linear_before_reset", 1));
  const Name x = c.x(), weights = w.make({1, 3 * l.hidden, l.inputs}), recurrent = r.make({1, 3 * l.hidden, l.hidden});
  const Name bias = b.any() ? b.make({1, 6 * l.hidden}) : Name();
  const auto y =
      c.nodes("GRU", {x, weights, recurrent, bias, Name(), state_in(c, "initial_h", l)}, std::move(attributes), 2);
  const Name last = state_out(c, y[1], l);
  set_sequence(c, y[0], last, l);
  c.set(last, 1);
}

void rnn(Call& c) {
  const Layer l = layer_of(c, false);
  if (c.refused()) return;
  const DType t = c.dtype("x");
  Stacked w(c, t, l.hidden), r(c, t, l.hidden), b(c, t, l.hidden);
  w.add("weight_ih", {0}, l.inputs);
  r.add("weight_hh", {0}, l.hidden);
  b.add("bias", {0}, 1);
  b.add(nullptr, {0}, 1);
  Activations a;
  a.add(c.take(ops::gate_of(c.known(), "activation")));
  std::vector<ox::Attribute> attributes = attributes_of(l);
  a.add_to(attributes);
  const Name x = c.x(), weights = w.make({1, l.hidden, l.inputs}), recurrent = r.make({1, l.hidden, l.hidden});
  const Name bias = b.any() ? b.make({1, 2 * l.hidden}) : Name();
  const auto y =
      c.nodes("RNN", {x, weights, recurrent, bias, Name(), state_in(c, "initial_h", l)}, std::move(attributes), 2);
  const Name last = state_out(c, y[1], l);
  set_sequence(c, y[0], last, l);
  c.set(last, 1);
}

}  // namespace

std::span<const OpWriter> writers_recurrent();
std::span<const OpWriter> writers_recurrent() {
  static constexpr OpWriter list[] = {{"lstm", lstm}, {"gru", gru}, {"rnn", rnn}};
  return list;
}

}  // namespace moka::compiler::onnx
