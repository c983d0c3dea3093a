// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "checking/predict.h"
#include "moka/verify.h"

namespace moka {
namespace {

class ModelReference : public Reference {
 public:
  ModelReference(Model model, std::string name) : model_(std::move(model)), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  const std::vector<FeatureDescription>& inputs() const override { return model_.function().inputs; }
  const std::vector<FeatureDescription>& outputs() const override { return model_.function().outputs; }
  const Model* model() const override { return &model_; }
  std::vector<Features> predict(const std::vector<Features>& items,
                                const std::function<void(size_t)>& advance) override {
    return checking::predict_each(model_, items, advance);
  }

 private:
  Model model_;
  std::string name_;
};

/// The description of a recorded value.
FeatureDescription described(const std::string& name, const FeatureValue& value) {
  FeatureDescription out;
  out.name = name;
  if (const auto* array = std::get_if<MultiArray>(&value)) {
    out.array.type = array->type();
    out.array.shape = array->shape();
  } else if (std::holds_alternative<Dictionary>(value)) {
    out.type = FeatureType::dictionary;
  } else if (std::holds_alternative<std::string>(value)) {
    out.type = FeatureType::string;
  } else if (std::holds_alternative<int64_t>(value)) {
    out.type = FeatureType::int64;
  } else if (std::holds_alternative<double>(value)) {
    out.type = FeatureType::float64;
  } else if (!std::holds_alternative<Image>(value)) {
    out.type = FeatureType::sequence;
  }
  return out;
}

class RecordedReference : public Reference {
 public:
  RecordedReference(Recording recording, std::vector<FeatureDescription> inputs)
      : recording_(std::move(recording)), inputs_(std::move(inputs)) {
    for (const auto& [name, value] : recording_.answers[0]) outputs_.push_back(described(name, value));
    const auto& given = recording_.inputs;
    if (std::all_of(given.begin(), given.end(), [](const auto& i) { return i.empty(); })) recording_.inputs.clear();
  }
  std::string name() const override { return recording_.name; }
  const std::vector<FeatureDescription>& inputs() const override { return inputs_; }
  const std::vector<FeatureDescription>& outputs() const override { return outputs_; }
  std::vector<Features> recorded_inputs() const override { return recording_.inputs; }
  std::optional<size_t> recorded_answers() const override { return recording_.answers.size(); }
  std::vector<Features> predict(const std::vector<Features>& items,
                                const std::function<void(size_t)>& advance) override {
    advance(items.size());
    return recording_.answers;
  }

 private:
  Recording recording_;
  std::vector<FeatureDescription> inputs_, outputs_;
};

}  // namespace

Reference::~Reference() = default;

void Reference::narrow(size_t, Features&) const {}

std::unique_ptr<Reference> model_reference(Model model, std::string name) {
  return std::make_unique<ModelReference>(std::move(model), std::move(name));
}

std::unique_ptr<Reference> recorded_reference(Recording recording, const FunctionDescription& function) {
  const size_t inputs = recording.inputs.size(), answers = recording.answers.size();
  if (answers == 0 || recording.answers[0].empty())
    throw Exception(ErrorKind::invalid_argument,
                    cat(recording.name, ": no outputs; names that are not inputs of the model are outputs"));
  if (inputs != 0 && inputs != answers)
    throw Exception(ErrorKind::invalid_argument,
                    cat(recording.name, ": expected inputs for each of ", answers, " answers, got ", inputs));
  return std::make_unique<RecordedReference>(std::move(recording), function.inputs);
}

namespace checking {

void require_runs(int64_t runs) {
  if (runs < 1) throw Exception(ErrorKind::invalid_argument, cat("runs: expected at least 1, got ", runs));
}

std::vector<Features> predict_each(const Model& model, const std::vector<Features>& items,
                                   const std::function<void(size_t)>& advance) {
  std::vector<Features> out;
  for (const Features& inputs : items) {
    PredictionOptions options;
    std::optional<State> state;
    if (!model.function().states.empty()) options.state = &state.emplace(model.new_state());
    out.push_back(model.predict(inputs, options));
    advance(out.size());
  }
  return out;
}

}  // namespace checking
}  // namespace moka
