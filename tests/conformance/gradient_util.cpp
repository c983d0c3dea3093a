// SPDX-License-Identifier: Apache-2.0
#include "conformance/gradient_util.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/gradient.h"
#include "ir/specialize.h"
#include "runtime/parameters.h"

namespace moka::conformance {

using namespace ir;

namespace {

bool is_float_tensor(const Type& t) { return t.is_tensor() && is_float(t.dtype()); }

Tensor to_double(const Tensor& t) {
  Tensor out = *Tensor::zeros(DType::fp64, t.shape());
  for (int64_t i = 0; i < t.count(); i++) store_f64(out.view(), i, load_f64(t.view(), i));
  return out;
}

Constant to_double(const Constant& c) {
  if (is_float_tensor(c.type)) return Constant(to_double(c.tensor));
  if (c.type.is_tensor() && c.type.dtype() == DType::string && c.tensor.count() == 1)
    if (const std::string& s = c.tensor.text(); s == "fp16" || s == "fp32") return Constant(Tensor::text("fp64"));
  return c;
}

Type to_double(const Type& t) { return is_float_tensor(t) && t.is_ranked() ? Type::tensor(DType::fp64, t.shape()) : t; }

/// Computes the whole block in double.
void widen_block(Block& block) {
  for (const auto& v : block.inputs()) v->type = to_double(v->type);
  for (auto it = block.ops().begin(); it != block.ops().end();) {
    Op& op = **it++;
    for (size_t i = 0; i < op.block_count(); i++) widen_block(*op.block(i));
    if (op.has_trait(Trait::constant)) {
      Value* v = op.output();
      if (v->constant() == nullptr) continue;
      const Constant wide = to_double(*v->constant());
      if (wide.type == v->constant()->type && !(wide.type.is_tensor() && wide.type.dtype() == DType::string)) continue;
      Function::replace_all_uses(v, *Builder::before(ops::table(), op).constant(v->name, wide));
      continue;
    }
    std::vector<std::pair<std::string, Constant>> changed;
    for (const Operand& o : op.operands())
      if (o.values.size() == 1 && o.values[0]->is_inline_constant())
        changed.emplace_back(op.version().params[static_cast<size_t>(o.param)].name,
                             to_double(*o.values[0]->constant()));
    for (auto& [param, value] : changed) op.set_constant(param, std::move(value));
    for (size_t i = 0; i < op.output_count(); i++) op.output(i)->type = to_double(op.output(i)->type);
  }
}

/// Compressed weights become constants.
Status expand_weights(Block& block) {
  for (auto it = block.ops().begin(); it != block.ops().end();) {
    Op& op = **it++;
    for (size_t i = 0; i < op.block_count(); i++) MOKA_TRY(expand_weights(*op.block(i)));
    if (!op.has_trait(Trait::constexpr_weight)) continue;
    std::vector<RuntimeValue> inputs;
    for (const Operand& o : op.operands()) inputs.push_back(MOKA_TRY(runtime_value(*o.values[0]->constant())));
    const auto values = MOKA_TRY(evaluate_op(op, inputs));
    Builder before = Builder::before(ops::table(), op);
    for (size_t i = 0; i < op.output_count(); i++)
      Function::replace_all_uses(op.output(i),
                                 MOKA_TRY(before.constant(op.output(i)->name, Constant(values[i].tensor))));
    block.erase(&op);
  }
  return {};
}

/// Makes inputs of the parameters, and appends their values.
void free_parameters(Function& f, std::vector<RuntimeValue>& inputs) {
  for (const runtime::Parameter& p : runtime::parameters_of(f)) {
    Op* op = p.value->producer();
    inputs.emplace_back(op->input("initial")->constant()->tensor);
    Value* free = f.body().add_input(f.unique_name(cat(op->output()->name, "_free")), p.type);
    Function::replace_all_uses(op->output(), free);
    op->parent()->erase(op);
  }
}

/// The sum of all float outputs times random numbers; null: there is none.
Result<Value*> random_loss(Builder& b, std::mt19937& random) {
  Value* loss = nullptr;
  std::normal_distribution<double> normal;
  for (Value* v : b.block().outputs()) {
    if (!is_float_tensor(v->type) || !v->type.is_concrete() || v->type.shape().count() == 0) continue;
    if (v->type.dtype() != DType::fp16 && v->type.dtype() != DType::fp32) continue;
    Tensor weights = MOKA_TRY(Tensor::zeros(v->type.dtype(), v->type.shape()));
    for (int64_t i = 0; i < weights.count(); i++) store_f64(weights.view(), i, normal(random));
    const std::string name = "part_of_loss";
    Value* product = MOKA_TRY(b.op("mul", {{"x", v}, {"y", std::move(weights)}}, name));
    Value* sum = v->type.rank() == 0 ? product : MOKA_TRY(b.op("reduce_sum", {{"x", product}}, name));
    if (sum->type.dtype() != DType::fp32) sum = MOKA_TRY(b.op("cast", {{"x", sum}, {"dtype", "fp32"}}, name));
    loss = loss == nullptr ? sum : MOKA_TRY(b.op("add", {{"x", loss}, {"y", sum}}, name));
  }
  return loss;
}

double number_of(const RuntimeValue& v) { return load_f64(v.tensor.view(), 0); }

Result<std::vector<RuntimeValue>> run(const Differentiated& d, const std::vector<RuntimeValue>& inputs) {
  EvaluateOptions options;
  options.table = &ops::table();
  return evaluate(*d.program.functions[0], inputs, options);
}

/// The loss where element `i` of one input differs by `by`.
Result<double> loss_at(const Differentiated& d, size_t input, int64_t i, double by) {
  std::vector<RuntimeValue> inputs = d.inputs;
  inputs[input] = to_double(inputs[input].tensor);
  const TensorView v = inputs[input].tensor.view();
  store_f64(v, i, load_f64(v, i) + by);
  return number_of(MOKA_TRY(run(d, inputs))[0]);
}

/// A central difference whose error is the fourth power of `h`, for losses that bend much.
Result<double> second_order(const Differentiated& d, size_t input, int64_t i, double h) {
  const auto across = [&](double by) -> Result<double> {
    return MOKA_TRY(loss_at(d, input, i, by)) - MOKA_TRY(loss_at(d, input, i, -by));
  };
  return (8 * MOKA_TRY(across(h)) - MOKA_TRY(across(2 * h))) / (12 * h);
}

/// Makes results of the loss and of the gradients of all float inputs and parameters. The targets are counted over
/// both. Returns whether there are any.
Result<bool> add_results(Differentiated& d, Builder& b, bool with_gradients) {
  Block& body = b.block();
  std::mt19937 random(7);
  Value* loss = MOKA_TRY(random_loss(b, random));
  std::vector<Value*> all;
  for (const auto& v : body.inputs()) all.push_back(v.get());
  for (const runtime::Parameter& p : runtime::parameters_of(b.function())) all.push_back(p.value->producer()->output());
  std::vector<Value*> targets;
  for (size_t i = 0; i < all.size(); i++) {
    if (!is_float_tensor(all[i]->type) || all[i]->type.shape().count() == 0) continue;
    targets.push_back(all[i]);
    d.targets.push_back(i);
  }
  if (loss == nullptr || targets.empty()) return false;
  std::vector<Value*> results{loss};
  std::vector<size_t> reached;
  const std::vector<Value*> made =
      with_gradients ? MOKA_TRY(differentiate(b, *loss, targets)) : std::vector<Value*>(targets.size());
  for (size_t i = 0; i < made.size(); i++) {
    if (made[i] == nullptr) continue;
    EXPECT_EQ(cat(made[i]->type), cat(targets[i]->type)) << targets[i]->name;
    results.push_back(made[i]);
    reached.push_back(d.targets[i]);
  }
  d.targets = std::move(reached);
  body.set_outputs(std::move(results));
  return true;
}

}  // namespace

Result<std::optional<Differentiated>> differentiated(const Case& narrow, bool with_gradients, Weights weights) {
  Differentiated d;
  const Case c = MOKA_TRY(widened(narrow));
  d.program = MOKA_TRY(read_program(c));
  Function& f = *d.program.functions[0];
  d.inputs = MOKA_TRY(ordered_inputs(c, f));
  std::vector<Type> types;
  for (size_t i = 0; i < d.inputs.size(); i++) types.push_back(d.inputs[i].type(f.body().inputs()[i]->type));
  for (const Type& t : types)
    if (!t.is_tensor()) return std::optional<Differentiated>();
  MOKA_TRY(expand_weights(f.body()));
  Status marked = runtime::mark_parameters(f, std::vector<std::string>{"*"}, ops::table());
  if (!marked.ok() && marked.error().code() != ErrorCode::not_found) return std::move(marked).error();
  MOKA_TRY(specialize(f, types, ops::table()));
  Builder b(ops::table(), f.body());
  b.opset = Opset::ios18;
  if (!MOKA_TRY(add_results(d, b, with_gradients))) return std::optional<Differentiated>();
  if (weights == Weights::inputs) free_parameters(f, d.inputs);
  runtime::move_fixed_first(f);
  for (const auto& op : f.body().ops())
    for (size_t i = 0; i < op->output_count(); i++)
      if (op->output(i)->type.is_list()) return std::optional<Differentiated>();  // their elements stay float32
  return std::optional<Differentiated>(std::move(d));
}

void widen(Differentiated& d) {
  widen_block(d.program.functions[0]->body());
  for (RuntimeValue& v : d.inputs) {
    if (!is_float(v.tensor.dtype())) continue;
    v = to_double(v.tensor);
    for (int64_t i = 0; i < v.tensor.count(); i++)
      if (!std::isfinite(load_f64(v.view(), i))) store_f64(v.view(), i, std::sin(static_cast<double>(i + 1)));
  }
}

Result<std::string> gradient_error(const Case& c, int64_t most, const GradientBound& bound, Compared& compared) {
  auto gradients = MOKA_TRY(differentiated(c, true, Weights::inputs));
  if (!gradients) return std::string();
  auto loss = MOKA_TRY(differentiated(c, false, Weights::inputs));
  widen(*gradients);
  widen(*loss);
  const auto results = MOKA_TRY(run(*gradients, gradients->inputs));
  const double here = number_of(results[0]);
  if (!std::isfinite(here)) return std::string();
  std::mt19937 random(3);
  for (size_t t = 0; t < gradients->targets.size(); t++) {
    const size_t target = gradients->targets[t];
    const TensorView gradient = results[t + 1].view(), x = loss->inputs[target].view();
    const int64_t n = gradient.count();
    for (int64_t k = 0; k < std::min(n, most); k++) {
      const int64_t i = n <= most ? k : static_cast<int64_t>(random() % static_cast<uint64_t>(n));
      const double h = 2e-6 * std::max(1.0, std::fabs(load_f64(x, i)));
      const double up = MOKA_TRY(loss_at(*loss, target, i, h)), down = MOKA_TRY(loss_at(*loss, target, i, -h));
      double expected = (up - down) / (2 * h);
      const double got = load_f64(gradient, i);
      // The function bends or jumps here, so it has no gradient.
      if (!std::isfinite(up - down) ||
          std::fabs((up - here) / h - (here - down) / h) > 1e-3 * (1 + std::fabs(expected))) {
        compared.steps++;
        continue;
      }
      compared.elements++;
      const auto is_near = [&] {
        return std::fabs(got - expected) <= bound.gradient * (1 + std::fabs(expected)) + bound.loss * std::fabs(here);
      };
      if (!is_near()) expected = MOKA_TRY(second_order(*loss, target, i, h));
      // Large numbers that cancel in the loss leave rounding errors, which count less over a longer way.
      if (!is_near()) expected = MOKA_TRY(second_order(*loss, target, i, 64 * h));
      if (!is_near()) return cat("input ", target, ", element ", i, ": expected ", expected, ", got ", got);
    }
  }
  return std::string();
}

}  // namespace moka::conformance
