// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "import/onnx/scope.h"

namespace moka::import::onnx {

/// An output of the graph.
struct Outcome {
  std::string name;
  const Item* item;
};

/// The operation `classify` in the place of outputs of the graph.
struct Classifier {
  std::optional<size_t> label, probabilities;  ///< positions of the outputs
  Value *chosen, *dictionary;                  ///< the operation's results
};

/// Adds `classify` if one output is a label that the largest of some numbers chooses. An output with these numbers
/// becomes the dictionary of probabilities. Labels that are integers make a classifier only together with such an
/// output. A string that something else chooses is a label without probabilities. nullopt: no output is a label.
/// Refuses labels of several rows.
std::optional<Classifier> find_classifier(Scope& scope, std::span<const Outcome> outputs);

}  // namespace moka::import::onnx
