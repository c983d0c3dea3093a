// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "moka/build.h"

/// Edits saved models. Each function returns a changed copy, which shares the weights, and does not change its
/// argument. The parts that an edit does not concern are saved byte for byte. An impossible edit throws Exception:
/// not_found (the model lacks a feature or value), invalid_argument (the edit contradicts the model), unsupported (the
/// kind of model), malformed (the model is damaged).
namespace moka::edit {

/// Which features an edit concerns. States count as inputs.
enum class Side { any, inputs, outputs };

using Names = std::map<std::string, std::string, std::less<>>;

/// Renames inputs, outputs and states, from old to new names, everywhere: in all functions, in layers, and in the
/// stages of a pipeline that the feature passes. Two features may swap names.
MOKA_EXPORT ModelSource rename_features(const ModelSource& model, const Names& names, Side side = Side::any);
/// Renames operations of ML programs and layers of neural networks.
MOKA_EXPORT ModelSource rename_operations(const ModelSource& model, const Names& names);
/// Renames inner values of ML programs and neural networks: those that are not features.
MOKA_EXPORT ModelSource rename_values(const ModelSource& model, const Names& names);

/// Changes the element type of an array: "float16", "float32", "float64", "int32" or "int8". A program gets a cast, or
/// loses the cast that it had.
MOKA_EXPORT ModelSource set_type(const ModelSource& model, const std::string& feature, const std::string& type,
                                 Side side = Side::any);

/// How the pixels of an image, 0 to 255, become the numbers of an array and back: number = pixel * scale + bias for
/// inputs, pixel = number * scale + bias for outputs. One number, or one per channel in the order of the color space.
struct ImageSettings {
  ColorSpace color = ColorSpace::rgb;
  std::vector<double> scale = {1}, bias = {0};
  std::string layout;  ///< of the array: "chw" or "hwc"; empty: what its shape says
};
/// Turns an array [1, C, H, W], [C, H, W], [1, H, W, C], [H, W, C], or [H, W] for one channel, into an image. Flexible
/// sizes stay flexible. Networks accept only [1, C, H, W] and [C, H, W].
MOKA_EXPORT ModelSource set_image(const ModelSource& model, const std::string& feature, const ImageSettings& settings,
                                  Side side = Side::any);
/// Makes the model replace an input x by (x - mean) / std first. `mean` and `std` have one number, or one per channel
/// of an image or per element of an axis.
MOKA_EXPORT ModelSource normalize(const ModelSource& model, const std::string& input, const std::vector<double>& mean,
                                  const std::vector<double>& std, std::optional<int> axis = std::nullopt);

/// Texts or integers.
using Labels = std::variant<std::vector<std::string>, std::vector<int64_t>>;
struct ClassifierNames {
  std::string probabilities;  ///< the output with one element per label; empty: the only output
  std::string label = "classLabel", dictionary = "classLabel_probs";
};
/// Turns an ML program or a neural network into a classifier. If the model is one already, only replaces its labels.
MOKA_EXPORT ModelSource set_labels(const ModelSource& model, const Labels& labels, const ClassifierNames& names = {});
/// Turns a classifier into an ML program or a neural network that returns the probabilities.
MOKA_EXPORT ModelSource remove_labels(const ModelSource& model);

/// Replaces the weights of ML programs and neural networks by zeros, or by random numbers from a seed, of the same
/// size. The result has the structure of the model but not its weights, so it can be shared.
MOKA_EXPORT ModelSource strip_weights(const ModelSource& model, std::optional<uint64_t> seed = std::nullopt);

/// Raises the specification version to that of a system, "ios18", and the opset of ML programs with it. For
/// iOS 18 and later, rewrites palettized and sparse weights as the operations of iOS 18.
MOKA_EXPORT ModelSource set_target(const ModelSource& model, const std::string& target);

/// Sets a text of the metadata by the name of its field: "shortDescription", "versionString", "author", "license". An
/// empty text removes it.
MOKA_EXPORT ModelSource set_metadata(const ModelSource& model, const std::string& field, const std::string& text);
/// Sets an entry of the user-defined metadata. An empty text removes it.
MOKA_EXPORT ModelSource set_user_defined(const ModelSource& model, const std::string& key, const std::string& text);
/// Sets the description of a feature.
MOKA_EXPORT ModelSource describe_feature(const ModelSource& model, const std::string& feature, const std::string& text);

/// The allowed sizes of an input: of an array, by dimension; of an image, height and width. Either ranges, or the
/// allowed shapes, the first of which is the default. One shape, or ranges of equal bounds, fix the size.
struct InputSizes {
  std::vector<SizeRange> ranges;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<int64_t> standard = {};  ///< the default of ranges; empty: the old one if it fits, or the lower bounds
};
/// Sets the sizes of inputs of an ML program or a neural network, together where they depend on each other. The model
/// is imported for the default, each shape and both ends of the ranges, so that a size that it cannot have is an error.
MOKA_EXPORT ModelSource set_sizes(const ModelSource& model, const std::map<std::string, InputSizes>& inputs);

/// A model that begins at `inputs` and ends at `outputs`: features, values or operations. An empty list leaves that end
/// as it is. Drops what is not needed, weights included.
MOKA_EXPORT ModelSource cut(const ModelSource& model, const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs);

/// Cuts an ML program with one function into two models with about the same size of weights. The second reads what the
/// first returns, and may also read inputs of the model.
MOKA_EXPORT std::pair<ModelSource, ModelSource> bisect(const ModelSource& model);
/// A pipeline of the two halves, with the features of the model.
MOKA_EXPORT ModelSource bisect_into_pipeline(const ModelSource& model);

/// A pipeline of models that run in this order. An input of a model reads the output of that name of an earlier model.
/// The pipeline returns the outputs that no later model reads. `models`: names of the stages, and the models.
MOKA_EXPORT ModelSource join(const std::vector<std::pair<std::string, ModelSource>>& models);
/// Appends a model to a pipeline. If `model` is not a pipeline, it becomes the first stage of a new one.
MOKA_EXPORT ModelSource append(const ModelSource& model, const std::string& name, const ModelSource& next,
                               const std::string& next_name);
/// The model of a pipeline's stage, by the stage's name or index (from 0).
MOKA_EXPORT ModelSource extract_stage(const ModelSource& model, const std::string& stage);
/// Merges a pipeline of ML programs into one ML program.
MOKA_EXPORT ModelSource inline_pipeline(const ModelSource& model);

/// A model that keeps only this function of an ML program.
MOKA_EXPORT ModelSource extract_function(const ModelSource& model, const std::string& function);
/// Adds a function of another ML program under a new name; an empty `from` stands for its default function. Equal
/// weights are stored once.
MOKA_EXPORT ModelSource add_function(const ModelSource& model, const std::string& name, const ModelSource& other,
                                     const std::string& from = {});
MOKA_EXPORT ModelSource set_default_function(const ModelSource& model, const std::string& function);

/// Makes layers of a neural network updatable: convolutions, inner products, and products with constant matrices. Their
/// weights must be float32. Without layers, makes a nearest-neighbors classifier updatable. An updatable network also
/// needs a loss, an optimizer and a number of epochs; `check` says what is missing. These functions pass what they set
/// in a pipeline to its last model, the only one that can be updated.
MOKA_EXPORT ModelSource make_updatable(const ModelSource& model, const std::vector<std::string>& layers);
/// Sets the loss and, as training inputs, the inputs of the model and the target. The target of a classifier's
/// probabilities is the label, that of other values the value's name with "_true": an index for a cross entropy, an
/// array for a mean squared error. An empty input is the result of the only softmax, or the only output.
MOKA_EXPORT ModelSource set_loss(const ModelSource& model, LossLayer::Kind kind, const std::string& input = {},
                                 const std::string& name = "loss");
/// Sets an optimizer, "sgd" or "adam", with coremltools' defaults.
MOKA_EXPORT ModelSource set_optimizer(const ModelSource& model, const std::string& optimizer);
/// A value of an update, and which others are allowed: a range, or a set of integers. Without them, real numbers may be
/// from 0 to 1, and integers only the value.
struct UpdateValue {
  double value = 0;  ///< a flag: 0 or 1
  std::optional<std::pair<double, double>> range = {};
  std::vector<int64_t> allowed = {};
};
/// Sets a parameter of the update by Core ML's name: "learningRate", "miniBatchSize", "momentum", "beta1", "beta2",
/// "eps", "epochs", "shuffle", "seed", "numberOfNeighbors".
MOKA_EXPORT ModelSource set_update_parameter(const ModelSource& model, const std::string& name,
                                             const UpdateValue& value);

/// Appends samples to an updatable nearest-neighbors classifier, or to the one that ends an updatable pipeline. `rows`:
/// [count, dimensions] of float32, finite numbers. `neighbors` replaces the number of neighbors that predictions look
/// for, within what the model allows.
MOKA_EXPORT ModelSource add_samples(const ModelSource& model, const MultiArray& rows, const Labels& labels,
                                    std::optional<int64_t> neighbors = std::nullopt);

/// Checks that a model does not contradict itself. Throws the error that loading it, or updating it, would throw.
MOKA_EXPORT void check(const ModelSource& model);

}  // namespace moka::edit
