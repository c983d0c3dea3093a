// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/onnx/node.h"

namespace moka::import::onnx {

/// Decision trees. Leaves are nodes that lead to themselves.
struct Ensemble {
  enum Mode { less_equal, less, greater_equal, greater, equal, not_equal, member };

  int64_t targets = 1;
  std::vector<int64_t> roots;
  /// By node: the feature that it tests, how, and the nodes that follow.
  std::vector<int64_t> features, modes, then, otherwise;
  std::vector<int64_t> missing;  ///< whether NaN leads to `then`, as 0 or 1
  std::vector<double> splits;
  std::vector<std::vector<double>> members;  ///< of nodes of mode `member`
  std::vector<double> weights;               ///< [nodes, targets], 0 but for leaves

  size_t nodes() const { return features.size(); }
};

/// What each tree gives each row of x: [rows, trees, targets] in the type of x. All rows go down all trees at once, one
/// level after the other. If `exact`, x has numbers of its own type, and the tests are exact for them even where that
/// type cannot hold the splits. Precondition: all lists have as many elements as there are nodes. Refuses nodes that
/// form a circle, features that x lacks, and trees of more than 256 levels.
Value* scores_of_trees(const Node& n, Value* x, const Ensemble& trees, bool exact);

/// The scores as the attribute `post_transform` of the operators of ai.onnx.ml says.
Value* transformed_scores(const Node& n, Value* scores, const std::string& transform);

/// The numbers of an attribute: a list of floats, or a tensor; `name` or else `name`_as_tensor.
std::vector<double> numbers_of(const Node& n, std::string_view name);

}  // namespace moka::import::onnx
