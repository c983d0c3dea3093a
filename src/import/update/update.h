// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "import/description.h"

namespace moka::format {
class ModelFile;
}
namespace moka::proto {
class Model;
}

/// What a model can learn, and by which rules it is valid.
///
///   update/description.cpp  from the messages of a model
///   update/rules.cpp        the rules of Core ML
namespace moka::import {

/// A number or a flag that an update takes: its default, and which other values are allowed.
struct UpdateParameter {
  std::string name;                                   ///< "learningRate", by the names of the specification
  std::variant<int64_t, double, bool> value;          ///< the default
  std::optional<std::pair<double, double>> range;     ///< of a double
  std::optional<std::pair<int64_t, int64_t>> bounds;  ///< of an integer
  std::vector<int64_t> allowed;                       ///< of an integer: a set; empty: none is given
};

struct UpdatableLayer {
  std::string name, type;  ///< type: Core ML's name, "innerProduct"
  std::string own_name;    ///< `name`, or another one where its weights would be called like other values
  std::vector<std::string>
      parameters;  ///< its weights, as runtime/parameters.h names them: `prefix` "own_name_weights"
};

struct LossLayer {
  enum class Kind : uint8_t { categorical_cross_entropy, mean_squared_error };
  std::string name;
  Kind kind = Kind::categorical_cross_entropy;
  std::string input, target;   ///< values of the network
  std::string training_input;  ///< the training input that gives the target: `target`, or the label of a classifier
};

struct NearestNeighbors {
  int64_t dimensions = 0, samples = 0;
  std::string index, weighting;  ///< "linear" or "kdTree"; "uniform" or "inverseDistance"
  int64_t leaf_size = 0;         ///< of a kd-tree
  bool string_labels = false;
  std::optional<std::string> default_label;  ///< an integer as text
};

struct UpdateDescription {
  std::vector<FeatureDescription> training_inputs;
  std::vector<UpdatableLayer> layers;
  std::vector<LossLayer> losses;
  std::string optimizer;                      ///< "sgd", "adam", or empty
  std::vector<UpdateParameter> parameters;    ///< in the order of the specification
  std::optional<NearestNeighbors> neighbors;  ///< of a nearest-neighbors classifier
  std::string prefix;                         ///< ImportContext::prefix of the model that learns
  std::vector<size_t> stage;                  ///< the indices that lead to the model that learns, in a pipeline
  std::string fault;                          ///< the first rule of Core ML that the model breaks; empty: none
  std::vector<std::string> remarks;           ///< what Core ML does differently

  const UpdateParameter* parameter(std::string_view name) const {
    for (const UpdateParameter& p : parameters)
      if (p.name == name) return &p;
    return nullptr;
  }
};

/// Empty: the model is not marked as updatable, nor is a model inside it. Parts that are missing or damaged do not hide
/// the others, and `fault` names the first of them.
std::optional<UpdateDescription> describe_update(const proto::Model& model, const format::ModelFile& file);
std::optional<UpdateDescription> describe_update(const format::ModelFile& file);

/// Checks a model that is marked as updatable by the rules of Core ML. Error malformed, which names the layer or the
/// parameter, and the rule. Adds to `remarks` what Core ML refuses and Moka accepts.
Status check_update(const proto::Model& model, const format::ModelFile& file, std::vector<std::string>& remarks);

}  // namespace moka::import
