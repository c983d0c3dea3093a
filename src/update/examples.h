// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "moka/build.h"
#include "moka/update.h"
#include "update/network_learner.h"

/// Examples for updates.
namespace moka::update {

/// The model that learns, and those that compute its inputs.
struct Learner {
  std::vector<Model> before;     ///< the earlier models of the pipelines, in order
  ModelSource source;            ///< the model that learns
  format::ModelFile file;        ///< of `source`
  ModelDescription description;  ///< of `source`
};
/// `file`: of `model`. `stage`: as UpdateDescription::stage. `file_of` opens the model of a stage.
Learner learner_of(const ModelSource& model, const format::ModelFile& file, const std::vector<size_t>& stage,
                   const ModelConfiguration& configuration,
                   const std::function<format::ModelFile(const ModelSource&)>& file_of);

/// An example with what the models before the learner compute from it.
Features with_computed(const Learner& learner, Features example);

/// Looks at the arrays and numbers of an example, of which some may be missing. Errors: those of predictions; data (a
/// number that is not finite).
Status check_values(const Learner& learner, const runtime::Model& front, const import::UpdateDescription& update,
                    const Features& example);

/// Sets `to` to what the front of a network takes. Errors: those of predictions.
Status set_inputs(const runtime::Model& front, Features example, Example& to);

/// What a loss compares with. `labels` and `int64_labels`: as ModelDescription has them. Error invalid_argument: the
/// value is none of the classes, or no array.
Result<ir::Tensor> target_of(const import::UpdateDescription& update, bool is_label, const FeatureValue* value,
                             const ModelDescription& description);

/// Copies the numbers of a sample for a nearest-neighbors classifier. Throws invalid_argument: the value is not an
/// array of as many numbers.
void copy_sample(const FeatureValue* value, const std::string& input, std::span<float> to);

}  // namespace moka::update
