// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "import/onnx/node.h"

/// ai.onnx.preview.training: steps of optimizers, and gradients of what the graph computes.
namespace moka::import::onnx {
namespace {

/// The rate, the step's number, and then groups of tensors: parameters, gradients, states.
struct Step {
  Value *rate, *time;
  std::vector<std::array<Value*, 4>> tensors;
};

Step step_of(const Node& n, size_t groups) {
  if (n.inputs() < 2 + groups || (n.inputs() - 2) % groups != 0)
    n.malformed(cat("expected 2 inputs and ", groups, " for each parameter, got ", n.inputs()));
  Step out{n.in(0), n.cast(n.in(1), n.in(0)->type.dtype()), {}};
  const size_t count = (n.inputs() - 2) / groups;
  for (size_t i = 0; i < count; ++i) {
    std::array<Value*, 4> one{};
    for (size_t g = 0; g < groups; ++g) one[g] = n.in(2 + g * count + i);
    out.tensors.push_back(one);
  }
  return out;
}

/// The gradient with that of the penalty on the parameter's square.
Value* regularized(const Node& n, Value* x, Value* gradient) {
  return n.add(n.mul(x, static_cast<double>(n.number_or("norm_coefficient", 0))), gradient);
}

void adagrad(Node& n) {
  const Step s = step_of(n, 3);
  const size_t count = s.tensors.size();
  Value* rate = n.div(s.rate, n.add(n.mul(s.time, static_cast<double>(n.number_or("decay_factor", 0))), 1.0));
  for (size_t i = 0; i < count; ++i) {
    const auto [x, g, h, unused] = s.tensors[i];
    Value* gradient = regularized(n, x, g);
    Value* sum = n.add(h, n.mul(gradient, gradient));
    Value* scale = n.add(n.unary("sqrt", sum), static_cast<double>(n.number_or("epsilon", 0)));
    n.set(i, n.sub(x, n.div(n.mul(rate, gradient), scale)), n.type(2));
    n.set(count + i, sum, n.type(2));
  }
}

void adam(Node& n) {
  const Step s = step_of(n, 4);
  const size_t count = s.tensors.size();
  const double alpha = n.number_or("alpha", 0.9f), beta = n.number_or("beta", 0.999f);
  // The first step, number 0, does not correct the means.
  const auto left = [&](double base) { return n.sub(1.0, n.binary("pow", n.scalar(base, s.time), s.time)); };
  Value* corrected = n.div(n.mul(s.rate, n.unary("sqrt", left(beta))), left(alpha));
  Value* rate = n.select(n.binary("greater", s.time, n.scalar(0, s.time)), corrected, s.rate);
  for (size_t i = 0; i < count; ++i) {
    const auto [x, g, v, h] = s.tensors[i];
    Value* gradient = regularized(n, x, g);
    Value* mean = n.add(n.mul(v, alpha), n.mul(gradient, 1 - alpha));
    Value* square = n.add(n.mul(h, beta), n.mul(n.mul(gradient, gradient), 1 - beta));
    Value* scale = n.add(n.unary("sqrt", square), static_cast<double>(n.number_or("epsilon", 1e-6f)));
    Value* moved = n.sub(x, n.div(n.mul(rate, mean), scale));
    n.set(i, n.mul(moved, 1 - static_cast<double>(n.number_or("norm_coefficient_post", 0))), n.type(2));
    n.set(count + i, mean, n.type(2));
    n.set(2 * count + i, square, n.type(2));
  }
}

void momentum(Node& n) {
  const Step s = step_of(n, 3);
  const size_t count = s.tensors.size();
  const double alpha = n.number_or("alpha", 0), beta = n.number_or("beta", 0);
  const bool nesterov = n.text_or("mode", "standard") == "nesterov";
  Value* later = n.binary("greater", s.time, n.scalar(0, s.time));
  Value* weight = n.select(later, n.scalar(beta, s.time), n.scalar(1, s.time));
  for (size_t i = 0; i < count; ++i) {
    const auto [x, g, v, unused] = s.tensors[i];
    Value* gradient = regularized(n, x, g);
    Value* next = n.add(n.mul(v, alpha), n.mul(weight, gradient));
    Value* direction = nesterov ? n.add(gradient, n.mul(next, alpha)) : next;
    n.set(i, n.sub(x, n.mul(s.rate, direction)), n.type(2));
    n.set(count + i, next, n.type(2));
  }
}

/// A gradient of the result of broadcasting as one of the operand `like`.
Value* summed(const Node& n, Value* gradient, const Value* like) {
  const Shape &from = n.known_shape(gradient, "Gradient"), &to = n.known_shape(like, "Gradient");
  std::vector<int64_t> axes;
  const int lead = from.rank() - to.rank();
  for (int i = 0; i < from.rank(); ++i)
    if (i < lead || (to[i - lead] == 1 && from[i] != 1)) axes.push_back(i);
  if (!axes.empty()) gradient = n.reduce("reduce_sum", gradient, axes, true);
  return n.reshape(gradient, to.to_vector());
}

/// The gradient at an operand of `op`, given that at its result.
using Rule = Value* (*)(const Node& n, const ir::Op& op, std::string_view operand, Value* g);

Value* product_rule(const Node& n, const ir::Op& op, std::string_view operand, Value* g) {
  return n.mul(g, op.input(operand == "x" ? "y" : "x"));
}

Value* quotient_rule(const Node& n, const ir::Op& op, std::string_view operand, Value* g) {
  Value* y = op.input("y");
  return operand == "x" ? n.div(g, y) : n.mul(n.div(n.mul(g, op.output()), y), -1.0);
}

Value* matmul_rule(const Node& n, const ir::Op& op, std::string_view operand, Value* g) {
  const auto is_set = [&](std::string_view name) {
    const Value* v = op.input(name);
    return v != nullptr && v->constant() != nullptr && v->constant()->tensor.as<uint8_t>()[0] != 0;
  };
  if (is_set("transpose_x") || is_set("transpose_y")) n.unsupported("the gradient of a transposed matmul");
  return operand == "x" ? n.matmul(g, op.input("y"), false, true) : n.matmul(op.input("x"), g, true, false);
}

Value* unary_rule(const Node& n, const ir::Op& op, std::string_view, Value* g) {
  const std::string& type = op.type_name();
  Value *x = op.input("x"), *y = op.output();
  if (type == "relu") return n.select(n.binary("greater", x, n.scalar(0, x)), g, n.scalar(0, g));
  if (type == "sigmoid") return n.mul(g, n.mul(y, n.sub(1.0, y)));
  if (type == "tanh") return n.mul(g, n.sub(1.0, n.mul(y, y)));
  if (type == "exp") return n.mul(g, y);
  if (type == "log") return n.div(g, x);
  if (type == "sqrt") return n.div(n.mul(g, 0.5), y);
  if (type == "sin") return n.mul(g, n.unary("cos", x));
  if (type == "cos") return n.mul(g, n.mul(n.unary("sin", x), -1.0));
  return n.mul(g, n.mul(x, 2.0));  // square
}

Value* same_rule(const Node&, const ir::Op&, std::string_view, Value* g) { return g; }
Value* minus_rule(const Node& n, const ir::Op&, std::string_view operand, Value* g) {
  return operand == "x" ? g : n.mul(g, -1.0);
}

Rule rule_of(const ir::Op& op) {
  static constexpr std::pair<std::string_view, Rule> rules[] = {
      {"add", same_rule},      {"sub", minus_rule},        {"mul", product_rule},   {"real_div", quotient_rule},
      {"matmul", matmul_rule}, {"relu", unary_rule},       {"sigmoid", unary_rule}, {"tanh", unary_rule},
      {"exp", unary_rule},     {"log", unary_rule},        {"sqrt", unary_rule},    {"square", unary_rule},
      {"sin", unary_rule},     {"cos", unary_rule},        {"identity", same_rule}, {"reshape", same_rule},
      {"squeeze", same_rule},  {"expand_dims", same_rule},
  };
  for (const auto& [name, rule] : rules)
    if (name == op.type_name()) return rule;
  return nullptr;
}

/// Derivatives of the sum of `y`, by the chain rule from y back to `xs`. The inputs give the values of xs and zs, which
/// have to be those that y is computed from.
void gradient(Node& n) {
  const auto texts = [&](std::string_view name) {
    const Attribute* a = n.attribute(name);
    return a != nullptr ? a->strings : std::vector<std::string>();
  };
  const std::vector<std::string> xs = texts("xs"), zs = texts("zs");
  if (n.inputs() != xs.size() + zs.size() || n.outputs() > xs.size())
    n.malformed("expected an input for each of xs and zs and an output for each of xs");
  for (size_t i = 0; i < n.inputs(); ++i)
    if (n.message.inputs[i] != (i < xs.size() ? xs[i] : zs[i - xs.size()]))
      n.unsupported(cat("the gradient at '", n.message.inputs[i], "' instead of the graph's own value"));
  const std::string name = n.text_or("y", "");
  Value* y = n.scope.value(n.scope.own(name), name);
  std::vector<const ir::Op*> ops;
  for (const auto& op : n.scope.builder.block().ops()) ops.push_back(op.get());
  std::set<const Value*> moving;
  for (size_t i = 0; i < xs.size(); ++i) moving.insert(n.in(i));
  std::set<const Value*> targets = moving;
  for (const ir::Op* op : ops)
    for (const ir::Operand& o : op->operands())
      for (const Value* v : o.values)
        if (moving.contains(v))
          for (size_t k = 0; k < op->output_count(); ++k) moving.insert(op->output(k));
  std::map<const Value*, Value*> at;
  const Shape& shape = n.known_shape(y, "Gradient");
  at[y] = shape.rank() == 0 ? n.scalar(1, y)
                            : n.op("fill", {{"shape", Tensor::i32(shape.to_vector())}, n.arg("value", 1, y)});
  for (size_t i = ops.size(); i-- > 0;) {
    const ir::Op& op = *ops[i];
    if (op.output_count() != 1 || !moving.contains(op.output()) || !at.contains(op.output())) continue;
    if (targets.contains(op.output())) continue;
    const Rule rule = rule_of(op);
    if (rule == nullptr) n.unsupported(cat("the gradient of the operation '", op.type_name(), "'"));
    for (const std::string_view operand : {"x", "y"}) {
      const Value* v = op.input(operand);
      if (v == nullptr || !moving.contains(v)) continue;
      Value* more = summed(n, rule(n, op, operand, at[op.output()]), v);
      Value*& sum = at[v];
      sum = sum == nullptr ? more : n.add(sum, more);
    }
  }
  for (size_t i = 0; i < xs.size(); ++i) {
    const Value* x = n.in(i);
    Value* found = at[x];
    n.set(i, found != nullptr ? found : n.mul(n.in(i), 0.0), n.type(i));
  }
}

constexpr std::string_view kDomain = "ai.onnx.preview.training";
constexpr OperatorImport kTrainingOperators[] = {
    {"Adagrad", adagrad, kDomain},
    {"Adam", adam, kDomain},
    {"Momentum", momentum, kDomain},
    {"Gradient", gradient, kDomain},
};

}  // namespace

std::span<const OperatorImport> operators_training() { return kTrainingOperators; }

}  // namespace moka::import::onnx
