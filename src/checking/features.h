// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "moka/verify.h"

namespace moka::checking {

/// The inputs and outputs of a model, paired with those of the model or function that it is compared with.
class PairedFeatures {
 public:
  /// `all_classes`: outputs that are lists of numbers also contain classes. Throws invalid_argument for names in `map`
  /// that do not exist, if the other side needs an input that the model lacks, or if no output has a partner.
  /// `is_core_ml`: the other side is a Core ML model, which takes arrays of an input that it describes like `model` in
  /// all forms in which `model` does, such as [sequence, batch, C] for [C].
  PairedFeatures(const Model& model, const std::vector<FeatureDescription>& inputs,
                 const std::vector<FeatureDescription>& outputs, const NamePairs& map, const PixelScale& pixels,
                 bool is_core_ml, bool all_classes = false);

  const NamePairs& outputs() const { return outputs_; }
  /// Outputs of the model without a partner.
  std::vector<std::string> uncompared() const;
  /// Inputs of the model without a partner.
  std::vector<std::string> ungiven() const;
  /// The images that the other model takes as arrays.
  std::vector<std::string> images_as_arrays() const;
  /// The model's inputs in the form of the other side.
  Features for_other(const Features& item) const;
  /// The errors of each output over all predictions.
  std::vector<OutputError> errors(const std::vector<Features>& model, const std::vector<Features>& other) const;

 private:
  bool is_classes(const std::string& name, const FeatureValue& value) const;

  const Model& model_;
  std::vector<FeatureDescription> other_inputs_;
  NamePairs inputs_, outputs_;
  PixelScale pixels_;
  bool is_core_ml_, all_classes_;
};

}  // namespace moka::checking
