// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "moka/model.h"

namespace moka::test {

/// Element i is that of splitmix64's state seed + (i + 1) * golden gamma, as `draw` of tests/golden/nn_truth.py makes
/// it.
std::vector<float> draw(uint64_t seed, size_t count, double low, double high);

/// The largest difference of two multi-arrays, dictionaries or numbers relative to max(1, largest magnitude of `b`);
/// infinity when kind, shape, labels or NaNs differ.
double difference(const FeatureValue& a, const FeatureValue& b);
/// The largest over all features of `b`.
double difference(const Features& a, const Features& b);
bool identical(const Features& a, const Features& b);

/// Random inputs that every model can predict: classic models get known categories.
Features sample_inputs(const Model& model, uint64_t seed);

/// The paths of all models below a folder, sorted.
std::vector<std::filesystem::path> models_in(const std::filesystem::path& folder);
/// The models in models_folder(); none if it does not exist.
std::vector<std::filesystem::path> published_models();

}  // namespace moka::test
