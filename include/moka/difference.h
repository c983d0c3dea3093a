// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "moka/comparison.h"
#include "moka/model.h"
#include "moka/verify.h"

/// Every value of one prediction, and the same values of another. Values are observed one after another and never kept
/// together, so that a model of any size stays within bounds.
namespace moka {

/// Minimum, maximum and mean of an array's finite numbers. Counts nan and infinity separately.
struct ArrayFacts {
  DataType type = DataType::float32;
  std::vector<int64_t> shape;
  double least = 0, most = 0, mean = 0;
  int64_t finite = 0, nan = 0, infinite = 0;
};
MOKA_EXPORT ArrayFacts facts_of(const MultiArray& array);

/// More values of one prediction are not compared.
inline constexpr size_t kMostValues = 20'000;
/// The greatest difference that rounding explains, relative to the greatest magnitude.
inline constexpr double kRounding = 0x1p-13, kHalfRounding = 0x1p-8;

/// A value of the first model beside its partner.
struct ComparedValue {
  std::string operation, value, other;  ///< `other`: the partner's name; empty: none
  std::string other_operation;
  ArrayFacts facts, other_facts;
  bool by_content = false;  ///< the partner was found by its elements
  bool has_form = true;     ///< both have the same number of elements, and both or neither are whole numbers
  bool equal = false, differs = false;
  double difference = 0;  ///< the greatest one of finite elements
  double relative = 0;    ///< its fraction of the greatest magnitude
  double snr = 0;         ///< signal to noise in dB; infinite: no finite elements differ
  bool unlike = false;    ///< an element is NaN or infinite on one side only
};

struct ValueComparison {
  std::vector<ComparedValue> values;  ///< in the order of computation; those in loops once for each iteration
  bool complete = true;               ///< false: there are more than kMostValues
  std::optional<size_t> first, first_unequal;
  double tolerance = 0;  ///< the largest one that a value was judged by
  Features outputs, other_outputs;
};

struct ValueOptions {
  /// Names of the first model's values and of their partners. Null: partners have the same name. Values that are not
  /// in it are paired when their elements agree.
  const std::map<std::string, std::string>* names = nullptr;
  /// The least `relative` that makes a value differ. Absent: 2^-13, and 2^-8 from the first float16 value on.
  std::optional<double> tolerance;
  /// A value with less signal to noise, in dB, differs, whatever its largest difference is.
  std::optional<double> min_snr;
};

/// At most 2^26 elements are compared, in large values every n-th. Whole numbers differ when any is not equal. NaN
/// equals NaN, and an infinity itself. Throws what predict throws.
MOKA_EXPORT ValueComparison compare_values(const Model& model, const Features& inputs, const Model& other,
                                           const Features& other_inputs, const ValueOptions& options = {});

/// Predicts once with `observe`, which gets the index of each value. Returns the outputs.
using ObserveValue =
    std::function<void(size_t index, std::string_view operation, std::string_view value, const MultiArray& array)>;
MOKA_EXPORT Features observe_values(const Model& model, const Features& inputs, const ObserveValue& observe);

struct DiffOptions {
  int64_t runs = 1;  ///< random inputs, without `inputs`
  uint64_t seed = 1;
  std::vector<Features> inputs;
  NumberRanges ranges;  ///< of random arrays
  NamePairs map;        ///< inputs and outputs that names and shapes do not pair
  PixelScale pixels;
  std::optional<double> tolerance;  ///< absent: by the arithmetic of the models
  bool same_names = false;          ///< values of the same name are partners, whatever the structures say
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

/// Predicts with both and finds where values begin to differ. `structure`: compare_models of both. A model that cannot
/// predict is a fault. Throws invalid_argument for names and ranges that do not fit, and what random_inputs throws.
MOKA_EXPORT ValueDiff diff_values(const Model& a, const Model& b, const ModelComparison& structure,
                                  const DiffOptions& options = {});

}  // namespace moka
