// SPDX-License-Identifier: Apache-2.0
#include "training/program.h"

#include <algorithm>

#include "ir/gradient.h"
#include "ir/specialize.h"
#include "passes/pass.h"
#include "runtime/parameters.h"
#include "training/batch_statistics.h"
#include "training/place_steps.h"
#include "training/recompute.h"

namespace moka::training {

namespace {

using namespace ir;

Value* find_value(const Function& f, const import::FunctionDescription& d, std::string_view name) {
  for (size_t i = 0; i < d.outputs.size(); i++)
    if (d.outputs[i].name == name) {
      Value* v = f.body().outputs()[i];
      const bool is_label = v->producer() != nullptr && v->producer()->type_name() == "classify";
      return is_label ? v->producer()->input("probabilities") : v;
    }
  for (const auto& op : f.body().ops())
    for (size_t i = 0; i < op->output_count(); i++)
      if (op->output(i)->name == name) return op->output(i);
  return nullptr;
}

auto array(std::string name, const Type& type) {
  import::FeatureDescription f;
  f.name = std::move(name);
  f.array.dtype = type.dtype();
  for (int64_t d : type.shape()) f.array.shape.push_back(d);
  return f;
}  // namespace

class Maker {
 public:
  Maker(import::ImportedModel& model, Function& function, const ProgramOptions& options)
      : description_(model.description.functions[0]),
        function_(function),
        options_(options),
        builder_(ops::table(), function.body()) {
    builder_.opset = Opset::ios18;
  }

  Status run() {
    if (options_.batch_statistics)
      statistics_ = MOKA_TRY(use_batch_statistics(function_, *options_.batch_statistics, ops::table()));
    std::vector<runtime::Parameter> parameters = runtime::parameters_of(function_);
    std::erase_if(parameters, [&](const runtime::Parameter& p) { return is_statistic(p.name); });
    Value* loss = nullptr;
    for (const Loss& l : options_.losses) {
      Value* one = MOKA_TRY_IN(add_loss(l), cat("loss of '", l.input, "'"));
      loss = loss == nullptr ? one : MOKA_TRY(builder_.op("add", {{"x", loss}, {"y", one}}));
    }
    if (loss == nullptr) return moka::fail(ErrorCode::invalid_argument, "training needs a loss");
    loss = MOKA_TRY(builder_.op("identity", {{"x", loss}}, kLoss));
    std::vector<Value*> targets;
    for (const runtime::Parameter& p : parameters)
      targets.push_back(p.value->producer()->output(static_cast<size_t>(p.value->index())));
    const std::vector<Value*> gradients = MOKA_TRY(differentiate(builder_, *loss, targets));
    MOKA_TRY(add_numbers());
    std::vector<Value*> outputs{loss};
    std::vector<import::FeatureDescription> described{array(kLoss, loss->type)};
    for (size_t i = 0; i < targets.size(); i++) {
      if (gradients[i] == nullptr)
        return moka::fail(ErrorCode::invalid_argument, "the loss does not depend on parameter '", parameters[i].name,
                          "'");
      Op* const before = function_.body().ops().back().get();
      outputs.push_back(MOKA_TRY(add_step(parameters[i].name, targets[i], gradients[i])));
      steps_.push_back({targets[i], ops_behind(*before)});
      described.push_back(array(parameters[i].name, targets[i]->type));
    }
    for (const RunningStatistic& s : statistics_) {
      outputs.push_back(s.next);
      described.push_back(array(s.parameter, s.next->type));
    }
    if (options_.recompute) MOKA_TRY(recompute(function_, *loss->producer(), ops::table()));
    place_steps(function_, steps_);
    function_.body().set_outputs(std::move(outputs));
    description_.outputs = std::move(described);
    description_.predicted_feature_name.clear();
    description_.predicted_probabilities_name.clear();
    return {};
  }

 private:
  bool is_statistic(std::string_view parameter) const {
    return std::any_of(statistics_.begin(), statistics_.end(),
                       [&](const RunningStatistic& s) { return s.parameter == parameter; });
  }

  Value* add_input(const std::string& name, const Type& type) {
    Value* v = function_.body().add_input(function_.unique_name(name), type);
    description_.inputs.push_back(array(v->name, type));
    return v;
  }

  Result<Value*> add_target(const Loss& l, const Type& type) {
    for (const auto& v : function_.body().inputs())
      if (v->name == l.target)
        return moka::fail(ErrorCode::invalid_argument, "target '", l.target, "' is an input of the model already");
    Value* v = add_input(l.target, type);
    if (v->name != l.target)
      return moka::fail(ErrorCode::invalid_argument, "target '", l.target, "' is computed by the model");
    return v;
  }

  Result<Value*> add_loss(const Loss& l) {
    Value* x = find_value(function_, description_, l.input);
    if (x == nullptr) return moka::fail(ErrorCode::not_found, "the function computes no '", l.input, "'");
    if (!x->type.is_tensor() || x->type.dtype() != DType::fp32 || !x->type.is_concrete())
      return moka::fail(ErrorCode::unsupported, "expected a float32 tensor of a known size, got ", x->type);
    return l.kind == Loss::Kind::cross_entropy ? cross_entropy(l, *x) : squared_error(l, *x);
  }

  Result<Value*> squared_error(const Loss& l, Value& x) {
    Value* target = MOKA_TRY(add_target(l, x.type));
    Value* difference = MOKA_TRY(builder_.op("sub", {{"x", &x}, {"y", target}}));
    Value* square = MOKA_TRY(builder_.op("square", {{"x", difference}}));
    return builder_.op("reduce_mean", {{"x", square}});
  }

  /// Reads what the softmax reads, so that a small probability has a gradient.
  Result<Value*> cross_entropy(const Loss& l, Value& probabilities) {
    Value* p = &probabilities;
    while (p->producer() != nullptr && p->producer()->has_trait(Trait::alias)) p = p->producer()->input("x");
    if (p == nullptr || p->producer() == nullptr || p->producer()->type_name() != "softmax")
      return moka::fail(ErrorCode::unsupported, "cross-entropy needs the result of a softmax");
    Value* logits = p->producer()->input("x");
    const StaticCall call(*p->producer());
    const int64_t axis = MOKA_TRY(call.call().integer("axis"));
    const int rank = logits->type.rank(), at = static_cast<int>((axis + rank) % rank);
    const int64_t classes = logits->type.shape()[at],
                  rows = logits->type.shape().count() / std::max<int64_t>(classes, 1);
    if (logits->type.shape().count(at + 1, rank) != 1)
      return moka::fail(ErrorCode::unsupported, "cross-entropy of the classes of many positions, ", logits->type);
    Value* target = MOKA_TRY(add_target(l, Type::tensor(DType::int32, {rows})));
    description_.inputs.back().index_range = import::SizeRange{0, classes - 1};
    Value* hot = MOKA_TRY(builder_.op("one_hot", {{"indices", target},
                                                  {"one_hot_vector_size", Tensor::scalar_i64(DType::int32, classes)},
                                                  {"axis", -1},
                                                  {"on_value", 1.0f},
                                                  {"off_value", 0.0f}}));
    Ints shape;
    for (int64_t d : logits->type.shape()) shape.push_back(d);
    hot = MOKA_TRY(builder_.op("reshape", {{"x", hot}, {"shape", shape}}));
    Value* right = MOKA_TRY(builder_.op(
        "reduce_sum", {{"x", MOKA_TRY(builder_.op("mul", {{"x", hot}, {"y", logits}}))}, {"axes", Ints{at}}}));
    Value* all = MOKA_TRY(builder_.op("reduce_log_sum_exp", {{"x", logits}, {"axes", Ints{at}}}));
    Value* each = MOKA_TRY(builder_.op("sub", {{"x", all}, {"y", right}}));
    return builder_.op("reduce_mean", {{"x", each}});
  }

  Status add_numbers() {
    for (const std::string& name : optimizer_inputs(options_))
      numbers_.emplace_back(name, add_input(kNumbers + name, Type::tensor(DType::fp32, Shape{})));
    return {};
  }

  std::vector<Op*> ops_behind(const Op& op) const {
    std::vector<Op*> out;
    const auto& ops = function_.body().ops();
    for (auto it = ops.rbegin(); it->get() != &op; ++it) out.insert(out.begin(), it->get());
    return out;
  }

  Result<Value*> add_step(const std::string& parameter, Value* weight, Value* gradient) {
    const std::vector<std::string> kept = optimizer_states(options_);
    if (kept.empty()) {
      Value* change = MOKA_TRY(builder_.op("mul", {{"x", gradient}, {"y", numbers_[0].second}}));
      return builder_.op("sub", {{"x", weight}, {"y", change}});
    }
    std::vector<NamedArg> args{{"weight", weight}, {"gradient", gradient}};
    std::vector<Value*> states;
    for (const std::string& k : kept) {
      const std::string name = cat(parameter, "/", k);
      states.push_back(function_.body().add_input(name, Type::state(weight->type)));
      description_.states.push_back(array(name, weight->type));
      description_.states.back().kind = import::FeatureKind::state;
      args.emplace_back(k, MOKA_TRY(builder_.op("read_state", {{"input", states.back()}})));
    }
    for (const auto& [name, value] : numbers_) args.emplace_back(name, value);
    const Op* step =
        MOKA_TRY(builder_.append({options_.optimizer == Optimizer::sgd ? "moka_sgd_step" : "moka_adam_step",
                                  std::move(args), cat(parameter, "_step")}));
    for (size_t i = 0; i < states.size(); i++)
      MOKA_TRY(builder_.append({"write_state", {{"input", states[i]}, {"data", step->output(i + 1)}}}));
    return step->output();
  }

  import::FunctionDescription& description_;
  Function& function_;
  const ProgramOptions& options_;
  Builder builder_;
  std::vector<std::pair<std::string, Value*>> numbers_;
  std::vector<RunningStatistic> statistics_;
  std::vector<WeightStep> steps_;
};

}  // namespace

std::vector<std::string> optimizer_inputs(const ProgramOptions& options) {
  if (options.optimizer == Optimizer::adam) return {"learning_rate", "beta_1", "beta_2", "epsilon", "step"};
  if (options.momentum) return {"learning_rate", "momentum"};
  return {"learning_rate"};
}

std::vector<std::string> optimizer_states(const ProgramOptions& options) {
  if (options.optimizer == Optimizer::adam) return {"first_moment", "second_moment"};
  if (options.momentum) return {"velocity"};
  return {};
}

Result<import::ImportedModel> make_training_program(import::ImportedModel model, const ProgramOptions& options) {
  auto& d = model.description;
  const std::string name = d.default_function;
  Function* f = model.program.find(name);
  if (f == nullptr || d.function(name) == nullptr)
    return moka::fail(ErrorCode::malformed, "the model has no function '", name, "'");
  std::erase_if(model.program.functions, [&](const auto& other) { return other.get() != f; });
  std::erase_if(d.functions, [&](const auto& other) { return other.name != name; });
  if (f->body().inputs().size() != options.inputs.size())
    return moka::fail(ErrorCode::invalid_argument, "expected types of ", f->body().inputs().size(), " inputs, got ",
                      options.inputs.size());
  std::vector<passes::Remark> remarks;
  MOKA_TRY(passes::run_pass(*f, "widen_float16", ops::table(), remarks));
  std::vector<std::string> parameters = options.parameters;
  if (options.batch_statistics) {
    std::vector<std::string> statistics = MOKA_TRY(own_statistics(*f));
    parameters.insert(parameters.end(), statistics.begin(), statistics.end());
  }
  MOKA_TRY(runtime::mark_parameters(*f, parameters, ops::table()));
  MOKA_TRY(specialize(*f, options.inputs, ops::table()));
  MOKA_TRY(Maker(model, *f, options).run());
  runtime::move_fixed_first(*f);
  return model;
}

}  // namespace moka::training
