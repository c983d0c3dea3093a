// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "import/onnx/recurrence.h"

namespace moka::import::onnx {
namespace {

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

void recurrent(Node& n, Cell cell) {
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
  std::vector<Value*> all, hs, cs;
  for (const Direction& d : directions) {
    const RecurrentResult made = run_recurrence(n, p, d, x);
    all.push_back(made.all);
    hs.push_back(made.last.h);
    cs.push_back(made.last.c);
  }
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
