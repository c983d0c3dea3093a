// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "recording/values.h"
#include "report/measure.h"

namespace moka {

namespace {

/// Recorded answers, among them samples of large ones.
class DeviceReference : public Reference {
 public:
  DeviceReference(std::unique_ptr<Reference> whole, std::vector<RecordedAnswers> answers, bool may_be_half)
      : whole_(std::move(whole)), answers_(std::move(answers)), may_be_half_(may_be_half) {}
  /// GPUs and the Neural Engine compute neural networks in float16.
  bool may_be_half() const override { return may_be_half_; }
  std::string name() const override { return whole_->name(); }
  const std::vector<FeatureDescription>& inputs() const override { return whole_->inputs(); }
  const std::vector<FeatureDescription>& outputs() const override { return whole_->outputs(); }
  std::vector<Features> recorded_inputs() const override { return whole_->recorded_inputs(); }
  std::optional<size_t> recorded_answers() const override { return whole_->recorded_answers(); }
  std::vector<Features> predict(const std::vector<Features>& items,
                                const std::function<void(size_t)>& advance) override {
    return whole_->predict(items, advance);
  }
  void narrow(size_t item, Features& answers) const override {
    if (item >= answers_.size()) return;
    for (const auto& [name, sample] : answers_[item].samples) {
      FeatureValue* value = answers.find(name);
      const auto* array = value != nullptr ? std::get_if<MultiArray>(value) : nullptr;
      // An array of another shape stays whole, and differs by its shape.
      if (array != nullptr && array->shape() == sample.shape) *value = recording::sampled(*array, sample.step);
    }
  }

 private:
  std::unique_ptr<Reference> whole_;
  std::vector<RecordedAnswers> answers_;
  bool may_be_half_;
};

}  // namespace

std::unique_ptr<Reference> device_reference(const DeviceRecording& recording, ComputeUnits units,
                                            const std::string& name, const FunctionDescription& function) {
  const std::string_view wanted = reporting::name_of(units);
  const RecordedSetting* setting = recording.find(units);
  if (setting == nullptr)
    throw Exception(ErrorKind::invalid_argument, cat(name, ": nothing was recorded with ", wanted));
  if (setting->answers.empty())
    throw Exception(ErrorKind::invalid_argument, cat(name, ": no answers were recorded with ", wanted,
                                                     setting->error.empty() ? "" : cat(": ", setting->error)));
  Recording answers{cat(name, " (", recording.device_text(), ", ", wanted, ")"), recording.inputs, {}};
  for (const RecordedAnswers& a : setting->answers) {
    Features& all = answers.answers.emplace_back(a.values);
    for (const auto& [output, sample] : a.samples) all[output] = sample.elements;
  }
  return std::make_unique<DeviceReference>(recorded_reference(std::move(answers), function), setting->answers,
                                           units != ComputeUnits::cpu_only);
}

}  // namespace moka
