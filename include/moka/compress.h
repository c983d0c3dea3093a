#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "moka/build.h"

namespace moka {

enum class WeightForm : uint8_t {
  unchanged,
  linear,   ///< integers with scales: constexpr_affine_dequantize, constexpr_blockwise_shift_scale
  palette,  ///< indices into tables of values: constexpr_lut_to_dense
};

/// What shares scales or a table.
enum class WeightGranularity : uint8_t { tensor, channel, group, block };

enum class PaletteMode : uint8_t {
  kmeans,
  uniform,  ///< equal distances between the least and the greatest value
  unique,   ///< the values themselves, if they are few enough
};

/// How to compress a weight, with the rules of coremltools.optimize.coreml. Programs for iOS 16 and 17 have linear
/// forms of 8 bits for a tensor or channels, palettes for a tensor (but not of 3 bits), and pruning; everything else,
/// and pruning with another form, needs a program for iOS 18.
struct WeightCompression {
  WeightForm form = WeightForm::linear;
  unsigned bits = 8;  ///< linear: 4 or 8; palette: 1, 2, 3, 4, 6 or 8
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
  /// The n smallest of m neighbors along the input channels become zero; 0: none.
  int64_t n = 0, m = 0;
  int64_t sparse_block = 0;  ///< with sparsity: output channels that become zero together; 0: single values
};

struct CompressionOptions {
  WeightCompression weights;
  /// Other rules for some weights: a name, in which "*" matches any text, or "type:linear" for the weights that
  /// operations of a type read. The last one that matches counts.
  std::vector<std::pair<std::string, WeightCompression>> exceptions;
  int64_t least_elements = 2048;  ///< weights of up to so many elements stay as they are
  std::function<void(size_t done, size_t total)> progress;
};

/// What became of a weight.
struct CompressedWeight {
  std::string name, operation;  ///< the type of the first operation that reads it
  std::vector<int64_t> shape;
  size_t bytes_before = 0, bytes_after = 0;
  double signal_to_noise = 0;  ///< of the weight itself, in dB; infinite: exact
  double largest_error = 0;
  std::string form;     ///< "linear 8 bits, channel"; empty: unchanged
  std::string skipped;  ///< why it could not be compressed; empty: nothing prevented it
};

struct CompressedModel {
  ModelSource model;
  std::vector<CompressedWeight> weights;
};

/// The model with compressed weights: an ML program, or those in a pipeline. Every weight is decoded again from what
/// will be written and compared with its source. Throws invalid_argument (options that contradict each other),
/// unsupported (no ML program, a program for iOS 15), malformed.
MOKA_EXPORT CompressedModel compress_weights(const ModelSource& model, const CompressionOptions& options = {});

/// "linear 4 bits, blocks of 32".
MOKA_EXPORT std::string describe(const WeightCompression& compression);

}  // namespace moka
