// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "base/error.h"
#include "checking/measure.h"
#include "checking/text.h"
#include "recording/values.h"
#include "report/measure.h"
#include "report/statistics.h"

namespace moka {

namespace recording {

namespace {

using checking::rounded_text;

/// What identifies an operation in its recording.
std::string key_of(const RecordedOperation& o) {
  std::string out = cat(o.model, "\n", o.function, "\n", o.name, "\n", o.type);
  for (const std::string& output : o.outputs) out += "\n" + output;
  return out;
}

/// An output of one prediction, whole or by a sample.
struct Side {
  const FeatureValue* value = nullptr;
  const RecordedSample* sample = nullptr;
};

Side side_of(const RecordedAnswers& answers, const std::string& name) {
  Side out{answers.values.find(name), nullptr};
  if (const auto at = answers.samples.find(name); at != answers.samples.end()) out.sample = &at->second;
  return out;
}

const std::vector<int64_t>* shape_of(const Side& side) {
  if (side.sample != nullptr) return &side.sample->shape;
  const auto* array = std::get_if<MultiArray>(side.value);
  return array != nullptr ? &array->shape() : nullptr;
}

/// Both sides as values of the same elements; false: they cannot be compared, which `fault` says.
bool aligned(const Side& first, const Side& second, FeatureValue& a, FeatureValue& b, std::string& fault) {
  if (first.sample == nullptr && second.sample == nullptr) {
    a = *first.value;
    b = *second.value;
    return true;
  }
  const auto *x = shape_of(first), *y = shape_of(second);
  if (x == nullptr || y == nullptr || *x != *y) {
    fault = "the shapes differ";
    return false;
  }
  if (first.sample != nullptr && second.sample != nullptr && first.sample->step != second.sample->step) {
    fault = "the samples have other elements";
    return false;
  }
  const int64_t step = (first.sample != nullptr ? first : second).sample->step;
  a = first.sample != nullptr ? first.sample->elements : sampled(std::get<MultiArray>(*first.value), step);
  b = second.sample != nullptr ? second.sample->elements : sampled(std::get<MultiArray>(*second.value), step);
  return true;
}

void compare_answers(const RecordedSetting& first, const RecordedSetting& second, RecordingComparison::Setting& to) {
  std::map<std::string, OutputError> errors;
  for (size_t i = 0; i < std::min(first.answers.size(), second.answers.size()); i++) {
    std::vector<std::string> names;
    for (const auto& [name, value] : first.answers[i].values) names.push_back(name);
    for (const auto& [name, sample] : first.answers[i].samples) names.push_back(name);
    for (const std::string& name : names) {
      OutputError& error = errors[name];
      error.name = error.other = name;
      const Side one = side_of(first.answers[i], name), other = side_of(second.answers[i], name);
      FeatureValue a, b;
      std::string fault;
      if (other.value == nullptr && other.sample == nullptr)
        error.faults.push_back("only the first recording has it");
      else if (aligned(one, other, a, b, fault))
        checking::add_error(error, b, a, false);
      else
        error.faults.push_back(fault);
    }
  }
  for (auto& [name, error] : errors) to.outputs.push_back(std::move(error));
}

void compare_operations(const RecordedSetting& first, const RecordedSetting& second, RecordingComparison::Setting& to) {
  std::multimap<std::string, const RecordedOperation*> others;
  for (const RecordedOperation& o : second.operations) others.emplace(key_of(o), &o);
  for (const RecordedOperation& o : first.operations) {
    const auto at = others.find(key_of(o));
    if (at == others.end()) continue;
    const RecordedOperation& other = *at->second;
    others.erase(at);
    to.operations++;
    if (o.preferred != other.preferred)
      to.moved.push_back(
          {o.name.empty() && !o.outputs.empty() ? o.outputs[0] : o.name, o.type, o.preferred, other.preferred});
  }
}

void judge(const RecordingComparison::Setting& s, double min_snr, std::vector<std::string>& failures) {
  for (const OutputError& e : s.outputs) {
    const std::string where = cat(reporting::name_of(s.units), ": output '", e.name, "': ");
    if (!e.faults.empty()) failures.push_back(where + e.faults[0]);
    if (e.unlike > 0) failures.push_back(cat(where, e.unlike, " elements are NaN or infinite on one side only"));
    if (e.has_numbers() && !(e.snr() >= min_snr))
      failures.push_back(cat(where, rounded_text(e.snr()), " dB, expected at least ", rounded_text(min_snr), " dB"));
    if (e.same < e.labels) failures.push_back(cat(where, e.same, " of ", e.labels, " labels are the same"));
  }
}

double median_or_zero(const std::vector<double>& samples) { return samples.empty() ? 0 : reporting::median(samples); }

std::string inputs_text(const DeviceRecording& r) {
  Json all = Json::array();
  for (const Features& f : r.inputs) all.push_back(json_of(f));
  return reporting::dumped(all);
}

}  // namespace
}  // namespace recording

RecordingComparison compare_recordings(const DeviceRecording& first, const DeviceRecording& second, double min_snr) {
  using namespace recording;
  RecordingComparison out;
  const bool same_inputs = inputs_text(first) == inputs_text(second);
  if (!same_inputs) out.remarks.push_back("the answers are not compared: the inputs differ");
  if (first.model != second.model)
    out.remarks.push_back(cat("the models have different names: ", first.model, " and ", second.model));
  for (const RecordedSetting& a : first.settings) {
    const RecordedSetting* b = second.find(a.units);
    if (b == nullptr) {
      out.remarks.push_back(cat(reporting::name_of(a.units), ": only the first recording has it"));
      continue;
    }
    RecordingComparison::Setting& s = out.settings.emplace_back();
    s.units = a.units;
    for (const auto* side : {&a, b}) {
      const std::string_view which = side == &a ? "the first recording: " : "the second recording: ";
      if (!side->error.empty()) out.remarks.push_back(cat(reporting::name_of(a.units), ": ", which, side->error));
      if (!side->plan_error.empty())
        out.remarks.push_back(cat(reporting::name_of(a.units), ": ", which, "no plan: ", side->plan_error));
    }
    if (same_inputs) compare_answers(a, *b, s);
    compare_operations(a, *b, s);
    s.first_load = median_or_zero(a.load_seconds);
    s.second_load = median_or_zero(b->load_seconds);
    s.first_prediction = median_or_zero(a.prediction_seconds);
    s.second_prediction = median_or_zero(b->prediction_seconds);
    judge(s, min_snr, out.failures);
  }
  for (const RecordedSetting& b : second.settings)
    if (first.find(b.units) == nullptr)
      out.remarks.push_back(cat(reporting::name_of(b.units), ": only the second recording has it"));
  if (out.settings.empty()) out.failures.push_back("the recordings have no compute units in common");
  return out;
}

}  // namespace moka
