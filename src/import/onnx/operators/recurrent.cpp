#include <algorithm>

#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

enum class Cell { rnn, gru, lstm };

size_t gates_of(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }

/// What one direction of a recurrent operator reads.
struct Direction {
  Value *w = nullptr, *r = nullptr, *wb = nullptr, *rb = nullptr, *peephole = nullptr, *h = nullptr, *c = nullptr;
  std::vector<std::string> activations;
  std::vector<double> alpha, beta;
  bool backward = false;
};

struct Recurrence {
  Cell cell;
  int64_t steps = 0, batch = 0, hidden = 0;
  bool linear_before_reset = false, input_forget = false;
  double clip = 0;
  Value* lengths = nullptr;  ///< [batch, 1]
};

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

struct State {
  Value *h, *c;
};

State lstm_step(const Node& n, const Recurrence& p, const Direction& d, Value* x, State s) {
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

State gru_step(const Node& n, const Recurrence& p, const Direction& d, Value* x, State s) {
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

State rnn_step(const Node& n, const Recurrence& p, const Direction& d, Value* x, State s) {
  Value* sum = n.add(x, n.matmul(s.h, d.r, false, true));
  return {activated(n, clipped(n, sum, p.clip), d, 0), nullptr};
}

/// Runs one direction over [steps, batch, inputs], step by step. Returns all states in the order of x, and the last.
std::pair<Value*, State> run(const Node& n, const Recurrence& p, const Direction& d, Value* x) {
  Value* projected = n.matmul(x, d.w, false, true);
  if (d.wb != nullptr) projected = n.add(projected, d.wb);
  // Only the GRU adds the second bias inside of a product.
  if (d.rb != nullptr && p.cell != Cell::gru) projected = n.add(projected, d.rb);
  State s{d.h, d.c};
  std::vector<Value*> all(static_cast<size_t>(p.steps));
  for (int64_t k = 0; k < p.steps; ++k) {
    const int64_t t = d.backward ? p.steps - 1 - k : k;
    Value* now = n.squeeze(n.slice(projected, 0, t, t + 1), {0});
    State next = p.cell == Cell::lstm  ? lstm_step(n, p, d, now, s)
                 : p.cell == Cell::gru ? gru_step(n, p, d, now, s)
                                       : rnn_step(n, p, d, now, s);
    Value* shown = next.h;
    if (p.lengths != nullptr) {
      Value* inside = n.binary("greater", p.lengths, n.scalar(static_cast<double>(t), p.lengths));
      shown = n.select(inside, next.h, n.scalar(0, next.h));
      next.h = n.select(inside, next.h, s.h);
      if (next.c != nullptr) next.c = n.select(inside, next.c, s.c);
    }
    all[static_cast<size_t>(t)] = shown;
    s = next;
  }
  return {n.op("stack", {NamedArg("values", all), {"axis", 0}}), s};
}

double default_alpha(const std::string& name) {
  if (name == "LeakyRelu") return 0.01;
  if (name == "HardSigmoid") return 0.2;
  return 1;
}

std::string capitalized(std::string name) {
  for (const char* known : {"Sigmoid", "Tanh", "Relu", "Softsign", "Softplus", "Affine", "LeakyRelu", "ScaledTanh",
                            "HardSigmoid", "Elu", "ThresholdedRelu"}) {
    std::string lower = known, given = name;
    for (char& c : lower) c = static_cast<char>(std::tolower(c));
    for (char& c : given) c = static_cast<char>(std::tolower(c));
    if (lower == given) return known;
  }
  return name;
}

void set_activations(const Node& n, Direction& d, size_t index, size_t directions,
                     const std::vector<std::string>& natural) {
  const Attribute* a = n.attribute("activations");
  const size_t count = natural.size();
  const std::vector<std::string> names = a != nullptr ? a->strings : std::vector<std::string>();
  if (!names.empty() && names.size() != count * directions)
    n.malformed(cat(names.size(), " activations, expected ", count * directions));
  const std::vector<float> alphas = n.numbers_or("activation_alpha"), betas = n.numbers_or("activation_beta");
  size_t alpha_at = 0, beta_at = 0;
  for (size_t i = 0; i < count * directions; ++i) {
    const std::string name = capitalized(names.empty() ? natural[i % count] : names[i]);
    const bool has_alpha = name == "Affine" || name == "LeakyRelu" || name == "ScaledTanh" || name == "HardSigmoid" ||
                           name == "Elu" || name == "ThresholdedRelu";
    const bool has_beta = name == "Affine" || name == "ScaledTanh" || name == "HardSigmoid";
    const double alpha = has_alpha && alpha_at < alphas.size() ? alphas[alpha_at++] : default_alpha(name);
    const double beta = has_beta && beta_at < betas.size() ? betas[beta_at++]
                        : name == "HardSigmoid"            ? 0.5
                        : name == "ScaledTanh"             ? 1
                                                           : 0;
    if (i / count != index) continue;
    d.activations.push_back(name);
    d.alpha.push_back(alpha);
    d.beta.push_back(beta);
  }
}

/// The entry of a direction of a value with a leading axis of directions.
Value* of_direction(const Node& n, Value* v, int64_t i) {
  return v == nullptr ? nullptr : n.squeeze(n.slice(v, 0, i, i + 1), {0});
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

/// MIL's lstm for a long sequence, or one of unknown length, with constant weights and the usual activations. False: it
/// does not fit.
bool as_mil_lstm(const Node& n, const Recurrence& p, std::vector<Direction>& directions, Value* x,
                 std::vector<Value*>& all, std::vector<State>& last) {
  if (p.cell != Cell::lstm || p.lengths != nullptr || p.input_forget || p.clip > 0) return false;
  const std::vector<std::string> usual{"Sigmoid", "Tanh", "Tanh"};
  for (const Direction& d : directions)
    if (d.activations != usual || d.peephole != nullptr || constant_of(d.w) == nullptr || constant_of(d.r) == nullptr ||
        (d.wb != nullptr && constant_of(d.wb) == nullptr))
      return false;
  for (const Direction& d : directions) {
    const std::vector<int64_t> order{0, 2, 1, 3};
    const auto weight = [&](const Value* v) { return gates_reordered(*constant_of(v), order, p.hidden); };
    std::vector<NamedArg> args{{"x", x}};
    args.emplace_back("initial_h", d.h);
    args.emplace_back("initial_c", d.c);
    args.emplace_back("weight_ih", weight(d.w));
    args.emplace_back("weight_hh", weight(d.r));
    if (d.wb != nullptr) args.emplace_back("bias", weight(n.add(d.wb, d.rb)));
    args.emplace_back("direction", d.backward ? "reverse" : "forward");
    args.emplace_back("output_sequence", true);
    const std::vector<Value*> out = n.ops("lstm", std::move(args));
    all.push_back(d.backward ? n.op("reverse", {{"x", out[0]}, {"axes", Tensor::i32({0})}}) : out[0]);
    last.push_back({out[1], out[2]});
  }
  return true;
}

void recurrent(Node& n, Cell cell) {
  constexpr int64_t most = 1024;
  const size_t gates = gates_of(cell);
  const bool batch_first = n.integer_or("layout", 0) != 0;
  Value* x = n.in(0);
  if (batch_first) x = n.transpose(x, {1, 0, 2});
  const std::string mode = n.text_or("direction", "forward");
  const size_t count = mode == "bidirectional" ? 2 : 1;
  const Shape& ws = n.known_shape(n.in(1), "the weights");
  if (ws.rank() != 3 || ws[0] != static_cast<int64_t>(count))
    n.malformed(cat("weights of type ", n.in(1)->type, " for ", mode));
  Recurrence p{cell};
  p.hidden = ws[1] / static_cast<int64_t>(gates);
  p.linear_before_reset = n.integer_or("linear_before_reset", 0) != 0;
  p.input_forget = n.integer_or("input_forget", 0) != 0;
  p.clip = n.number_or("clip", 0);
  if (n.rank(x) != 3) n.malformed("expected an input of rank 3");
  p.steps = x->type.shape()[0];
  p.batch = x->type.shape()[1];
  if (n.has(4)) p.lengths = n.expand_dims(n.in(4), {1});
  const auto state = [&](size_t i) {
    Value* v = n.maybe(i);
    if (v != nullptr && batch_first) v = n.transpose(v, {1, 0, 2});
    return v;
  };
  Value *w = n.in(1), *r = n.in(2), *b = n.maybe(3), *h = state(5), *c = cell == Cell::lstm ? state(6) : nullptr;
  Value* peephole = cell == Cell::lstm ? n.maybe(7) : nullptr;
  const auto zeros = [&]() -> Value* {
    if (p.batch < 0) {
      Value* sizes = n.concat({n.reshape(n.size_of(x, 1), {1}), n.integers_constant({p.hidden})}, 0);
      return n.op("fill", {{"shape", sizes}, n.arg("value", 0, x)});
    }
    return n.op("fill", {{"shape", Tensor::i32({p.batch, p.hidden})}, n.arg("value", 0, x)});
  };
  const std::vector<std::string> natural = cell == Cell::lstm  ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
                                           : cell == Cell::gru ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                                               : std::vector<std::string>{"Tanh"};
  std::vector<Direction> directions(count);
  for (size_t i = 0; i < count; ++i) {
    Direction& d = directions[i];
    const auto at = static_cast<int64_t>(i);
    d.w = of_direction(n, w, at);
    d.r = of_direction(n, r, at);
    if (Value* both = of_direction(n, b, at)) {
      const int64_t half = static_cast<int64_t>(gates) * p.hidden;
      d.wb = n.slice(both, 0, 0, half);
      d.rb = n.slice(both, 0, half, 2 * half);
    }
    d.peephole = of_direction(n, peephole, at);
    d.h = h != nullptr ? of_direction(n, h, at) : zeros();
    d.c = cell != Cell::lstm ? nullptr : c != nullptr ? of_direction(n, c, at) : zeros();
    d.backward = mode == "reverse" || i == 1;
    set_activations(n, d, i, count, natural);
  }
  std::vector<Value*> all;
  std::vector<State> last;
  if (!as_mil_lstm(n, p, directions, x, all, last)) {
    if (p.steps < 0 || p.batch < 0 || p.steps > most)
      n.unsupported(cat("a sequence of type ", x->type, ": expected known sizes and at most ", most, " steps"));
    for (const Direction& d : directions) {
      const auto [states, end] = run(n, p, d, x);
      all.push_back(states);
      last.push_back(end);
    }
  }
  std::vector<Value*> hs, cs;
  for (const State& s : last) hs.push_back(s.h), cs.push_back(s.c);
  const auto joined = [&](const std::vector<Value*>& v, int axis) {
    return n.op("stack", {NamedArg("values", v), {"axis", axis}});
  };
  if (n.wants(0)) {
    Value* y = joined(all, 1);  // [steps, directions, batch, hidden]
    n.set(0, batch_first ? n.transpose(y, {2, 0, 1, 3}) : y);
  }
  const int axis = batch_first ? 1 : 0;
  if (n.wants(1)) n.set(1, joined(hs, axis));
  if (cell == Cell::lstm && n.wants(2)) n.set(2, joined(cs, axis));
}

constexpr OperatorImport kRecurrentOperators[] = {
    {"RNN", [](Node& n) { recurrent(n, Cell::rnn); }},
    {"GRU", [](Node& n) { recurrent(n, Cell::gru); }},
    {"LSTM", [](Node& n) { recurrent(n, Cell::lstm); }},
};

}  // namespace

std::span<const OperatorImport> operators_recurrent() { return kRecurrentOperators; }

}  // namespace moka::import::onnx
