// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "report/measure.h"
#include "report/resident.h"
#include "report/statistics.h"
#include "report/work.h"

namespace moka::reporting {

namespace {

constexpr size_t kLoads = 3, kLeastPredictions = 10, kMostPredictions = 1'000'000;
constexpr double kLongLoad = 10;  ///< seconds; such a model is loaded once

/// Gives inputs other shapes, with random values.
void reshape(Features& inputs, const Model& model, const ReportSetting& setting) {
  for (const auto& [name, shape] : setting.shapes) {
    FunctionDescription one = model.function();
    std::erase_if(one.inputs, [&name = name](const FeatureDescription& f) {
      return f.name != name || f.type != FeatureType::multi_array;
    });
    if (one.inputs.empty())
      throw Exception(ErrorKind::invalid_argument,
                      cat("shape ", shape_text(name, shape), ": expected an array input of the model"));
    for (const int64_t size : shape)
      if (size < 1)
        throw Exception(ErrorKind::invalid_argument,
                        cat("shape ", shape_text(name, shape), ": expected sizes above 0"));
    one.inputs[0].array.shape = shape;
    inputs[name] = random_inputs(one, setting.seed).at(name);
  }
}

Features inputs_of(const Model& model, const ReportSetting& setting) {
  Features inputs = !setting.inputs.empty() ? setting.inputs
                    : setting.make_inputs   ? setting.make_inputs(model)
                                            : model.random_inputs(setting.seed);
  reshape(inputs, model, setting);
  return inputs;
}

std::vector<double> loads(const ReportSetting& setting, const ModelLoader& load, const ReportOptions& options,
                          std::optional<Model>& model, MeasuredSetting& out, Watch& watch) {
  ModelConfiguration configuration = setting.configuration;
  configuration.stop = options.stop;
  configuration.deadline = options.deadline;
  watch.begin("load");
  std::vector<double> seconds;
  do {
    model.reset();  // the next load would share its weights
    const auto start = Clock::now();
    model.emplace(load(configuration));
    seconds.push_back(seconds_since(start));
    if (seconds.size() == 1) {
      out.memory.peak_after_load_bytes = peak_memory();
      out.load_times = model->load_times();
    }
    watch.done(seconds.size());
  } while (seconds.size() < kLoads && seconds.front() < kLongLoad);
  return seconds;
}

std::vector<double> steady(const Model& model, const ReportSetting& setting, const Features& inputs, Features& outputs,
                           const PredictionOptions& options, Watch& watch, Energy& energy) {
  const std::vector<Features> batch(setting.batch > 1 ? static_cast<size_t>(setting.batch) : 0, inputs);
  watch.begin("predict");
  std::vector<double> out;
  EnergyMeter meter;
  const auto begin = Clock::now();
  const auto elapsed = [&] { return seconds_since(begin); };
  while (out.size() < kLeastPredictions || (elapsed() < setting.seconds && out.size() < kMostPredictions)) {
    const auto start = Clock::now();
    if (batch.empty())
      model.predict(inputs, outputs, options);
    else
      (void)model.predict_batch(batch, options);
    out.push_back(seconds_since(start));
    watch.done(out.size());
    meter.poll();
    if (elapsed() > 10 * setting.seconds + 10) break;
  }
  energy = meter.taken();
  for (EnergyPart& part : energy.parts)
    part.joules /= static_cast<double>(out.size()) * static_cast<double>(setting.batch);
  return out;
}

std::optional<OperationRoof> roof_of_operation(const Work& work, double seconds, const std::string& device,
                                               const ReportMachine& machine) {
  if (seconds <= 0) return std::nullopt;
  for (const UnitRates& u : machine.units) {
    if (u.device != device || u.bytes <= 0) continue;
    const Roof roof = roof_of(work, std::max(u.fp32, u.fp16), u.bytes);
    if (roof.seconds > 0) return OperationRoof{roof.seconds / seconds, roof.is_arithmetic};
  }
  return std::nullopt;
}

void add_operations(ComputePlan plan, const Model& model, MeasuredSetting& out) {
  const std::vector<Work> work = work_of(plan, model);
  const size_t count = plan.operations.size();
  std::vector<bool> contains(count);
  double sum = 0;
  for (size_t i = 0; i < count; i++) {
    contains[i] = i + 1 < count && plan.operations[i + 1].depth > plan.operations[i].depth;
    if (!contains[i]) sum += std::max(0.0, plan.operations[i].measured_seconds);
  }
  for (size_t i = 0; i < count; i++) {
    ReportedOperation o{std::move(plan.operations[i])};
    const double seconds = std::max(0.0, o.measured_seconds);
    o.contains = contains[i];
    if (!o.contains && sum > 0) o.share = seconds / sum;
    if (work[i].bytes > 0) {
      o.arithmetic = work[i].arithmetic;
      o.bytes_moved = work[i].bytes;
      o.roof = roof_of_operation(work[i], seconds, o.device, out.machine);
    }
    out.operations.push_back(std::move(o));
  }
  out.plan.prediction_seconds = plan.measured_seconds;
  out.plan.operations_seconds = sum;
  out.plan.predictions = plan.predictions;
  out.plan.operations_in_source = plan.operations_in_source;
  out.plan.folded = plan.folded;
  out.plan.complete = plan.complete;
  out.remarks = std::move(plan.remarks);
}

}  // namespace

void measure_setting(const ReportSetting& setting, const ModelLoader& load, const ReportOptions& options,
                     ReportModel& reported, MeasuredSetting& out) {
  Watch watch(options, setting.name);
  return_freed_memory();
  out.memory.resident_before = resident_memory();
  out.memory.peak_is_of_setting = options.reset_peak && reset_peak_memory();
  std::optional<Model> loaded;
  const std::vector<double> load_seconds = loads(setting, load, options, loaded, out, watch);
  const Model& model = *loaded;
  if (reported.type.empty()) {
    reported.type = model.description().type;
    reported.specification_version = model.description().specification_version;
  }
  const Features inputs = inputs_of(model, setting);
  std::optional<State> state;
  PredictionOptions prediction;
  prediction.stop = options.stop;
  prediction.deadline = options.deadline;
  if (!model.function().states.empty()) prediction.state = &state.emplace(model.new_state());
  Features outputs;
  watch.begin("predict");
  const auto start = Clock::now();
  model.predict(inputs, outputs, prediction);
  out.first = seconds_since(start);
  out.steady = statistics(steady(model, setting, inputs, outputs, prediction, watch, out.energy));
  out.memory.peak_bytes = peak_memory();
  out.load = statistics(load_seconds);
  out.machine = setting.machine ? *setting.machine : machine_of(setting.configuration, watch);

  const double single = out.steady.median / static_cast<double>(setting.batch);
  const int predictions = static_cast<int>(std::clamp(setting.seconds / 2 / std::max(single, 1e-6), 3.0, 101.0)) | 1;
  watch.begin("operations");
  ComputePlan plan = model.measure_plan(inputs, predictions, prediction);
  for (const auto& w : model.structure().weights) out.memory.weight_bytes += w.bytes;
  out.memory.packed_bytes = plan.packed_bytes;
  out.memory.arena_bytes = plan.arena_bytes;
  out.memory.unshared_bytes = plan.unshared_bytes;
  add_operations(std::move(plan), model, out);
  watch.begin("coverage");
  out.plan.coverage = coverage(model, inputs, prediction, predictions);
}

}  // namespace moka::reporting
