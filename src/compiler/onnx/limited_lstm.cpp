// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/limited_lstm.h"

#include "ops/common/recurrent.h"

namespace moka::compiler::onnx {
namespace {

Name activated(Call& c, const ops::Gate& g, const Name& x, DType t) {
  using F = ops::Gate::Function;
  const auto scaled = [&](const Name& v, double by) { return by == 1 ? v : c.node("Mul", {v, c.scalar(t, by)}); };
  switch (g.f) {
    case F::tanh: return c.node("Tanh", {x});
    case F::sigmoid: return c.node("Sigmoid", {x});
    case F::relu: return c.node("Relu", {x});
    case F::hard_sigmoid: return c.node("HardSigmoid", {x}, {attr("alpha", g.alpha), attr("beta", g.beta)});
    case F::scaled_tanh: return scaled(c.node("Tanh", {scaled(x, g.beta)}), g.alpha);
    case F::linear: return c.node("Add", {scaled(x, g.alpha), c.scalar(t, g.beta)});
  }
  return x;
}

struct Gates {
  ops::Gate recurrent, cell, activation;
  bool is_coupled = false;
};

/// The parameters of one direction.
struct Params {
  const char *weight_ih, *weight_hh, *bias, *peephole;
};

/// Entries [begin, end) of a vector parameter.
Name part(Call& c, const char* param, int64_t begin, int64_t end) {
  const auto all = c.constant(param);
  ir::Tensor out = c.take(ir::Tensor::uninitialized(c.dtype("x"), {end - begin}));
  if (!all || c.refused()) return c.refuse(cat(param, " is not a constant")), Name();
  for (int64_t i = begin; i < end; i++) ir::store_f64(out.view(), i - begin, ir::load_f64(all->view(), i));
  return c.graph.tensor(out);
}

/// One direction: the final hidden and cell state, and the hidden state of each step.
std::vector<Name> scan(Call& c, const Params& p, const Gates& g, int64_t hidden, const Name& h0, const Name& c0,
                       bool backward, bool ordered) {
  const DType t = c.dtype("x");
  const double limit = c.number("clip");
  const std::string base = c.op.output()->name;
  const ir::Type state = ir::Type::tensor(t, {ir::kAnyDim, hidden});
  const Name weight = c.x_as(p.weight_ih, t), recurrent = c.x_as(p.weight_hh, t);
  const Name bias = c.has(p.bias) ? c.x_as(p.bias, t) : Name();
  const Name x = c.x();
  c.graph.open();
  const Name h = c.graph.fresh(base + "/h"), cell = c.graph.fresh(base + "/c"), step = c.graph.fresh(base + "/x");
  Name z = c.node("Gemm", {step, weight, bias}, {attr("transB", 1)});
  z = c.node("Gemm", {h, recurrent, z}, {attr("transB", 1)});
  std::vector<ox::Attribute> how{attr("axis", 1)};
  const auto gate = c.nodes("Split", {z, c.i64({hidden, hidden, hidden, hidden})}, std::move(how), 4);
  const auto peeped = [&](const Name& v, int64_t index, const Name& state_now) {
    if (!c.has(p.peephole)) return v;
    const Name weights = part(c, p.peephole, index * hidden, (index + 1) * hidden);
    return c.node("Add", {v, c.node("Mul", {state_now, weights})});
  };
  const Name in = activated(c, g.recurrent, peeped(gate[0], 0, cell), t);
  const Name forget =
      g.is_coupled ? c.node("Sub", {c.scalar(t, 1), in}) : activated(c, g.recurrent, peeped(gate[1], 1, cell), t);
  const Name fresh = activated(c, g.cell, gate[3], t);
  const Name sum = c.node("Add", {c.node("Mul", {forget, cell}), c.node("Mul", {in, fresh})});
  const Name next = c.node("Clip", {sum, c.scalar(t, -limit), c.scalar(t, limit)});
  const Name out = activated(c, g.recurrent, peeped(gate[2], 2, next), t);
  const Name result = c.node("Mul", {out, activated(c, g.activation, next, t)});
  const Name shown = c.node("Identity", {result});
  ox::Graph body = c.graph.close(base + "_step");
  const int64_t inputs = c.type("x").shape()[2];
  body.inputs = {value_info(h, state), value_info(cell, state),
                 value_info(step, ir::Type::tensor(t, {ir::kAnyDim, inputs}))};
  body.outputs = {value_info(result, state), value_info(next, state), value_info(shown, state)};
  std::vector<ox::Attribute> attributes{attr("num_scan_inputs", 1)};
  if (backward) attributes.push_back(attr("scan_input_directions", std::vector<int64_t>{1}));
  if (backward && ordered) attributes.push_back(attr("scan_output_directions", std::vector<int64_t>{1}));
  attributes.push_back(attr("body", std::move(body)));
  return c.nodes("Scan", {h0, c0, x}, std::move(attributes), 3);
}

}  // namespace

void write_limited_lstm(Call& c) {
  constexpr Params params[] = {{"weight_ih", "weight_hh", "bias", "peephole"},
                               {"weight_ih_back", "weight_hh_back", "bias_back", "peephole_back"}};
  const auto direction = c.take(ops::direction_of(c.known(), true));
  const auto recurrent = c.take(ops::recurrent_gate_of(c.known()));
  const Gates gates{recurrent.gate, c.take(ops::gate_of(c.known(), "cell_activation")),
                    c.take(ops::gate_of(c.known(), "activation")), recurrent.is_coupled};
  const auto weights = c.constant("weight_hh");
  if (!weights || c.refused() || !c.type("x").is_ranked()) return c.refuse("its weights are not constants");
  const int64_t hidden = weights->shape()[1];
  const bool both = direction == ops::Direction::bidirectional, sequence = c.flag("output_sequence");
  const int64_t batch = c.type("x").shape()[1];
  std::vector<Name> parts[3];
  for (int64_t d = 0; d < (both ? 2 : 1); d++) {
    const auto state = [&](const char* param) {
      Name v = c.x(param);
      if (batch >= 0 && c.type(param).is_ranked() && c.type(param).shape()[0] > batch) v = c.slice(v, 0, 0, batch);
      return both ? c.slice(v, 1, d * hidden, (d + 1) * hidden) : v;
    };
    const bool backward = direction == ops::Direction::reverse || d == 1;
    const Name h0 = state("initial_h"), c0 = state("initial_c");
    const auto y = scan(c, params[d], gates, hidden, h0, c0, backward, both);
    for (size_t i = 0; i < 3; i++) parts[i].push_back(y[i]);
  }
  const auto joined = [&](size_t i) {
    return parts[i].size() == 1 ? parts[i][0] : c.node("Concat", parts[i], {attr("axis", -1)});
  };
  const Name last = joined(0), cell = joined(1);
  c.set(sequence ? joined(2) : c.unsqueeze(last, {0}), 0);
  c.set(last, 1);
  c.set(cell, 2);
}

}  // namespace moka::compiler::onnx
