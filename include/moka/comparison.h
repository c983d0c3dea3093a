// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "moka/model.h"

namespace moka {

/// How two arrays of numbers differ.
struct NumberDifference {
  int64_t elements = 0;   ///< of each array
  int64_t different = 0;  ///< elements that are not equal
  double largest = 0;     ///< largest absolute difference of finite elements
  /// Signal-to-noise ratio in dB; the first array is the signal. Infinite: all finite elements are equal.
  double snr = std::numeric_limits<double>::infinity();
  /// The element with the largest difference, or the first that is finite on one side only, and its values.
  std::vector<int64_t> at;
  double first = 0, second = 0;
  int64_t unlike = 0;        ///< different elements that are NaN or infinite in at least one array
  bool is_rounding = false;  ///< rounding to float16 explains the difference of every element
};

/// The operations and weights of two functions side by side. Constants do not count as operations. They and operations
/// on constants, such as the decompression of a weight, belong to the parameters that they supply.
struct ModelComparison {
  struct Operation {
    std::string name, type;
    /// Parameters and the values that supply them, without constants. For a cast between floating-point types or an
    /// identity, the value is the one that it reads.
    std::vector<std::pair<std::string, std::vector<std::string>>> inputs;
    std::vector<std::pair<std::string, std::string>> outputs;  ///< value and its type as MIL text
    int depth = 0;                                             ///< nesting depth of the block
    bool is_transparent = false;  ///< a cast between floating-point types or an identity; does not count as
                                  ///< a difference if it has no partner
    int partner = -1;             ///< index in the other list; -1: none
    /// Why it is the partner: "graph" (computes the same from the same), "weights", "name", "place" (differs, but has
    /// the same neighbors).
    std::string paired_by;
    /// If there is no partner: the operation in the other list that also does this one's work. Example: a conv into
    /// which a converter folded this batch_norm. -1: none.
    int fused_into = -1;
  };
  enum class Kind {
    type,       ///< other operations: "relu" and "gelu"
    input,      ///< reads another value, or a constant instead of a value
    parameter,  ///< constants of up to 16 elements, and texts
    weight,     ///< other constants
    element,    ///< the same numbers in another element type
  };
  /// What differs between an operation and its partner.
  struct Difference {
    Kind kind = Kind::parameter;
    int a = -1, b = -1;                   ///< indices of the operations; -1: the outputs of the functions
    std::string parameter;                ///< empty for kind type
    std::string first, second;            ///< short texts: "[1, 1]", "fp32 64 x 3 x 7 x 7", "value 'x'"; empty: absent
    std::string first_name, second_name;  ///< names of the constants or of the operations that compute them
    std::optional<NumberDifference> numbers;
    bool form_changed = false;  ///< the two models store the weight in different ways, which the texts name
  };
  /// A property with its texts on both sides: {"input 'x'", "Float32 1 x 3", ""}. Empty: absent.
  struct Feature {
    std::string what, first, second;
  };

  std::string function_a, function_b;
  std::vector<Operation> a, b;
  std::vector<Difference> differences;  ///< in the order of `a`
  std::vector<Feature> interface;       ///< inputs, outputs, states and class labels that differ
  std::vector<Feature> metadata;        ///< author, descriptions and the like that differ; same() ignores them
  /// Why a model cannot be imported; empty: both can. If it is not empty, there are no operations, and `fields` lists
  /// what differs in the specifications: {"neuralNetwork.layers[2].custom.className", "Swish", "Mish"}.
  std::string fault;
  std::vector<Feature> fields;
  /// Pairs of names, one of each model, of results that should be equal.
  std::vector<std::pair<std::string, std::string>> values;
  int64_t constants = 0, elements = 0;  ///< compared constants, and their elements

  /// Whether there are no differences, and no operation without a partner that is not transparent.
  MOKA_EXPORT bool same() const;
};

/// "type", "input", "parameter", "weight", "element".
MOKA_EXPORT const char* name_of(ModelComparison::Kind kind);

struct ComparisonOptions {
  std::string function_a, function_b;  ///< empty: the default functions
  KeySource key;                       ///< as ModelConfiguration::key, for both models
};

/// Reads two models of any kind and compares a function of each. Pairs operations by what they compute and by name, so
/// names and constants may differ. Computes only operations on constants. If a model has a part that Moka does not
/// support, compares the fields of the two specifications instead, and reads these without `key`. Throws what opening a
/// model throws, and not_found for a function.
MOKA_EXPORT ModelComparison compare_models(const std::filesystem::path& a, const std::filesystem::path& b,
                                           const ComparisonOptions& options = {});

}  // namespace moka
