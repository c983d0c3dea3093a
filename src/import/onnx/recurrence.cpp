// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/recurrence.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "import/onnx/subgraph.h"

namespace moka::import::onnx {
namespace {

constexpr int64_t kWrittenOut = 64;

Value* activated(const Node& n, Value* x, const Direction& d, size_t i) {
  const std::string& name = d.activations[i];
  const double a = d.alpha[i], b = d.beta[i];
  if (name == "Sigmoid") return n.unary("sigmoid", x);
  if (name == "Tanh") return n.unary("tanh", x);
  if (name == "Relu") return n.unary("relu", x);
  if (name == "Softsign") return n.unary("softsign", x);
  if (name == "Softplus") return n.unary("softplus", x);
  if (name == "Affine") return n.add(n.mul(x, a), b);
  if (name == "LeakyRelu") return n.op("leaky_relu", {{"x", x}, n.arg("alpha", a, x)});
  if (name == "ScaledTanh") return n.mul(n.unary("tanh", n.mul(x, b)), a);
  if (name == "HardSigmoid") return n.op("sigmoid_hard", {{"x", x}, n.arg("alpha", a, x), n.arg("beta", b, x)});
  if (name == "Elu") return n.op("elu", {{"x", x}, n.arg("alpha", a, x)});
  if (name == "ThresholdedRelu") return n.op("thresholded_relu", {{"x", x}, n.arg("alpha", a, x)});
  n.unsupported(cat("activation ", name));
}

Value* clipped(const Node& n, Value* x, double clip) {
  return clip <= 0 ? x : n.op("clip", {{"x", x}, n.arg("alpha", -clip, x), n.arg("beta", clip, x)});
}

/// Part i of `count` equal ones along the last axis.
Value* part(const Node& n, Value* x, size_t i, int64_t size) {
  const auto at = static_cast<int64_t>(i) * size;
  return n.slice(x, n.rank(x) - 1, at, at + size);
}

RecurrentState lstm_step(const Node& n, const Recurrence& p, const Direction& d, Value* x, RecurrentState s) {
  Value* sum = n.add(x, n.matmul(s.h, d.r, false, true));
  const auto gate = [&](size_t i) { return part(n, sum, i, p.hidden); };
  const auto peep = [&](Value* v, size_t i, Value* c) {
    return d.peephole == nullptr ? v : n.add(v, n.mul(part(n, d.peephole, i, p.hidden), c));
  };
  const auto act = [&](Value* v, size_t i) { return activated(n, clipped(n, v, p.clip), d, i); };
  Value* input = act(peep(gate(0), 0, s.c), 0);
  Value* forget = p.input_forget ? n.sub(1.0, input) : act(peep(gate(2), 2, s.c), 0);
  Value* c = n.add(n.mul(forget, s.c), n.mul(input, act(gate(3), 1)));
  Value* output = act(peep(gate(1), 1, c), 0);
  return {n.mul(output, activated(n, c, d, 2)), c};
}

RecurrentState gru_step(const Node& n, const Recurrence& p, const Direction& d, Value* x, RecurrentState s) {
  const auto act = [&](Value* v, size_t i) { return activated(n, clipped(n, v, p.clip), d, i); };
  const auto rows = [&](size_t i) {
    const auto at = static_cast<int64_t>(i) * p.hidden;
    return n.slice(d.r, 0, at, at + p.hidden);
  };
  const auto with = [&](size_t i, Value* h) {
    Value* v = n.matmul(h, rows(i), false, true);
    return d.rb == nullptr ? v : n.add(v, part(n, d.rb, i, p.hidden));
  };
  Value* update = act(n.add(part(n, x, 0, p.hidden), with(0, s.h)), 0);
  Value* reset = act(n.add(part(n, x, 1, p.hidden), with(1, s.h)), 0);
  Value* inner = p.linear_before_reset ? n.mul(reset, with(2, s.h)) : with(2, n.mul(reset, s.h));
  Value* fresh = act(n.add(part(n, x, 2, p.hidden), inner), 1);
  return {n.add(n.mul(n.sub(1.0, update), fresh), n.mul(update, s.h)), nullptr};
}

RecurrentState rnn_step(const Node& n, const Recurrence& p, const Direction& d, Value* x, RecurrentState s) {
  Value* sum = n.add(x, n.matmul(s.h, d.r, false, true));
  return {activated(n, clipped(n, sum, p.clip), d, 0), nullptr};
}

/// The product with x that all steps share, [steps, batch, gates * hidden].
Value* projected(const Node& n, const Recurrence& p, const Direction& d, Value* x) {
  Value* out = n.matmul(x, d.w, false, true);
  if (d.wb != nullptr) out = n.add(out, d.wb);
  // Only the GRU adds the second bias inside of a product.
  return d.rb != nullptr && p.cell != Cell::gru ? n.add(out, d.rb) : out;
}

struct CellStep {
  Value* shown;  ///< zeros behind the end of a sequence
  RecurrentState next;
};

/// Step t, an int32 scalar. x: [batch, gates * hidden] of `projected`.
CellStep step(const Node& n, const Recurrence& p, const Direction& d, Value* x, RecurrentState s, Value* t) {
  RecurrentState next = p.cell == Cell::lstm  ? lstm_step(n, p, d, x, s)
                        : p.cell == Cell::gru ? gru_step(n, p, d, x, s)
                                              : rnn_step(n, p, d, x, s);
  if (p.lengths == nullptr) return {next.h, next};
  Value* inside = n.binary("greater", p.lengths, t);
  Value* shown = n.select(inside, next.h, n.scalar(0, next.h));
  next.h = n.select(inside, next.h, s.h);
  if (next.c != nullptr) next.c = n.select(inside, next.c, s.c);
  return {shown, next};
}

RecurrentResult written_out(const Node& n, const Recurrence& p, const Direction& d, Value* x) {
  x = projected(n, p, d, x);
  RecurrentState s{d.h, d.c};
  std::vector<Value*> all(static_cast<size_t>(p.steps));
  for (int64_t k = 0; k < p.steps; ++k) {
    const int64_t t = d.backward ? p.steps - 1 - k : k;
    Value* now = n.squeeze(n.slice(x, 0, t, t + 1), {0});
    const CellStep made = step(n, p, d, now, s, n.constant(Tensor::scalar_i64(DType::int32, t)));
    all[static_cast<size_t>(t)] = made.shown;
    s = made.next;
  }
  return {n.op("stack", {NamedArg("values", all), {"axis", 0}}), s};
}

/// The number of steps, an int32 scalar.
Value* steps_of(const Node& n, const Recurrence& p, Value* x) {
  return p.steps < 0 ? n.size_of(x, 0) : n.constant(Tensor::scalar_i64(DType::int32, p.steps));
}

/// Zeros like h for each step, [steps, batch, hidden].
Value* zeros_for_steps(const Node& n, const Recurrence& p, Value* x, Value* h) {
  if (p.steps >= 0 && p.batch >= 0)
    return n.op("fill", {{"shape", Tensor::i32({p.steps, p.batch, p.hidden})}, n.arg("value", 0, h)});
  Value* sizes = n.concat({n.slice(n.shape_of(x), 0, 0, 2), n.integers_constant({p.hidden})}, 0);
  return n.op("fill", {{"shape", sizes}, n.arg("value", 0, h)});
}

Value* row(const Node& n, Value* x, Value* index) {
  return n.op("gather", {{"x", x}, {"indices", index}, {"axis", 0}});
}

Value* with_row(const Node& n, Value* x, Value* index, Value* content) {
  return n.op("scatter", {{"data", x},
                          {"indices", n.expand_dims(index, {0})},
                          {"updates", n.expand_dims(content, {0})},
                          {"axis", 0},
                          {"mode", "update"}});
}

struct Counter {
  Value *now, *next;  ///< int32 scalars
};

/// A loop that counts from 0 to `steps`. `body` gets the carried values and returns their new ones.
using LoopBody = std::function<std::vector<Value*>(const Node&, Counter, std::vector<Value*>)>;
std::vector<Value*> counting_loop(const Node& n, Value* steps, std::vector<Value*> carried, const LoopBody& body) {
  carried.insert(carried.begin(), n.constant(Tensor::scalar_i64(DType::int32, 0)));
  const ir::Op* op = append_while_loop(n, carried, [&](const Node& at, size_t block, const std::vector<Value*>& in) {
    if (block == 0) return std::vector<Value*>{at.binary("less", in[0], steps)};
    const Counter counter{in[0], at.add(in[0], 1)};
    std::vector<Value*> out = body(at, counter, {in.begin() + 1, in.end()});
    out.insert(out.begin(), counter.next);
    return out;
  });
  std::vector<Value*> out;
  for (size_t i = 1; i < carried.size(); ++i) out.push_back(op->output(i));
  return out;
}

RecurrentResult looped(const Node& n, const Recurrence& p, const Direction& d, Value* x) {
  Value* steps = steps_of(n, p, x);
  std::vector<Value*> carried{zeros_for_steps(n, p, x, d.h), d.h};
  if (d.c != nullptr) carried.push_back(d.c);
  x = projected(n, p, d, x);
  const auto body = [&](const Node& at, Counter k, std::vector<Value*> in) -> std::vector<Value*> {
    Value* t = d.backward ? at.sub(steps, k.next) : k.now;
    const CellStep made = step(at, p, d, row(at, x, t), {in[1], in.size() > 2 ? in[2] : nullptr}, t);
    std::vector<Value*> out{with_row(at, in[0], t, made.shown), made.next.h};
    if (made.next.c != nullptr) out.push_back(made.next.c);
    return out;
  };
  const std::vector<Value*> out = counting_loop(n, steps, carried, body);
  return {out[0], {out[1], out.size() > 2 ? out[2] : nullptr}};
}

Tensor gates_reordered(const Tensor& t, const std::vector<int64_t>& order, int64_t hidden) {
  // [gates * hidden, ...]: whole rows move.
  Tensor out = need(Tensor::zeros(t.dtype(), t.shape()));
  const int64_t row = t.count() / std::max<int64_t>(1, t.shape()[0]);
  for (size_t g = 0; g < order.size(); ++g)
    for (int64_t i = 0; i < hidden * row; ++i)
      ir::store_f64(out.view(), static_cast<int64_t>(g) * hidden * row + i,
                    ir::load_f64(t.view(), order[g] * hidden * row + i));
  return out;
}

Value* reversed(const Node& n, Value* x) { return n.op("reverse", {{"x", x}, {"axes", Tensor::i32({0})}}); }

/// The order of the gates in MIL, as places in ONNX.
std::vector<int64_t> gate_order(Cell cell) {
  if (cell == Cell::lstm) return {0, 2, 1, 3};                                         // input, forget, output, cell
  return cell == Cell::gru ? std::vector<int64_t>{1, 2, 0} : std::vector<int64_t>{0};  // reset, new, update
}

/// Whether MIL's operation of the cell has these activations and nothing else is asked of it.
bool is_usual(const Recurrence& p, const Direction& d) {
  if (p.lengths != nullptr || p.input_forget || p.clip > 0 || d.peephole != nullptr) return false;
  for (const Value* v : {d.w, d.r, d.wb, d.rb})
    if (v != nullptr && constant_of(v) == nullptr) return false;
  if (p.cell == Cell::rnn) return d.activations[0] == "Tanh" || d.activations[0] == "Relu";
  return d.activations == (p.cell == Cell::gru ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                               : std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"});
}

RecurrentResult as_one_operation(const Node& n, const Recurrence& p, const Direction& d, Value* x) {
  const auto ordered = [&](const Value* v) { return gates_reordered(*constant_of(v), gate_order(p.cell), p.hidden); };
  std::vector<NamedArg> args{{"x", x}, {"initial_h", d.h}};
  if (d.c != nullptr) args.emplace_back("initial_c", d.c);
  args.emplace_back("weight_ih", ordered(d.w));
  args.emplace_back("weight_hh", ordered(d.r));
  if (p.linear_before_reset) {
    args.emplace_back("reset_after", true);
    if (d.wb != nullptr) args.emplace_back("input_bias", ordered(d.wb));
    if (d.rb != nullptr) args.emplace_back("bias", ordered(d.rb));
  } else if (d.wb != nullptr) {
    args.emplace_back("bias", ordered(n.add(d.wb, d.rb)));
  }
  if (p.cell == Cell::rnn) args.emplace_back("activation", d.activations[0] == "Relu" ? "relu" : "tanh");
  args.emplace_back("direction", d.backward ? "reverse" : "forward");
  args.emplace_back("output_sequence", true);
  constexpr std::string_view names[] = {"rnn", "gru", "lstm"};
  const std::vector<Value*> out = n.ops(names[static_cast<size_t>(p.cell)], std::move(args));
  return {d.backward ? reversed(n, out[0]) : out[0], {out[1], out.size() > 2 ? out[2] : nullptr}};
}

/// The loop of coremltools' converter for a GRU of PyTorch. It carries the states of all steps behind the initial one.
RecurrentResult gru_loop(const Node& n, const Recurrence& p, const Direction& d, Value* x) {
  if (d.backward) x = reversed(n, x);
  const auto gate = [&](Value* v, int64_t i) { return n.slice(v, 0, i * p.hidden, (i + 1) * p.hidden); };
  const auto body = [&](const Node& at, Counter k, std::vector<Value*> in) -> std::vector<Value*> {
    Value *now = row(at, x, k.now), *h = row(at, in[0], k.now);
    const auto linear = [&](Value* v, Value* weight, Value* bias, int64_t i) {
      std::vector<NamedArg> args{{"x", v}, {"weight", gate(weight, i)}};
      if (bias != nullptr) args.emplace_back("bias", gate(bias, i));
      return at.op("linear", std::move(args));
    };
    const auto of_x = [&](int64_t i) { return linear(now, d.w, d.wb, i); };
    const auto of_h = [&](int64_t i) { return linear(h, d.r, d.rb, i); };
    Value* update = at.unary("sigmoid", at.add(of_x(0), of_h(0)));
    Value* reset = at.unary("sigmoid", at.add(of_x(1), of_h(1)));
    Value* fresh = at.unary("tanh", at.add(of_x(2), at.mul(reset, of_h(2))));
    Value* next = at.add(at.mul(at.sub(1.0, update), fresh), at.mul(update, h));
    return {with_row(at, in[0], k.next, next)};
  };
  Value* steps = steps_of(n, p, x);
  Value* initial = n.concat({n.expand_dims(d.h, {0}), zeros_for_steps(n, p, x, d.h)}, 0);
  Value* states = counting_loop(n, steps, {initial}, body)[0];
  Value* all = n.slice(states, 0, 1, p.steps >= 0 ? p.steps + 1 : std::numeric_limits<int32_t>::max());
  Value* last = p.steps >= 0 ? n.squeeze(n.slice(states, 0, p.steps, p.steps + 1), {0}) : row(n, states, steps);
  return {d.backward ? reversed(n, all) : all, {last, nullptr}};
}

}  // namespace

RecurrentResult run_recurrence(const Node& n, const Recurrence& p, const Direction& d, Value* x) {
  if (is_usual(p, d)) {
    if (!p.linear_before_reset || n.scope.builder.opset >= ir::Opset::ios18) return as_one_operation(n, p, d, x);
    if (p.steps != 1) return gru_loop(n, p, d, x);
  }
  return p.steps >= 0 && p.steps <= kWrittenOut ? written_out(n, p, d, x) : looped(n, p, d, x);
}

}  // namespace moka::import::onnx
