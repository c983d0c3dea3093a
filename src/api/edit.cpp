// SPDX-License-Identifier: Apache-2.0
#include "moka/edit.h"

#include "api/build.h"
#include "api/internal.h"
#include "compress/upgrade.h"
#include "editing/bisect.h"
#include "editing/cut.h"
#include "editing/functions.h"
#include "editing/image.h"
#include "editing/infer.h"
#include "editing/inline.h"
#include "editing/join.h"
#include "editing/labels.h"
#include "editing/metadata.h"
#include "editing/normalize.h"
#include "editing/rename.h"
#include "editing/shapes.h"
#include "editing/strip.h"
#include "editing/training_inputs.h"
#include "editing/types.h"
#include "editing/updatable.h"
#include "editing/version.h"
#include "update/nearest_neighbors.h"

namespace moka::edit {

using api::unwrap;

namespace {

editing::Side to_own(Side side) { return static_cast<editing::Side>(side); }

ModelSource wrap(format::ModelSource source) {
  return ModelSource(std::make_shared<ModelSource::Impl>(std::move(source)));
}

/// A copy of the model, changed by `change`.
template <class F>
ModelSource edited(const ModelSource& model, const F& change) {
  format::ModelSource source = model.impl().source();
  source.specification = source.specification.copy();
  const auto training = unwrap(editing::TrainingInputs::of(source.specification));
  unwrap(change(source));
  unwrap(training.follow(source.specification));
  return wrap(std::move(source));
}

}  // namespace

ModelSource rename_features(const ModelSource& model, const Names& names, Side side) {
  return edited(model, [&](format::ModelSource& source) {
    return editing::rename_features(source.specification, names, to_own(side));
  });
}

ModelSource rename_operations(const ModelSource& model, const Names& names) {
  return edited(model,
                [&](format::ModelSource& source) { return editing::rename_operations(source.specification, names); });
}

ModelSource rename_values(const ModelSource& model, const Names& names) {
  return edited(model,
                [&](format::ModelSource& source) { return editing::rename_values(source.specification, names); });
}

ModelSource set_type(const ModelSource& model, const std::string& feature, const std::string& type, Side side) {
  return edited(model, [&](format::ModelSource& source) {
    return editing::set_element(source.specification, feature, type, to_own(side));
  });
}

ModelSource set_metadata(const ModelSource& model, const std::string& field, const std::string& text) {
  return edited(model, [&](format::ModelSource& source) {
    return editing::set_metadata(source.specification, field, std::string_view(), text);
  });
}

ModelSource set_user_defined(const ModelSource& model, const std::string& key, const std::string& text) {
  return edited(model, [&](format::ModelSource& source) {
    return editing::set_metadata(source.specification, "userDefined", key, text);
  });
}

ModelSource describe_feature(const ModelSource& model, const std::string& feature, const std::string& text) {
  return edited(model,
                [&](format::ModelSource& source) { return editing::describe(source.specification, feature, text); });
}

ModelSource set_image(const ModelSource& model, const std::string& feature, const ImageSettings& settings, Side side) {
  constexpr const char* kColors[] = {"GRAYSCALE", "RGB", "BGR", "GRAYSCALE_FLOAT16"};
  return edited(model, [&](format::ModelSource& source) {
    return editing::set_image(
        source, feature, {kColors[static_cast<int>(settings.color)], settings.scale, settings.bias, settings.layout},
        to_own(side));
  });
}

ModelSource normalize(const ModelSource& model, const std::string& input, const std::vector<double>& mean,
                      const std::vector<double>& std, std::optional<int> axis) {
  return edited(model, [&](format::ModelSource& source) {
    return editing::normalize(source.specification, input, mean, std, axis);
  });
}

ModelSource set_labels(const ModelSource& model, const Labels& labels, const ClassifierNames& names) {
  return edited(model, [&](format::ModelSource& source) {
    return editing::set_labels(source.specification, labels, names.probabilities, names.label, names.dictionary);
  });
}

ModelSource remove_labels(const ModelSource& model) {
  return edited(model, [](format::ModelSource& source) { return editing::remove_labels(source.specification); });
}

ModelSource strip_weights(const ModelSource& model, std::optional<uint64_t> seed) {
  return edited(model, [&](format::ModelSource& source) { return editing::strip_weights(source, seed); });
}

ModelSource set_target(const ModelSource& model, const std::string& target) {
  return edited(model, [&](format::ModelSource& source) -> Status {
    const editing::System* system = editing::find_system(target);
    if (system != nullptr && system->version >= editing::find_system("ios18")->version)
      MOKA_TRY(compress::upgrade_forms(source));
    return editing::set_target(source.specification, target);
  });
}

ModelSource set_sizes(const ModelSource& model, const std::map<std::string, InputSizes>& inputs) {
  std::map<std::string, editing::Sizes> sizes;
  for (const auto& [name, given] : inputs) {
    editing::Sizes& to = sizes[name];
    for (const SizeRange& range : given.ranges) to.ranges.emplace_back(range.lower, range.upper);
    to.enumerated = given.shapes;
    to.standard = given.standard;
  }
  return edited(model, [&](format::ModelSource& source) { return editing::set_sizes(source, sizes); });
}

ModelSource cut(const ModelSource& model, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs) {
  return edited(model, [&](format::ModelSource& source) { return editing::cut(source, inputs, outputs); });
}

std::pair<ModelSource, ModelSource> bisect(const ModelSource& model) {
  editing::Halves halves = unwrap(editing::bisect(model.impl().source()));
  return {wrap(std::move(halves.first)), wrap(std::move(halves.second))};
}

ModelSource bisect_into_pipeline(const ModelSource& model) {
  return edited(model, [](format::ModelSource& source) { return editing::bisect_into_pipeline(source); });
}

ModelSource append(const ModelSource& model, const std::string& name, const ModelSource& next,
                   const std::string& next_name) {
  return edited(model, [&](format::ModelSource& source) {
    return editing::append(source, name, next.impl().source(), next_name);
  });
}

ModelSource join(const std::vector<std::pair<std::string, ModelSource>>& models) {
  if (models.empty()) throw Exception(ErrorKind::invalid_argument, "join: expected one model or more, got none");
  ModelSource out = edited(models[0].second, [&](format::ModelSource& source) -> Status {
    // A pipeline stays one model of the new pipeline.
    return editing::wrap_in_pipeline(source, models[0].first);
  });
  for (size_t i = 1; i < models.size(); ++i) out = append(out, models[0].first, models[i].second, models[i].first);
  return out;
}

ModelSource extract_stage(const ModelSource& model, const std::string& stage) {
  return edited(model, [&](format::ModelSource& source) { return editing::extract_stage(source, stage); });
}

ModelSource inline_pipeline(const ModelSource& model) {
  return edited(model, [](format::ModelSource& source) -> Status {
    MOKA_TRY(compress::unify_forms(source));
    return editing::inline_pipeline(source);
  });
}

ModelSource extract_function(const ModelSource& model, const std::string& function) {
  return edited(model, [&](format::ModelSource& source) { return editing::extract_function(source, function); });
}

ModelSource add_function(const ModelSource& model, const std::string& name, const ModelSource& other,
                         const std::string& from) {
  return edited(model, [&](format::ModelSource& source) {
    return editing::add_function(source, name, other.impl().source(), from);
  });
}

ModelSource set_default_function(const ModelSource& model, const std::string& function) {
  return edited(model, [&](format::ModelSource& source) {
    return editing::set_default_function(source.specification, function);
  });
}

ModelSource make_updatable(const ModelSource& model, const std::vector<std::string>& layers) {
  return edited(model,
                [&](format::ModelSource& source) { return editing::make_updatable(source.specification, layers); });
}

ModelSource set_loss(const ModelSource& model, LossLayer::Kind kind, const std::string& input,
                     const std::string& name) {
  return edited(model, [&](format::ModelSource& source) {
    return editing::set_loss(source,
                             {kind == LossLayer::Kind::mean_squared_error ? "mse" : "cross-entropy", input, name});
  });
}

ModelSource set_optimizer(const ModelSource& model, const std::string& optimizer) {
  return edited(model,
                [&](format::ModelSource& source) { return editing::set_optimizer(source.specification, optimizer); });
}

ModelSource set_update_parameter(const ModelSource& model, const std::string& name, const UpdateValue& value) {
  return edited(model, [&](format::ModelSource& source) {
    return editing::set_parameter(source.specification, name, {value.value, value.range, value.allowed});
  });
}

ModelSource add_samples(const ModelSource& model, const MultiArray& rows, const Labels& labels,
                        std::optional<int64_t> neighbors) {
  const std::vector<int64_t>& shape = rows.shape();
  if (shape.size() != 2)
    throw Exception(ErrorKind::invalid_argument,
                    cat("rows: expected an array of two dimensions, got one of ", shape.size()));
  std::vector<float> numbers(static_cast<size_t>(shape[0] * shape[1]));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(rows.at(static_cast<int64_t>(i)));
  return edited(model, [&](format::ModelSource& source) {
    return update::add_samples(source, numbers, shape[1], labels, neighbors);
  });
}

void check(const ModelSource& model) {
  unwrap(editing::check_import(model.impl().source()));
  unwrap(editing::check_update(model.impl().source()));
}

}  // namespace moka::edit
