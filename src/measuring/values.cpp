// SPDX-License-Identifier: Apache-2.0
#include "measuring/values.h"

#include <algorithm>

#include "measuring/predict.h"
#include "moka/input_sizes.h"

namespace moka::measuring {
namespace {

using linting::FunctionView;
using linting::Measurements;

/// Larger inputs are not tried: a range without an upper limit allows sizes that nobody uses.
constexpr int64_t kMostElements = int64_t{1} << 26;

ModelConfiguration configuration_of(const FunctionView& view, bool single) {
  ModelConfiguration c;
  c.compute_units = ComputeUnits::cpu_only;
  if (!single) c.function_name = view.function->name;
  return c;
}

/// Measures the inputs and the results of all operations.
void observe(const Model& model, const std::vector<Features>& inputs, Measurements& to) {
  const auto measure_array = [&](std::string_view value, const MultiArray& array) {
    linting::Measured& m = to[std::string(value)];
    if (array.type() == DataType::float32 && array.is_contiguous()) {
      for (float x : array.as<float>()) m.add(x);
      return;
    }
    for (int64_t i = 0; i < array.count(); ++i) m.add(array.at(i));
  };
  const Intermediate add = [&](std::string_view, std::string_view value, const MultiArray& array) {
    measure_array(value, array);
  };
  for (const Features& features : inputs) {
    for (const auto& [name, value] : features)
      if (const auto* array = std::get_if<MultiArray>(&value)) measure_array(name, *array);
    with_new_state(model,
                   [&](const PredictionOptions& options) { return model.intermediates(features, add, options); });
  }
}

bool has_half(const ir::Block& block) {
  bool found = false;
  linting::for_each_op(block, [&](const ir::Op& op) {
    for (size_t i = 0; i < op.output_count(); ++i)
      found |= op.output(i)->type.is_tensor() && op.output(i)->type.dtype() == ir::DType::fp16;
  });
  return found;
}

int64_t elements_of(const FunctionDescription& function) {
  int64_t most = 0;
  for (const FeatureDescription& f : function.inputs) {
    double count = f.type == FeatureType::image
                       ? 4.0 * static_cast<double>(f.image.width) * static_cast<double>(f.image.height)
                       : 1;
    if (f.type == FeatureType::multi_array)
      for (int64_t size : f.array.shape) count *= static_cast<double>(size);
    most = std::max(most, static_cast<int64_t>(std::min(count, 1e18)));
  }
  return most;
}

void try_sizes(const Model& model, const FunctionView& view, const lint::Options& options, linting::Subject& subject,
               lint::Report& report) {
  const std::vector<ShapeChoice> choices = shape_choices(model.function(), true);
  for (size_t i = 1; i < choices.size(); ++i) {
    if (elements_of(choices[i].function) > kMostElements) {
      report.remarks.push_back(cat("inputs ", choices[i].name, " were not tried: they are too large"));
      continue;
    }
    ++report.sizes;
    try {
      predict_once(model,
                   inputs_within(random_inputs(choices[i].function, options.seed), options.ranges, options.seed));
    } catch (const Exception& e) {
      if (e.kind() == ErrorKind::out_of_budget)
        report.remarks.push_back(cat("inputs ", choices[i].name, " were not tried: ", e.what()));
      else
        subject.failed_sizes.push_back({view.function->name, choices[i].name, e.what()});
    }
  }
}

/// Records the operations that the preview of the Neural Engine refuses.
void ask_neural_engine(const Model& model, ModelConfiguration c, FunctionView& view) {
  c.compute_units = ComputeUnits::cpu_and_neural_engine;
  for (const PlannedOperation& op : model.configured(c).compute_plan().operations)
    for (const UnitBid& bid : op.bids)
      if (bid.unit == "neuralEngine" && !bid.refusal.empty())
        view.refusals.emplace(op.name, linting::Refusal{bid.refusal, bid.remedy, bid.source});
}

void measure_function(const std::string& path, const lint::Options& options, bool is_default, bool asks_neural_engine,
                      FunctionView& view, linting::Subject& subject, lint::Report& report) {
  const ModelConfiguration usual = configuration_of(view, subject.functions.size() == 1);
  const Model model = Model::load(path, usual);
  std::vector<Features> inputs = options.inputs;
  if (inputs.empty() || !is_default)
    inputs = {inputs_within(model.random_inputs(options.seed), options.ranges, options.seed)};
  // Without the passes, every operation of the program keeps a result to look at.
  ModelConfiguration plain = usual;
  plain.optimize = false;
  observe(model.configured(plain), inputs, view.wide);
  if (asks_neural_engine) ask_neural_engine(model, plain, view);
  if (has_half(view.function->body())) {
    plain.precision = Precision::exact;
    observe(model.configured(plain), inputs, view.half);
  }
  report.predictions += inputs.size();
  try_sizes(model, view, options, subject, report);
}

}  // namespace

void measure(const std::string& path, const lint::Options& options, bool asks_neural_engine, linting::Subject& subject,
             lint::Report& report) {
  for (size_t i = 0; i < subject.functions.size(); ++i) {
    FunctionView& view = subject.functions[i];
    if (!options.function.empty() && view.function->name != options.function) continue;
    const bool is_default = options.function.empty() ? view.function->name == subject.description.default_function ||
                                                           subject.functions.size() == 1
                                                     : true;
    try {
      measure_function(path, options, is_default, asks_neural_engine, view, subject, report);
    } catch (const Exception& e) {
      if (e.kind() == ErrorKind::unsupported || e.kind() == ErrorKind::out_of_budget)
        report.remarks.push_back(cat("nothing was measured: ", e.what()));
      else if (subject.load_error.empty())
        subject.load_error = e.what();
    }
  }
}

}  // namespace moka::measuring
