// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/internal.h"
#include "base/clock.h"
#include "explaining/capture.h"
#include "linting/lint.h"
#include "linting/narrowing.h"
#include "plan/text.h"

namespace moka {

namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// Collects the times of all steps in several predictions.
class Timing final : public runtime::TraceSink {
 public:
  void step(const plan::Plan&, const plan::Step& step, double seconds, std::span<const ir::TensorView>) override {
    auto& [total, runs] = current_[&step];
    total += seconds;
    runs++;
  }
  void restart() override { current_.clear(); }
  void end_prediction() {
    for (const auto& [step, time] : current_) {
      all_[step].first.push_back(time.first);
      all_[step].second = std::max(all_[step].second, time.second);
    }
    current_.clear();
  }
  api::StepTimes medians() const {
    api::StepTimes out;
    for (const auto& [step, times] : all_) out[step] = {median(times.first), times.second};
    return out;
  }

 private:
  api::StepTimes current_;
  std::map<const plan::Step*, std::pair<std::vector<double>, int64_t>> all_;
};

/// Throws out_of_budget when an input of the default shape exceeds `limit` bytes.
void check_default_sizes(const FunctionDescription& function, size_t limit) {
  for (const FeatureDescription& f : function.inputs) {
    size_t bytes = size_of(f.array.type);
    for (int64_t d : f.array.shape)
      if (d < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(d), &bytes)) bytes = SIZE_MAX / 2;
    if (f.type == FeatureType::multi_array && bytes > limit)
      throw Exception(ErrorKind::out_of_budget, cat("input '", f.name, "': ", f.formatted_type(),
                                                    " is larger than the memory budget of ", limit, " bytes"));
  }
}

void check_ranges(const FunctionDescription& function, const std::map<std::string, std::pair<double, double>>& ranges) {
  for (const auto& [name, range] : ranges) {
    const bool is_array = std::any_of(function.inputs.begin(), function.inputs.end(), [&](const auto& f) {
      return f.name == name && f.type == FeatureType::multi_array;
    });
    if (!is_array)
      throw Exception(ErrorKind::invalid_argument, cat("range of '", name, "': not an array input of the model"));
    if (!(range.first <= range.second))
      throw Exception(ErrorKind::invalid_argument, cat("range of '", name, "': expected a low and a high end"));
  }
}

/// Remarks about integers that a narrower type may not hold.
void add_narrowings(const runtime::Model& model, const std::map<std::string, std::pair<double, double>>& ranges,
                    ComputePlan& report) {
  const auto bounds = linting::Bounds::on_demand(model.ir(), &model.function(), ranges);
  for (const linting::Narrowing& n : linting::narrowings(model.ir().body(), bounds))
    report.remarks.push_back({"integers", cat(linting::place_of(*n.op), ": ", n.reason(), "; ", n.evidence())});
}

std::string_view name_of(PlanStage stage) {
  switch (stage) {
    case PlanStage::resolve: return "resolve";
    case PlanStage::claim: return "claim";
    case PlanStage::arrange: return "arrange";
    case PlanStage::memory: return "memory";
  }
  return "";
}

/// What planning or measured predictions ran.
struct Planned {
  Model::Impl::Ran ran;
  api::StepTimes times;
  double seconds = -1;
  Capture capture;  ///< of what devices ran
};

/// The commands of devices in as many predictions.
Result<Capture> captured_runs(const Model::Impl& impl, const Features& given, int predictions,
                              const PredictionOptions& options) {
  explaining::Capturer capturer;
  Features outputs;
  for (int i = 0; i <= predictions; i++) {  // the first one compiles regions so that they tell of their commands
    capturer.begin();
    MOKA_TRY(impl.predict(given, outputs, options, nullptr, nullptr, false, &capturer));
    capturer.end(i > 0);
  }
  return capturer.take();
}

Planned measured_run(const Model::Impl& impl, const Features& given, int predictions,
                     const PredictionOptions& options) {
  Planned out;
  Features outputs;
  // The first prediction also plans steps that depend on values and does one-time work.
  api::unwrap(impl.predict(given, outputs, options, nullptr, &out.ran));
  Timing timing;
  std::vector<double> whole;
  for (int i = 0; i < predictions; i++) {
    const auto start = Clock::now();
    api::unwrap(impl.predict(given, outputs, options, nullptr, &out.ran));
    whole.push_back(seconds_since(start));
    api::unwrap(impl.predict(given, outputs, options, &timing, &out.ran));
    timing.end_prediction();
  }
  out.seconds = median(std::move(whole));
  out.times = timing.medians();
  if (!out.ran.plan->sequence.regions.empty())
    out.capture = api::unwrap(captured_runs(impl, given, predictions, options));
  return out;
}

Planned planned_run(const Model::Impl& impl, const Features& given, const std::vector<std::string>& wanted) {
  Planned out;
  Model::Impl::Asked asked;
  std::vector<ir::Type> types;
  out.ran.model = api::unwrap(impl.choose(given, wanted, asked, types));
  out.ran.plan = api::unwrap(out.ran.model->plan(types));
  return out;
}

ComputePlan report_of(const Model::Impl& impl, const Planned& planned, int predictions,
                      const std::map<std::string, std::pair<double, double>>& ranges) {
  const runtime::Model& model = *planned.ran.model;
  ComputePlan report = api::report(model, *planned.ran.plan, predictions > 0 ? &planned.times : nullptr);
  report.memory.heap = impl.heap_bytes;
  report.measured_seconds = planned.seconds;
  explaining::add_dispatches(planned.capture, report.operations);
  report.predictions = std::max(predictions, 0);
  add_narrowings(model, ranges, report);
  for (const std::string& remark : impl.description.remarks) report.remarks.push_back({"specification", remark});
  if (const std::string failure = model.failure(); !failure.empty()) report.remarks.push_back({"devices", failure});
  report.pins = impl.pins;
  for (const PlannedPin& pin : impl.pins)
    if (!pin.note.empty()) report.remarks.push_back({"pins", pin.note});
  for (const std::string& remark : impl.device_remarks) report.remarks.push_back({"devices", remark});
  if (const std::string& remark = impl.kernel_cache.remark; !remark.empty())
    report.remarks.push_back({"kernel_cache", remark});
  if (const auto& cache = impl.packed_weights.cache; cache && !cache->remark().empty())
    report.remarks.push_back({"cache", cache->remark()});
  return report;
}

}  // namespace

std::string Model::plan_text(PlanStage stage, const Features& inputs) const {
  if (inputs.empty() && impl_->configuration.memory_budget > 0)
    check_default_sizes(impl_->function, impl_->configuration.memory_budget);
  Impl::Asked asked;
  std::vector<ir::Type> types;
  const Features given = inputs.empty() ? random_inputs() : inputs;
  const auto model = api::unwrap(impl_->choose(given, {}, asked, types));
  const auto plan = api::unwrap(model->plan(types));
  return api::unwrap(plan::stage_text(*plan, model->plan_options(), name_of(stage)));
}

ComputePlan Model::measure_plan(const Features& inputs, int predictions, const PredictionOptions& options) const {
  if (predictions < 1)
    throw Exception(ErrorKind::invalid_argument, cat("predictions: expected at least 1, got ", predictions));
  if (inputs.empty() && impl_->configuration.memory_budget > 0)
    check_default_sizes(impl_->function, impl_->configuration.memory_budget);
  const Features given = inputs.empty() ? random_inputs() : inputs;
  PredictionOptions with_state = options;
  std::optional<State> state;
  if (options.state == nullptr && !impl_->function.states.empty()) with_state.state = &state.emplace(new_state());
  return report_of(*impl_, measured_run(*impl_, given, predictions, with_state), predictions, {});
}

ComputePlan Model::compute_plan(const Features& inputs, int predictions, const std::vector<std::string>& wanted,
                                const std::map<std::string, std::pair<double, double>>& ranges) const {
  check_ranges(impl_->function, ranges);
  if (inputs.empty() && impl_->configuration.memory_budget > 0)
    check_default_sizes(impl_->function, impl_->configuration.memory_budget);
  const Features given = inputs.empty() ? random_inputs() : inputs;
  if (predictions < 1) return report_of(*impl_, planned_run(*impl_, given, wanted), predictions, ranges);
  std::optional<State> state;
  PredictionOptions options{nullptr, wanted};
  if (!impl_->function.states.empty()) options.state = &state.emplace(new_state());
  return report_of(*impl_, measured_run(*impl_, given, predictions, options), predictions, ranges);
}

}  // namespace moka
