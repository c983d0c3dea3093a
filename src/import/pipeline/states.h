// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace moka::format {
class ModelFile;
}
namespace moka::proto {
class FeatureDescription;
class Model;
}  // namespace moka::proto

namespace moka::import {

/// The states that the models of a pipeline keep, once for each name: models that name the same state share it. Empty
/// when `model` is not a pipeline.
std::vector<const proto::FeatureDescription*> stage_states(const proto::Model& model, const format::ModelFile& file);

}  // namespace moka::import
