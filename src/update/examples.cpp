// SPDX-License-Identifier: Apache-2.0
#include "update/examples.h"

#include <algorithm>
#include <cmath>

#include "base/whole.h"
#include "boundary/descriptions.h"
#include "boundary/errors.h"
#include "boundary/inputs.h"
#include "import/update/update.h"
#include "moka/edit.h"

namespace moka::update {

namespace {

/// What the values of an example must outlive.
struct Held {
  Features features;
  std::vector<boundary::InputMemory> memory;
};

std::string list_of(const std::vector<std::string>& labels) {
  constexpr size_t kMost = 10;
  std::string out;
  for (size_t i = 0; i < std::min(labels.size(), kMost); i++) out += cat(i == 0 ? "'" : ", '", labels[i], "'");
  return out + (labels.size() > kMost ? ", ..." : "");
}

Error refused(std::string_view input, std::string_view expected, const FeatureValue* value) {
  return fail(ErrorCode::invalid_argument, "'", input, "': expected ", expected, ", got ",
              value == nullptr ? "nothing" : describe(*value));
}

/// A label as text; empty: it is not a label.
std::optional<std::string> label_text(const FeatureValue* value, bool int64_labels) {
  if (value == nullptr) return std::nullopt;
  if (const auto* text = std::get_if<std::string>(value)) return int64_labels ? std::nullopt : std::optional(*text);
  if (!int64_labels) return std::nullopt;
  if (const auto* number = std::get_if<int64_t>(value)) return cat(*number);
  double number = std::nan("");
  if (const auto* real = std::get_if<double>(value)) number = *real;
  if (const auto* array = std::get_if<MultiArray>(value); array != nullptr && array->count() == 1)
    number = array->at(0);
  return is_int64(number) ? std::optional(cat(static_cast<int64_t>(number))) : std::nullopt;
}

Result<ir::Tensor> class_of(std::string_view input, const FeatureValue* value, const ModelDescription& d) {
  const auto label = label_text(value, d.int64_labels);
  const auto it = label ? std::find(d.class_labels.begin(), d.class_labels.end(), *label) : d.class_labels.end();
  if (label && it == d.class_labels.end())
    return fail(ErrorCode::invalid_argument, "'", input, "': expected one of the classes ", list_of(d.class_labels),
                ", got '", *label, "'");
  if (!label)
    return refused(input, d.int64_labels ? "an integer, a label of the model" : "a text, a label of the model", value);
  return ir::Tensor::i32({static_cast<int32_t>(it - d.class_labels.begin())});
}

/// The first number that is not finite.
std::optional<double> not_finite(const MultiArray& array) {
  if (array.type() == DataType::float32 && array.is_contiguous()) {
    const auto all = array.as<float>();
    const auto it = std::find_if(all.begin(), all.end(), [](float v) { return !std::isfinite(v); });
    return it == all.end() ? std::nullopt : std::optional<double>(*it);
  }
  for (int64_t i = 0; i < array.count(); i++)
    if (const double v = array.at(i); !std::isfinite(v)) return v;
  return std::nullopt;
}

}  // namespace

Learner learner_of(const ModelSource& model, const format::ModelFile& whole, const std::vector<size_t>& stage,
                   const ModelConfiguration& configuration,
                   const std::function<format::ModelFile(const ModelSource&)>& file_of) {
  std::vector<Model> before;
  ModelSource current = model;
  for (const size_t last : stage) {
    for (size_t i = 0; i < last; i++)
      before.push_back(edit::extract_stage(current, std::to_string(i)).load(configuration));
    current = edit::extract_stage(current, std::to_string(last));
  }
  format::ModelFile file = stage.empty() ? whole : file_of(current);
  ModelDescription description = boundary::to_public(boundary::unwrap(import::describe_model(file)));
  return {std::move(before), std::move(current), std::move(file), std::move(description)};
}

Features with_computed(const Learner& learner, Features example) {
  for (const Model& model : learner.before) {
    Features inputs;
    for (const FeatureDescription& input : model.function().inputs)
      if (const FeatureValue* value = example.find(input.name)) inputs[input.name] = *value;
    for (auto& [name, value] : model.predict(inputs)) example[name] = value;
  }
  return example;
}

Status check_values(const Learner& learner, const runtime::Model& front, const import::UpdateDescription& update,
                    const Features& example) {
  for (const import::FeatureDescription& f : update.training_inputs) {
    const FeatureValue* value = f.name == update.losses.at(0).training_input ? nullptr : example.find(f.name);
    if (value == nullptr) continue;
    std::optional<double> wrong;
    if (const auto* array = std::get_if<MultiArray>(value)) wrong = not_finite(*array);
    if (const auto* number = std::get_if<double>(value); number != nullptr && !std::isfinite(*number)) wrong = *number;
    if (wrong) return fail(ErrorCode::data, "input '", f.name, "': expected finite numbers, got ", *wrong);
  }
  const auto inputs = front.ir().body().inputs();
  for (size_t i = 0; i < inputs.size() && learner.before.empty(); i++)
    if (const FeatureValue* value = example.find(front.feature(i).name);
        value != nullptr && std::holds_alternative<MultiArray>(*value))
      MOKA_TRY(boundary::given_type(front.feature(i), inputs[i]->type, value));
  return {};
}

Status set_inputs(const runtime::Model& front, Features example, Example& to) {
  auto held = std::make_shared<Held>();
  held->features = std::move(example);
  const auto inputs = front.ir().body().inputs();
  held->memory.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); i++) {
    const import::FeatureDescription& f = front.feature(i);
    const FeatureValue* value = held->features.find(f.name);
    if (value != nullptr && std::holds_alternative<std::monostate>(*value)) value = nullptr;
    to.types.push_back(MOKA_TRY(boundary::given_type(f, inputs[i]->type, value)));
    MOKA_TRY(boundary::set_given(f, to.types.back(), value, held->memory[i], to.inputs.emplace_back()));
  }
  to.owner = std::move(held);
  return {};
}

Result<ir::Tensor> target_of(const import::UpdateDescription& update, bool is_label, const FeatureValue* value,
                             const ModelDescription& description) {
  const import::LossLayer& loss = update.losses.at(0);
  const std::string& name = loss.training_input;
  if (is_label) return class_of(name, value, description);
  double number = 0;
  if (value == nullptr) return refused(name, "the target of the loss", value);
  if (const auto* integer = std::get_if<int64_t>(value))
    number = static_cast<double>(*integer);
  else if (const auto* real = std::get_if<double>(value))
    number = *real;
  else if (!std::holds_alternative<MultiArray>(*value))
    return refused(name, "numbers", value);
  const auto* array = std::get_if<MultiArray>(value);
  const import::FeatureDescription* described = nullptr;
  for (const auto& input : update.training_inputs)
    if (input.name == name) described = &input;
  if (const auto* given = std::get_if<MultiArray>(value); given != nullptr && described != nullptr &&
                                                          described->kind == import::FeatureKind::multi_array &&
                                                          given->shape().size() > 1)
    MOKA_TRY(boundary::check_array_shape(*described, given->shape()));
  const bool is_class = loss.kind == import::LossLayer::Kind::categorical_cross_entropy;
  const int64_t count = array == nullptr ? 1 : array->count();
  ir::Tensor out = MOKA_TRY(ir::Tensor::zeros(is_class ? ir::DType::int32 : ir::DType::fp32, ir::Shape{count}));
  for (int64_t i = 0; i < count; i++) {
    const double x = array == nullptr ? number : array->at(i);
    if (!std::isfinite(x) || (is_class && (!is_int64(x) || x < 0 || x > INT32_MAX)))
      return fail(ErrorCode::invalid_argument, "'", name, "': expected ",
                  is_class ? "the index of a class" : "finite numbers", ", got ", x);
    if (is_class)
      out.mut<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(x);
    else
      out.mut<float>()[static_cast<size_t>(i)] = static_cast<float>(x);
  }
  return out;
}

void copy_sample(const FeatureValue* value, const std::string& input, std::span<float> to) {
  const auto* array = value == nullptr ? nullptr : std::get_if<MultiArray>(value);
  if (array == nullptr) boundary::raise(refused(input, "an array", value));
  const auto count = static_cast<size_t>(array->count());
  if (count != to.size())
    boundary::raise(fail(ErrorCode::invalid_argument, "'", input, "': expected ", to.size(), " numbers, got ", count));
  if (array->type() == DataType::float32 && array->is_contiguous()) {
    std::copy_n(static_cast<const float*>(array->data()), count, to.begin());
    return;
  }
  for (size_t i = 0; i < count; i++) to[i] = static_cast<float>(array->at(static_cast<int64_t>(i)));
}

}  // namespace moka::update
