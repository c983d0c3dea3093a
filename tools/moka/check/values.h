// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "answers.h"
#include "json.h"
#include "moka/model.h"

/// Every value of one prediction, and the same values of another. Values are observed one after another and never kept
/// together, so that a model of any size stays within bounds.
namespace moka::cli {

/// {"type", "shape", "minimum", "maximum", "mean", "finite", "nan", "infinite"}.
Json to_json(const ArrayFacts& facts, const MultiArray& array);

inline constexpr size_t kMostValues = 20'000;
/// The greatest difference that rounding explains, relative to the greatest magnitude.
inline constexpr double kRounding = 0x1p-13, kHalfRounding = 0x1p-8;

/// A value of the first model beside its partner.
struct ComparedValue {
  std::string operation, value, other;  ///< `other`: the partner's name; empty: none
  std::string other_operation;
  Json facts, other_facts;
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
/// equals NaN, and an infinity itself.
ValueComparison compare_values(const Model& model, const Features& inputs, const Model& other,
                               const Features& other_inputs, const ValueOptions& options = {});

/// Predicts once with `observe`, which gets the index of each value. Returns the outputs.
using ObserveValue =
    std::function<void(size_t index, std::string_view operation, std::string_view value, const MultiArray& array)>;
Features observe_values(const Model& model, const Features& inputs, const ObserveValue& observe);

}  // namespace moka::cli
