// SPDX-License-Identifier: Apache-2.0
#include "training/trainer.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/bytes.h"
#include "trace/trace.h"

namespace moka::training {

namespace {

/// Errors: data, for a class that the loss does not know.
Status check_classes(const ir::Tensor& classes, const import::FeatureDescription& feature) {
  if (!feature.index_range) return {};
  for (int64_t i = 0; i < classes.count(); i++)
    if (const int64_t c = ir::load_i64(classes.view(), i);
        c < feature.index_range->lower || c > feature.index_range->upper)
      return fail(ErrorCode::data, "training: '", feature.name, "': expected classes from ", feature.index_range->lower,
                  " to ", feature.index_range->upper, ", got ", c);
  return {};
}

/// Whether the output, which an optimizer makes of the parameter, may be computed in the memory of the parameter:
/// nothing else reads the elements of the parameter then or later. A device might fail, and the step begin again.
bool may_replace(const plan::Sequence& sequence, size_t output, const ir::Tensor& parameter) {
  if (!sequence.regions.empty() || !sequence.is_complete()) return false;
  const int made = sequence.place(sequence.outputs[output]).root;
  bool is_made = false, may = true;
  plan::for_each_step(sequence, [&](int, const auto& step, int) {
    const auto reads = plan::reads_of(sequence, step), writes = plan::writes_of(sequence, step);
    const auto read = std::count_if(reads.begin(), reads.end(), [&](int i) {
      const auto* constant = std::get_if<plan::Constant>(&sequence.place(i).storage);
      return constant != nullptr && constant->tensor.data() == parameter.data();
    });
    const bool makes = std::any_of(writes.begin(), writes.end(), [&](int i) { return sequence.place(i).root == made; });
    const plan::Call* call = plan::call_of(step);
    if (makes) {
      const bool is_optimizer =
          call != nullptr && (call->op->type_name() == "moka_sgd_step" || call->op->type_name() == "moka_adam_step");
      may &= !is_made && is_optimizer && read == 1;
      is_made = true;
    } else if (is_made) {
      may &= read == 0;
    }
  });
  return is_made && may;
}

}  // namespace

Result<std::unique_ptr<Trainer>> Trainer::make(std::function<Result<import::ImportedModel>()> import,
                                               std::vector<ir::Type> inputs, TrainerOptions options) {
  options.compile.packed = nullptr;
  options.compile.cache = nullptr;
  options.compile.plan.renewable = true;
  options.compile.plan.prepare_late = false;
  options.compile.idle_memory = std::numeric_limits<size_t>::max();  // the next step needs the same arena
  std::unique_ptr<Trainer> t(new Trainer(std::move(import), std::move(options)));
  MOKA_TRY(t->planned(inputs));
  return t;
}

Result<Trainer::Planned*> Trainer::planned(const std::vector<ir::Type>& inputs) {
  for (auto& [types, planned] : plans_)
    if (types == inputs) return &planned;
  import::ImportedModel model = MOKA_TRY(import_());
  if (const import::FunctionDescription* f = model.description.function(model.description.default_function);
      f != nullptr && input_names_.empty())
    for (const auto& input : f->inputs) input_names_.push_back(input.name);
  ProgramOptions program = options_.program;
  program.inputs = inputs;
  import::ImportedModel training = MOKA_TRY(make_training_program(std::move(model), program));
  runtime::CompileOptions compile = options_.compile;
  const bool is_first = parameters_.empty();
  if (!is_first) compile.parameter_values = parameters_;
  std::unique_ptr<runtime::Model> made = MOKA_TRY(runtime::Model::compile(std::move(training), compile));
  if (is_first) {
    for (const runtime::Parameter& p : made->parameters()) {
      const ir::Tensor first = MOKA_TRY(made->parameter_value(p));
      parameters_.emplace(p.name, MOKA_TRY(ir::Tensor::copy_of(first.view())));
      drop_pages(first.data(), first.bytes());  // the file's are not read again
    }
    for (const auto& s : made->function().states)
      states_.emplace(s.name, MOKA_TRY(ir::Tensor::zeros(s.array.dtype, MOKA_TRY(ir::Shape::make(s.array.shape)))));
    made = made->with_parameters(parameters_, options_.compile.plan.budget);
  }
  last_ = made.get();
  plans_.emplace_back(inputs, Planned{std::move(made), steps_, {}});
  return &plans_.back().second;
}

Status Trainer::place_outputs(Planned& planned, const std::vector<ir::Type>& types) {
  const auto plan = MOKA_TRY(planned.model->plan(types));
  const auto& outputs = planned.model->function().outputs;
  planned.outputs.resize(outputs.size());
  for (size_t i = 1; i < outputs.size(); i++) {
    ir::Tensor& p = parameters_.at(outputs[i].name);
    if (may_replace(plan->sequence, i, p))
      planned.outputs[i] = {runtime::OutputMemory::Kind::given, p.mutable_data(), p.shape().dims()};
  }
  return {};
}

Result<double> Trainer::step(const std::map<std::string, ir::Tensor>& arrays, const Numbers& numbers) {
  std::vector<ir::Type> inputs;
  for (const std::string& name : input_names_) {
    const auto it = arrays.find(name);
    if (it == arrays.end()) return fail(ErrorCode::not_found, "training: input '", name, "' is missing");
    inputs.push_back(ir::Type::tensor(it->second.dtype(), it->second.shape()));
  }
  Planned& planned = *MOKA_TRY(this->planned(inputs));
  const runtime::Model& model = *planned.model;
  last_ = &model;
  const trace::Span span(trace::Lane::activity, "training step");
  if (planned.version != steps_) MOKA_TRY(model.renew_parameters());
  planned.version = steps_;

  std::vector<ir::Type> types;
  std::vector<runtime::InputValue> values;
  std::vector<float> scalars(optimizer_inputs(options_.program).size());
  size_t used = 0;
  for (const auto& v : model.ir().body().inputs()) {
    types.push_back(v->type);
    if (const auto state = states_.find(v->name); state != states_.end()) {
      values.emplace_back(&state->second);
      continue;
    }
    if (const auto array = arrays.find(v->name); array != arrays.end()) {
      const ir::Tensor& a = array->second;
      if (a.dtype() != v->type.dtype() || !(a.shape() == v->type.shape()))
        return fail(ErrorCode::invalid_argument, "training: '", v->name, "': expected ", v->type, ", got ",
                    ir::Type::tensor(a.dtype(), a.shape()));
      MOKA_TRY(check_classes(a, model.feature(values.size())));
      values.emplace_back(ir::ArrayView{a.dtype(), a.shape().dims(), {}, a.data()});
      continue;
    }
    const bool is_number = v->name.starts_with(kNumbers);
    const std::string name = is_number ? v->name.substr(kNumbers.size()) : v->name;
    const auto number = numbers.find(name);
    if (!is_number || (name != "step" && number == numbers.end()))
      return fail(ErrorCode::not_found, "training: '", name, "' is missing");
    scalars[used] = name == "step" ? static_cast<float>(steps_ + 1) : static_cast<float>(number->second);
    values.emplace_back(ir::ArrayView{ir::DType::fp32, {}, {}, &scalars[used++]});
  }
  if (planned.outputs.empty()) MOKA_TRY(place_outputs(planned, types));
  runtime::Prediction prediction =
      model.predict({.types = types, .inputs = values, .outputs = planned.outputs, .is_recorded = trace::is_on()});
  MOKA_TRY(prediction.take_status());
  const double loss = ir::load_f64(prediction.output(0), 0);
  const auto& outputs = model.function().outputs;
  for (size_t i = 1; i < outputs.size(); i++) {
    if (prediction.is_in_given(i)) continue;
    ir::Tensor& p = parameters_.at(outputs[i].name);
    memcpy(p.mutable_data(), prediction.output(i).data, p.bytes());
  }
  steps_++;
  return loss;
}

}  // namespace moka::training
