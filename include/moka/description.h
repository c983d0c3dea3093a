// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "moka/multi_array.h"

namespace moka {

enum class FeatureType : uint8_t { int64, float64, string, multi_array, image, dictionary, sequence, state };
MOKA_EXPORT std::string_view to_string(FeatureType type);  ///< Core ML's names: "Int64", "MultiArray"

/// Allowed sizes of one dimension; upper -1 when unbounded.
struct SizeRange {
  int64_t lower = 1, upper = -1;
};

/// Core ML's MLMultiArrayConstraint.
struct MultiArrayConstraint {
  DataType type = DataType::float32;
  std::vector<int64_t> shape;                    ///< the default shape; empty when the model does not say
  std::vector<SizeRange> ranges;                 ///< empty, or one per dimension
  std::vector<std::vector<int64_t>> enumerated;  ///< empty, or the allowed shapes
};

enum class ColorSpace : uint8_t { grayscale, rgb, bgr, grayscale_float16 };

/// Core ML's MLImageConstraint.
struct ImageConstraint {
  int64_t width = 0, height = 0;
  ColorSpace color = ColorSpace::rgb;
  std::optional<SizeRange> width_range, height_range;
  std::vector<std::pair<int64_t, int64_t>> enumerated;  ///< (width, height)
};

/// Core ML's MLFeatureDescription.
struct MOKA_EXPORT FeatureDescription {
  std::string name, description;
  FeatureType type = FeatureType::multi_array;
  bool optional = false;
  MultiArrayConstraint array;  ///< used by multi_array and state
  ImageConstraint image;
  /// dictionary: keys are strings, else int64; sequence: elements are strings, else int64
  bool string_keys = true;
  SizeRange sequence_length{0, -1};  ///< used by sequence
  /// The number that an optional input takes when it has no value, if the model defines one.
  std::optional<double> default_value;
  /// The values that a loaded model distinguishes, such as the categories of an encoder: strings, integers as text,
  /// dictionary keys or sequence elements. Very long lists are truncated.
  std::vector<std::string> categories;
  /// Range of the numbers that index a table, such as tokens. Only loaded models have it.
  std::optional<SizeRange> index_range;
  /// "MultiArray (Float32 1 x 43844 x 1)", "Image (RGB 299 x 299)". Flexible sizes print as ranges.
  std::string formatted_type() const;
};

struct FunctionDescription {
  std::string name;
  std::vector<FeatureDescription> inputs, outputs, states;
  std::string predicted_feature_name, predicted_probabilities_name;  ///< set by classifiers
};

/// Core ML's MLParameterDescription: a number or a flag that an update takes, with its default and what is allowed.
struct UpdateParameter {
  std::string name;                                   ///< Core ML's key: "learningRate", "miniBatchSize", "epochs", ...
  std::variant<int64_t, double, bool> value;          ///< the default
  std::optional<std::pair<double, double>> range;     ///< of a double
  std::optional<std::pair<int64_t, int64_t>> bounds;  ///< of an integer
  std::vector<int64_t> allowed;                       ///< of an integer: a set; empty: none is given
};

/// A layer whose weights an update changes.
struct UpdatableLayer {
  std::string name, type;               ///< type: Core ML's name, "innerProduct"
  std::vector<std::string> parameters;  ///< its weights, as ModelConfiguration::parameters names them
};

/// What an update makes small.
struct LossLayer {
  enum class Kind : uint8_t { categorical_cross_entropy, mean_squared_error };
  std::string name;
  Kind kind = Kind::categorical_cross_entropy;
  std::string input, target;   ///< values of the network
  std::string training_input;  ///< the training input that gives the target: `target`, or the label of a classifier
};

/// What a nearest-neighbors classifier is made of.
struct NearestNeighbors {
  int64_t dimensions = 0, samples = 0;
  std::string index, weighting;  ///< "linear" or "kdTree"; "uniform" or "inverseDistance"
  int64_t leaf_size = 0;         ///< of a kd-tree
  bool string_labels = false;
  std::optional<std::string> default_label;  ///< of a model without samples; an integer as text
};

/// What a model can learn. The last model of a pipeline is the one that learns.
struct MOKA_EXPORT UpdateDescription {
  std::vector<FeatureDescription> training_inputs;
  std::vector<UpdatableLayer> layers;
  std::vector<LossLayer> losses;
  std::string optimizer;                      ///< "sgd", "adam", or empty
  std::vector<UpdateParameter> parameters;    ///< by the names of Core ML
  std::optional<NearestNeighbors> neighbors;  ///< of a nearest-neighbors classifier
  std::vector<size_t> stage;                  ///< the indices that lead to the model that learns, in a pipeline
  std::string fault;                          ///< the first rule of Core ML that the file breaks; empty: it is valid
  std::vector<std::string> remarks;           ///< what Core ML does differently

  /// nullptr: the file does not have it.
  const UpdateParameter* parameter(std::string_view name) const;
};
MOKA_EXPORT std::string_view to_string(LossLayer::Kind kind);  ///< "categoricalCrossEntropy", "meanSquaredError"

/// Core ML's MLModelDescription.
struct ModelDescription {
  std::string type;  ///< Core ML's name: "mlProgram", "neuralNetwork", "pipelineClassifier", ...
  int specification_version = 1;
  std::vector<FunctionDescription> functions;
  std::string default_function;
  std::vector<std::string> class_labels;  ///< int64 labels as text
  bool int64_labels = false;
  std::string short_description, author, license, version;
  std::map<std::string, std::string> user_defined;
  bool updatable = false;
  std::optional<UpdateDescription> update;  ///< set for an updatable model
  std::vector<std::string> remarks;         ///< notes for the user about a model that runs
};

}  // namespace moka
