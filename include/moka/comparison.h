#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "moka/error.h"

namespace moka {

/// How two arrays of numbers differ.
struct NumberDifference {
  int64_t elements = 0;   ///< of each array
  int64_t different = 0;  ///< elements that are not equal
  double largest = 0;     ///< absolute difference, among finite elements
  /// Signal to noise in dB, where the first array is the signal. Infinite: all finite elements are equal.
  double snr = std::numeric_limits<double>::infinity();
  /// The element with the largest difference, or the first that is finite on one side only, and its values.
  std::vector<int64_t> at;
  double first = 0, second = 0;
  int64_t unlike = 0;        ///< elements that are NaN or infinite on one side only, or of unlike sign
  bool is_rounding = false;  ///< no element differs by more than rounding to float16 explains
};

/// The operations and weights of two functions side by side. Constants are not operations: they, and operations on them
/// such as the decompression of a weight, belong to the parameters that they supply.
struct ModelComparison {
  struct Operation {
    std::string name, type;
    /// Parameters with the values that supply them, without constants. Casts between floating-point types and
    /// identities are skipped: the value is the one that they read.
    std::vector<std::pair<std::string, std::vector<std::string>>> inputs;
    std::vector<std::pair<std::string, std::string>> outputs;  ///< value and its type as MIL text
    int depth = 0;                                             ///< nesting depth of the block
    bool is_transparent = false;  ///< a cast between floating-point types or an identity; without a partner it counts
                                  ///< as no difference
    int partner = -1;             ///< index in the other list; -1: none
    /// Why it is the partner: "graph" (computes the same from the same), "weights", "name", "place" (reads from or
    /// feeds the same operations, but differs).
    std::string paired_by;
    /// Without a partner: the operation in the other list whose result takes the place of this one's, as that of conv
    /// with other weights takes the place of batch_norm's. -1: none.
    int fused_into = -1;
  };
  enum class Kind {
    type,       ///< other operations: "relu" and "gelu"
    input,      ///< another value is read, or a constant instead of a value
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
    bool form_changed = false;  ///< of a weight: one side stores it in another way, as the texts say
  };
  /// A property with its texts on both sides: {"input 'x'", "Float32 1 x 3", ""}. Empty: absent.
  struct Feature {
    std::string what, first, second;
  };

  std::string function_a, function_b;
  std::vector<Operation> a, b;
  std::vector<Difference> differences;  ///< in the order of `a`
  std::vector<Feature> interface;       ///< inputs, outputs, states and class labels that differ
  std::vector<Feature> metadata;        ///< author, descriptions and the like that differ, which do not count in same()
  /// Why a model cannot be imported; empty: both can. Otherwise `fields` has what differs in the specifications, such
  /// as {"neuralNetwork.layers[2].custom.className", "Swish", "Mish"}, and there are no operations.
  std::string fault;
  std::vector<Feature> fields;
  /// Names of results in both models that should be equal.
  std::vector<std::pair<std::string, std::string>> values;
  int64_t constants = 0, elements = 0;  ///< compared constants, and their elements

  /// Whether there are no differences, and no operation without a partner that is not transparent.
  MOKA_EXPORT bool same() const;
};

/// "type", "input", "parameter", "weight", "element".
MOKA_EXPORT const char* name_of(ModelComparison::Kind kind);

struct ComparisonOptions {
  std::string function_a, function_b;  ///< empty: the default functions
};

/// Reads two models of any kind and compares a function of each. Operations are paired by what they compute and by
/// name, so that names may differ, and so may constants. Nothing is computed except operations on constants. Where a
/// model has a part that Moka does not support, the fields of the two specifications are compared instead. Throws what
/// opening a model throws, and not_found for a function.
MOKA_EXPORT ModelComparison compare_models(const std::string& a, const std::string& b,
                                           const ComparisonOptions& options = {});

}  // namespace moka
