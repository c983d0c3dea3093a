// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "moka/feature.h"

namespace moka::cli {

/// The error of one output over all compared predictions.
struct OutputError {
  std::string name, other;  ///< names in the model and in the reference
  int64_t elements = 0;
  double signal = 0, noise = 0;       ///< sums of squares: of the reference's elements, and of the differences
  int exponent = -1000;               ///< of the largest element; the sums are of elements times 2^-exponent
  double absolute = 0, relative = 0;  ///< largest; relative to max(|reference|, peak / 1000) of the prediction
  int64_t unlike = 0;                 ///< elements that are NaN or infinite on one side only, or of unlike sign
  int64_t labels = 0, same = 0;       ///< compared texts, integers and keys, and how many are the same
  std::vector<double> ranks;        ///< of classes: the place that the reference's best class has in the model, from 0
  std::vector<std::string> faults;  ///< predictions that cannot be compared: "shape 1 x 3, expected 1 x 4"

  /// Signal to noise in dB; infinite when all elements are equal.
  double snr() const;
  bool has_numbers() const { return elements > 0; }
  /// The part of the predictions in which the reference's best class is among the `k` best; -1: no classes.
  double agreement(int64_t k) const;
};

/// The numbers of a value in row-major order, images as red, green and blue planes.
struct Numbers {
  std::vector<int64_t> shape;
  std::vector<double> values;
};
/// False for texts, whole numbers and sequences, which are equal or not.
bool has_numbers(const FeatureValue& value);
/// Empty for values without numbers.
Numbers numbers_of(const FeatureValue& value);

/// Adds one prediction's output. `classes`: the value holds a number for each class.
void add_error(OutputError& to, const FeatureValue& value, const FeatureValue& reference, bool classes);

}  // namespace moka::cli
