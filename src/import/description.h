// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/dtype.h"
#include "ir/tensor.h"

namespace moka::import {

struct UpdateDescription;  // import/update/update.h

enum class FeatureKind : uint8_t { int64, float64, string, multi_array, image, dictionary, sequence, state };

/// The allowed sizes of one dimension; `upper` is -1 when unbounded.
struct SizeRange {
  int64_t lower = 1, upper = -1;
  bool operator==(const SizeRange&) const = default;
};

/// Core ML's MLMultiArrayConstraint. `shape` is the default shape; empty when the model does not say.
struct MultiArrayConstraint {
  ir::DType dtype = ir::DType::fp32;  ///< fp16, fp32, fp64, int32, int8
  bool has_dtype = true;  ///< false: the file does not say it, which only arrays between models of a pipeline may do
  std::vector<int64_t> shape;
  std::vector<SizeRange> ranges;                 ///< empty, or one per dimension
  std::vector<std::vector<int64_t>> enumerated;  ///< empty, or the allowed shapes
  std::optional<double> default_value;           ///< set for an optional input
  /// An input of a neural network of the legacy mapping: `shape` is [C] or [C, H, W], but callers may also pass arrays
  /// [sequence, batch, C, H, W], or for [C] arrays [sequence, batch, C].
  bool takes_rank5 = false;

  /// The default shape, or else the smallest one that is allowed. Empty when the model does not say.
  std::vector<int64_t> default_shape() const;
  /// The rank of the described shape, 0 when the model does not say; enumerated shapes may have other ranks.
  size_t rank() const {
    return !ranges.empty()      ? ranges.size()
           : !shape.empty()     ? shape.size()
           : enumerated.empty() ? 0
                                : enumerated[0].size();
  }
};

enum class ColorSpace : uint8_t { grayscale, rgb, bgr, grayscale_float16 };

/// Core ML's MLImageConstraint.
struct ImageConstraint {
  int64_t width = 0, height = 0;
  ColorSpace color = ColorSpace::rgb;
  std::optional<SizeRange> width_range, height_range;
  std::vector<std::pair<int64_t, int64_t>> enumerated;  ///< (width, height)
};

struct FeatureDescription {
  std::string name;
  std::string description;
  FeatureKind kind = FeatureKind::multi_array;
  bool optional = false;
  /// The model's own threshold of a detector, used when the input is missing or NaN. NaN: the model has several.
  std::optional<double> threshold;
  MultiArrayConstraint array;  ///< used by multi_array and state
  ImageConstraint image;
  bool string_keys = true;    ///< dictionary: keys are strings, else int64; sequence: elements are strings, else int64
  SizeRange sequence_length;  ///< used by sequence
  /// The values that the model distinguishes, if any: strings, integers as text, dictionary keys or sequence elements.
  /// Very long lists are truncated.
  std::vector<std::string> categories;
  std::optional<SizeRange> index_range;  ///< range of the numbers that index a table, such as tokens
};

/// The inputs, outputs and states of one function of a model.
struct FunctionDescription {
  std::string name;
  std::vector<FeatureDescription> inputs, outputs, states;
  std::string predicted_feature_name, predicted_probabilities_name;
};

/// Core ML's MLModelDescription, free of protobuf.
struct ModelDescription {
  std::string type_name;  ///< Core ML's name of the Model.Type member, e.g. "mlProgram"
  bool typed = false;     ///< an ML program, or a pipeline with one; its float32 types are meant literally
  int specification_version = 1;
  std::vector<FunctionDescription> functions;  ///< at least one; default_function names the default
  std::string default_function;
  std::vector<ir::Tensor> class_labels;  ///< empty, or one string or int64 tensor of rank 1
  std::string short_description, author, license, version;
  std::map<std::string, std::string> user_defined;
  bool updatable = false;
  std::shared_ptr<const UpdateDescription> update;  ///< null unless the model, or a model inside it, is updatable
  std::vector<std::string> remarks;                 ///< notes for the user about a model that runs

  const FunctionDescription* function(std::string_view name) const {
    for (const auto& f : functions)
      if (f.name == name) return &f;
    return nullptr;
  }
};

/// The error of importing or planning the function. Blames an input that is described with a size of 0 and no other.
Error with_empty_input(Error error, const FunctionDescription& function);

}  // namespace moka::import
