#include "ir/gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "conformance/case_util.h"
#include "ir/specialize.h"

/// The gradients of all cases in double precision, against central differences.
namespace moka::conformance {
namespace {

using namespace ir;

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
void widen(Block& block) {
  for (const auto& v : block.inputs()) v->type = to_double(v->type);
  for (auto it = block.ops().begin(); it != block.ops().end();) {
    Op& op = **it++;
    for (size_t i = 0; i < op.block_count(); i++) widen(*op.block(i));
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

/// Makes inputs of the constant weights, and appends their values.
void free_weights(Function& f, std::vector<RuntimeValue>& inputs) {
  std::vector<std::pair<Value*, Value*>> made;
  for (const auto& op : f.body().ops()) {
    if (!op->has_trait(Trait::constant) || op->output()->constant() == nullptr) continue;
    Value* v = op->output();
    if (!is_float_tensor(v->type) || v->type.rank() == 0) continue;
    bool is_known = false;  // inference needs the value
    for (const Op* user : v->users()) {
      const StaticCall call(*user);
      const auto before = user->version().infer ? user->version().infer(call.call()) : Result<std::vector<Type>>({});
      is_known |= !before.ok() || user->has_trait(Trait::constexpr_weight) || user->type_name() == "pad";
    }
    if (is_known) continue;
    made.emplace_back(v, f.body().add_input(v->name + "_free", v->type));
    inputs.emplace_back(v->constant()->tensor);
  }
  for (auto& [from, to] : made) Function::replace_all_uses(from, to);
}

struct Problem {
  Program program;
  std::vector<RuntimeValue> inputs;  ///< in double
  std::vector<size_t> targets;       ///< of the inputs
};

double number_of(const RuntimeValue& v) { return load_f64(v.tensor.view(), 0); }

/// The sum of all float outputs times random numbers; null: there is none.
Result<Value*> random_loss(Builder& b, std::mt19937& random) {
  Value* loss = nullptr;
  std::normal_distribution<double> normal;
  for (Value* v : b.block().outputs()) {
    if (!is_float_tensor(v->type) || !v->type.is_concrete() || v->type.shape().count() == 0) continue;
    if (v->type.dtype() != DType::fp16 && v->type.dtype() != DType::fp32) continue;
    Tensor weights = MOKA_TRY(Tensor::zeros(v->type.dtype(), v->type.shape()));
    for (int64_t i = 0; i < weights.count(); i++) store_f64(weights.view(), i, normal(random));
    Value* product = MOKA_TRY(b.op("mul", {{"x", v}, {"y", std::move(weights)}}));
    Value* sum = v->type.rank() == 0 ? product : MOKA_TRY(b.op("reduce_sum", {{"x", product}}));
    if (sum->type.dtype() != DType::fp32) sum = MOKA_TRY(b.op("cast", {{"x", sum}, {"dtype", "fp32"}}));
    loss = loss == nullptr ? sum : MOKA_TRY(b.op("add", {{"x", loss}, {"y", sum}}));
  }
  return loss;
}

/// nullopt: nothing can be differentiated. Error unsupported: an operation has no gradient.
Result<std::optional<Problem>> problem_of(const Case& narrow) {
  Problem p;
  const Case c = MOKA_TRY(widened(narrow));
  p.program = MOKA_TRY(read_program(c));
  Function& f = *p.program.functions[0];
  p.inputs = MOKA_TRY(ordered_inputs(c, f));
  std::vector<Type> types;
  for (size_t i = 0; i < p.inputs.size(); i++) types.push_back(p.inputs[i].type(f.body().inputs()[i]->type));
  for (const Type& t : types)
    if (!t.is_tensor()) return std::optional<Problem>();
  MOKA_TRY(specialize(f, types, ops::table()));
  free_weights(f, p.inputs);
  Builder b(ops::table(), f.body());
  b.opset = Opset::ios18;
  std::mt19937 random(7);
  Value* loss = MOKA_TRY(random_loss(b, random));
  std::vector<Value*> targets;
  for (size_t i = 0; i < p.inputs.size(); i++) {
    Value* v = f.body().inputs()[i].get();
    if (!is_float_tensor(v->type) || v->type.shape().count() == 0) continue;
    targets.push_back(v);
    p.targets.push_back(i);
  }
  if (loss == nullptr || targets.empty()) return std::optional<Problem>();
  std::vector<Value*> outputs = MOKA_TRY(differentiate(b, *loss, targets));
  std::vector<size_t> reached;
  std::vector<Value*> results{loss};
  for (size_t i = 0; i < outputs.size(); i++) {
    if (outputs[i] == nullptr) continue;
    EXPECT_EQ(cat(outputs[i]->type), cat(targets[i]->type)) << targets[i]->name;
    results.push_back(outputs[i]);
    reached.push_back(p.targets[i]);
  }
  p.targets = std::move(reached);
  f.body().set_outputs(std::move(results));
  for (const auto& op : f.body().ops())
    for (size_t i = 0; i < op->output_count(); i++)
      if (op->output(i)->type.is_list()) return std::optional<Problem>();  // their elements stay float32
  widen(f.body());
  for (RuntimeValue& v : p.inputs) {
    if (!is_float(v.tensor.dtype())) continue;
    v = to_double(v.tensor);
    for (int64_t i = 0; i < v.tensor.count(); i++)
      if (!std::isfinite(load_f64(v.view(), i))) store_f64(v.view(), i, std::sin(static_cast<double>(i + 1)));
  }
  return std::optional<Problem>(std::move(p));
}

Result<std::vector<RuntimeValue>> run(const Problem& p, const std::vector<RuntimeValue>& inputs) {
  EvaluateOptions options;
  options.table = &ops::table();
  return evaluate(*p.program.functions[0], inputs, options);
}

/// The loss where element `i` of one input differs by `by`.
Result<double> loss_at(const Problem& p, size_t input, int64_t i, double by) {
  std::vector<RuntimeValue> inputs = p.inputs;
  inputs[input] = to_double(inputs[input].tensor);
  const TensorView v = inputs[input].tensor.view();
  store_f64(v, i, load_f64(v, i) + by);
  return number_of(MOKA_TRY(run(p, inputs))[0]);
}

struct Counts {
  size_t compared = 0, steps = 0;
};

/// "" or the first element whose gradient is wrong.
Result<std::string> check(const Problem& p, Counts& counts) {
  const auto results = MOKA_TRY(run(p, p.inputs));
  const double here = number_of(results[0]);
  if (!std::isfinite(here)) return std::string();
  std::mt19937 random(3);
  for (size_t t = 0; t < p.targets.size(); t++) {
    const TensorView gradient = results[t + 1].view(), x = p.inputs[p.targets[t]].view();
    const int64_t n = gradient.count();
    for (int64_t k = 0; k < std::min<int64_t>(n, 12); k++) {
      const int64_t i = n <= 12 ? k : static_cast<int64_t>(random() % static_cast<uint64_t>(n));
      const double h = 2e-6 * std::max(1.0, std::fabs(load_f64(x, i)));
      const double up = MOKA_TRY(loss_at(p, p.targets[t], i, h)), down = MOKA_TRY(loss_at(p, p.targets[t], i, -h));
      const double expected = (up - down) / (2 * h), got = load_f64(gradient, i);
      // The function bends or jumps here, so it has no gradient.
      if (!std::isfinite(up - down) ||
          std::fabs((up - here) / h - (here - down) / h) > 1e-3 * (1 + std::fabs(expected))) {
        counts.steps++;
        continue;
      }
      counts.compared++;
      if (!(std::fabs(got - expected) <= 1e-5 * (1 + std::fabs(expected) + std::fabs(here))))
        return cat("input ", p.targets[t], ", element ", i, ": expected ", expected, ", got ", got);
    }
  }
  return std::string();
}

TEST(Gradients, CentralDifferences) {
  std::map<std::string, Counts> by_op;
  for (const Case& c : load_cases(MOKA_GOLDEN_FOLDER)) {
    auto p = problem_of(c);
    if (!p.ok()) {
      EXPECT_EQ(p.error().code(), ErrorCode::unsupported) << c.op << " " << c.name << ": " << p.error().to_string();
      continue;
    }
    if (!p->has_value()) continue;
    const auto wrong = check(**p, by_op[c.op]);
    if (!wrong.ok())
      ADD_FAILURE() << c.op << " " << c.name << ": " << wrong.error().to_string();
    else
      EXPECT_EQ(*wrong, "") << c.op << " " << c.name << "\n" << c.program;
  }
  for (const OpDef& d : ops::table().defs()) {
    const auto it = by_op.find(d.name);
    if (!d.gradient || d.is_step() || it == by_op.end()) continue;
    EXPECT_GT(it->second.compared, 2 * it->second.steps) << d.name;
  }
}

}  // namespace
}  // namespace moka::conformance
