// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "input.h"
#include "json.h"
#include "moka/compress.h"
#include "outputs.h"

namespace moka::cli {

struct CompressOptions {
  std::string model, out, per, prune, mode = "kmeans";
  std::vector<std::string> layers;
  int linear = 0, palette = 0;
  int64_t vector = 1, least = 2048, prune_block = 0;
  double threshold = -1, least_sparsity = 0.5;
  bool half = false, asymmetric = false, is_unsigned = false, scales = false, decompress = false, json = false;

  std::string activations;
  std::vector<std::string> unchanged;  ///< operations

  std::string target_size, max_error, forms, chart;  ///< of the search
  InputOptions input;
  bool searches() const { return !target_size.empty() || !max_error.empty(); }
};

void add_compress_options(Arguments app, CompressOptions& options, Outputs& outputs);

/// Throws UsageError.
CompressionOptions compression(const CompressOptions& options);
/// What --input gives, for activations and for a search.
std::vector<Features> compression_inputs(const CompressOptions& options);
/// `size_before`: of the model in bytes, for a share. Throws UsageError.
CompressionSearch compression_search(const CompressOptions& options, size_t size_before);

/// Says which --layer options match no weight.
void note_unused_layers(const CompressOptions& options, const std::vector<CompressedWeight>& weights);

/// Searches, writes the model and prints what was found. Returns the exit code.
int compress_by_search(const CompressOptions& options, const Outputs& outputs);

Json to_json(const CompressedWeight& weight);
/// The changed weights as a table, and why others were not changed.
/// "33.5 dB", "exact" for infinity, or "not finite".
std::string decibels_text(double value);
/// A number, null for infinity, or "not finite".
Json decibels_json(double value);
std::string weights_text(const std::vector<CompressedWeight>& weights);

}  // namespace moka::cli
