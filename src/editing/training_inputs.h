// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "editing/features.h"

namespace moka::editing {

/// The training inputs of a model and of the models in a pipeline that are also inputs, or the label of a classifier.
/// An edit of such a feature concerns the training input too.
class TrainingInputs {
 public:
  static Result<TrainingInputs> of(const Message& model);
  /// Gives them the types that the features have now.
  Status follow(const Message& model) const;

 private:
  std::vector<std::string> same_;  ///< names
  std::vector<TrainingInputs> stages_;
};

}  // namespace moka::editing
