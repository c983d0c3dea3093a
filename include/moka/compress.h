// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "moka/build.h"

namespace moka {

enum class WeightForm : uint8_t {
  unchanged,
  linear,   ///< integers with scales: constexpr_affine_dequantize, constexpr_blockwise_shift_scale
  palette,  ///< indices into tables of values: constexpr_lut_to_dense
  half,     ///< float16, in neural networks
};

/// The elements that share a scale or a table.
enum class WeightGranularity : uint8_t { tensor, channel, group, block };

enum class PaletteMode : uint8_t {
  kmeans,
  uniform,  ///< equal distances between the least and the greatest value
  unique,   ///< the values themselves, if they are few enough
};

/// How to compress a weight, with the rules of coremltools.optimize.coreml. Programs for iOS 16 and 17 have linear
/// forms of 8 bits for a tensor or channels, palettes for a tensor (but not of 3 bits), and pruning; everything else,
/// and pruning with another form, needs a program for iOS 18. Neural networks have the rules of coremltools'
/// quantization_utils: linear forms of 1 to 8 bits for a tensor or channels, asymmetric below 8 bits, palettes of 1 to
/// 8 bits for a tensor, and float16.
struct WeightCompression {
  WeightForm form = WeightForm::linear;
  unsigned bits = 8;  ///< in programs linear: 4 or 8; palette: 1, 2, 3, 4, 6 or 8
  /// Linear: tensor, channel or block. Palette: tensor or group.
  WeightGranularity granularity = WeightGranularity::channel;
  int64_t block_size = 32;  ///< input channels that share a scale
  int64_t group_size = 32;  ///< output channels that share a table
  bool symmetric = true, is_signed = true;
  PaletteMode mode = PaletteMode::kmeans;
  int64_t vector_size = 1;         ///< output channels that one index covers
  bool per_channel_scale = false;  ///< palette: normalize by the largest value across the output channels
  double sparsity = 0;             ///< fraction of the smallest values that become zero; 0: none
  double threshold = -1;           ///< values up to this size become zero; negative: none
  double least_sparsity = 0.5;     ///< with threshold: weights with a smaller fraction of zeros stay as they are
  /// The n smallest of m neighbors along the input channels become zero; 0: none.
  int64_t n = 0, m = 0;
  int64_t sparse_block = 0;  ///< with sparsity: output channels that become zero together; 0: single values
};

/// Rounds inputs and outputs of operations to integers of 8 bits, where
/// coremltools.optimize.coreml.linear_quantize_activations does: at conv, linear, pooling and additions of two values.
struct ActivationCompression {
  /// The ranges of values are those of these predictions together. At least one.
  std::vector<Features> inputs;
  bool symmetric = true;  ///< without a zero point; false: the range from the least to the greatest value, and zero
  bool is_signed = true;  ///< false: integers from 0 on
  /// Operations that keep their inputs: a name, in which "*" matches any text, or "type:add".
  std::vector<std::string> unchanged;
  ModelConfiguration configuration;  ///< of the predictions
  std::function<void(size_t done, size_t total)> progress;
};

struct CompressionOptions {
  WeightCompression weights;
  /// Other rules for some weights: a name, in which "*" matches any text, or "type:linear" for the weights that
  /// operations of a type read. The last one that matches counts.
  std::vector<std::pair<std::string, WeightCompression>> exceptions;
  int64_t least_elements = 2048;  ///< weights of up to so many elements stay as they are
  std::function<void(size_t done, size_t total)> progress;
  bool decompress = false;  ///< first makes floats of weights that are compressed already; else they stay as they are
  /// Needs a program of one function for iOS 17 or later.
  std::optional<ActivationCompression> activations = std::nullopt;
};

/// The result for a weight.
struct CompressedWeight {
  std::string name, operation;  ///< the type of the first operation that reads it
  std::vector<int64_t> shape;
  size_t bytes_before = 0, bytes_after = 0;
  double signal_to_noise = 0;  ///< of the weight itself, in dB; infinite: exact
  double largest_error = 0;
  std::string form;                    ///< "linear 8 bits, channel", "float16" if it was decompressed; empty: unchanged
  std::string skipped;                 ///< why it could not be compressed; empty: nothing prevented it
  bool is_compressed_already = false;  ///< the model has it in a compressed form, and it stays so
};

/// A quantized value: stored as integers q, and read as (q - zero_point) * scale.
struct CompressedActivation {
  std::string name;
  double least = 0, greatest = 0;  ///< values that are concatenated with each other share a range
  double scale = 1;
  int zero_point = 0;
};

struct CompressedModel {
  ModelSource model;
  std::vector<CompressedWeight> weights;
  std::vector<CompressedActivation> activations = {};
  /// With activations: of the worst output of the predictions that gave the ranges, in dB.
  std::optional<double> signal_to_noise = std::nullopt;
};

/// The model with compressed weights: an ML program or a neural network, or those in a pipeline. Every weight is
/// decoded again from what will be written and compared with its source. Throws invalid_argument (options that
/// contradict each other, no inputs for activations), unsupported (no ML program or neural network, a program for iOS
/// 15), malformed, and with activations what Model::predict throws.
MOKA_EXPORT CompressedModel compress_weights(const ModelSource& model, const CompressionOptions& options = {});

/// Chooses a form for each weight.
struct CompressionSearch {
  /// The goal: one of the two. The size in bytes of the specification and the weight files together, or the signal to
  /// noise in dB that every output has in every prediction.
  std::optional<size_t> size;
  std::optional<double> signal_to_noise;
  /// The forms to choose from. Empty: integers of 8 bits and palettes of 1 to 8 bits, in programs for iOS 18 also
  /// integers of 4 bits in blocks and palettes of groups, in networks also float16 and integers of 4 and 6 bits.
  std::vector<WeightCompression> forms;
  /// As in CompressionOptions: weights whose form is not searched.
  std::vector<std::pair<std::string, WeightCompression>> exceptions;
  int64_t least_elements = 2048;  ///< weights of up to so many elements stay as they are
  bool decompress = false;        ///< as in CompressionOptions
  /// Inputs of the predictions that are compared. Some measure the weights, the others check the result; 9 suffice for
  /// both. Empty: random inputs.
  std::vector<Features> inputs;
  uint64_t seed = 1;  ///< of random inputs
  ModelConfiguration configuration;
  /// Called on one thread at a time. `what`: "measuring weights".
  std::function<void(std::string_view what, size_t done, size_t total)> progress;
};

/// A form of one weight, measured while all other weights keep theirs.
struct WeightTrial {
  std::string form;
  size_t bytes = 0;            ///< of the weight
  double signal_to_noise = 0;  ///< of the outputs, in dB; infinite: no change
};
struct WeightSensitivity {
  std::string name;
  std::vector<WeightTrial> trials;
};

/// A combination of forms that the search considered, from the least compressed to the smallest.
struct CompressionPoint {
  size_t size = 0;
  double expected = 0;             ///< signal to noise in dB, by the weights measured alone
  std::optional<double> measured;  ///< that of the worst prediction, if the model was built
};

struct SearchedModel {
  ModelSource model;
  std::vector<CompressedWeight> weights;
  std::vector<WeightSensitivity> sensitivity;
  std::vector<CompressionPoint> curve;  ///< from the largest to the smallest
  size_t size_before = 0, size_after = 0;
  double signal_to_noise = 0;  ///< of the worst checked prediction, in dB
  /// What other inputs can expect, in dB: three standard deviations below the mean of the checked predictions, or the
  /// worst of them. The search holds this above its goal.
  double bound = 0;
  size_t measured_inputs = 0, checked_inputs = 0;
  bool separate = false;                         ///< the weights were measured on other inputs than those checked
  double seconds_before = 0, seconds_after = 0;  ///< of the fastest of several predictions
};

/// Measures how each form of each weight alone changes the outputs and chooses the forms by these measurements. Then
/// checks and corrects the choice on other inputs. Throws invalid_argument (not exactly one goal), unsupported (a goal
/// that no choice reaches, several functions, no output of numbers), and what compress_weights and Model::predict
/// throw.
MOKA_EXPORT SearchedModel search_compression(const ModelSource& model, const CompressionSearch& search);

/// "linear 4 bits, blocks of 32".
MOKA_EXPORT std::string describe(const WeightCompression& compression);

}  // namespace moka
