// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/measure.h"
#include "check/pairing.h"
#include "check/values.h"
#include "json.h"
#include "moka/comparison.h"
#include "moka/model.h"

/// The comparison of `moka diff`. diff.cpp makes it, diff_json.cpp and diff_text.cpp print it.
namespace moka::cli {

struct DiffOptions {
  int64_t runs = 1;  ///< random inputs, without `inputs`
  uint64_t seed = 1;
  std::vector<Features> inputs;
  std::vector<std::string> ranges;  ///< "name=low:high"
  std::vector<std::string> map;     ///< "name=other" of inputs and outputs
  PixelScale pixels;
  std::optional<double> tolerance;  ///< absent: by the arithmetic of the models
  bool same_names = false;          ///< values of the same name are partners
};

/// Values side by side, for the first prediction that has a difference.
struct ValueDiff {
  ValueComparison found;
  int64_t predictions = 0;
  std::string fault;              ///< why a model cannot predict; empty: both can
  double tolerance = 0;           ///< the largest one that a value was judged by
  std::optional<double> min_snr;  ///< takes the place of the tolerance where one model has compressed weights
  std::vector<OutputError> outputs;
  std::vector<std::string> failures;  ///< outputs that differ in shape or labels
  /// Indices in found.values of those that differ although nothing that they are computed from does, in order. Those
  /// beyond the tolerance, or, when there are none, all that are not equal.
  std::vector<size_t> origins;
  /// The operations in both graphs that compute the first origin from values that agree. There are several where one
  /// side fused them.
  std::vector<int> region_a, region_b;
  std::vector<size_t> trail;  ///< from the first origin to an output
  bool same() const { return fault.empty() && !found.first && failures.empty(); }
};

struct Diff {
  std::string a, b;
  ModelComparison structure;
  bool has_structure = true;  ///< false: one function of one model, whose structure is the same
  std::optional<ValueDiff> values;
  bool ignores_structure = false;
  bool same() const { return (ignores_structure || structure.same()) && (!values || values->same()); }
};

/// Predicts with both and finds where values begin to differ. Throws UsageError, IoError.
ValueDiff diff_values(const Model& a, const Model& b, const ModelComparison& structure, const DiffOptions& options);

Json to_json(const Diff& diff);
std::string diff_text(const Diff& diff);

}  // namespace moka::cli
