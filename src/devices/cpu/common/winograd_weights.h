// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "devices/cpu/common/compressed_weights.h"
#include "devices/cpu/common/file_weights.h"
#include "devices/cpu/common/winograd_blocking.h"

namespace moka::devices::cpu {

/// Weights that the file compresses and that are packed before they are transformed, so that they stay small.
struct CompressedFilters {
  std::shared_ptr<const CompressedWeights> panels;
  bool as_half = false;  ///< as float16, in the layout of CompressedWeights

  /// `depth`: weights of an output channel.
  static CompressedFilters of(const MatchCall& m, int arg, int64_t out, int64_t depth);
  bool any() const { return as_half || panels != nullptr; }
};

/// The weights of a Winograd convolution. They are transformed when they are packed, or in each prediction: a panel of
/// weights that are not packed yet, or some input channels of a panel of compressed weights.
class WinogradWeights {
 public:
  WinogradWeights(const MatchCall& m, int arg, const WinogradBlocking& p, CompressedFilters compressed);

  const std::optional<FileWeights>& unpacked() const { return unpacked_; }
  bool is_compressed() const { return compressed_.any(); }
  /// Whether read() needs no expanded constant.
  bool reads_file() const { return is_compressed() || (stored_ && !stored_->is_half); }
  /// How they are packed, to be added to a KernelChoice::note.
  std::string note() const {
    if (compressed_.panels) return cat(", ", compressed_.panels->note());
    return compressed_.as_half ? ", packed as float16" : "";
  }
  /// Floats of scratch memory that multiply() needs.
  int64_t room() const;
  /// As KernelChoice::prepare.
  Status prepare(kernel::PrepareContext& context, const std::string& key);

  /// Multiplies transformed tiles by a panel: for each point `tiles` rows of v, whose slices are `slice_step` apart.
  void multiply(int64_t panel, const float* v, int64_t slice_step, int64_t tiles, float* made, float* room) const;
  /// Weights [first, first + n) as they were before the transform. `constant`: all of them unless reads_file().
  void read(const float* constant, int64_t first, int64_t n, float* to) const;

 private:
  int64_t filter() const { return p_.in * p_.w.taps(); }
  int64_t filters_of(int64_t panel) const { return std::min(p_.width(panel), p_.out - panel * p_.panel()); }
  int64_t columns() const { return p_.out_groups * p_.block(); }
  void pack_panel(int64_t panel, const float* filters, int64_t depth, float* to) const;
  /// `filters`: those of the panel. `to`: its transformed weights.
  void transform_panel(int64_t panel, const float* filters, float* to) const;
  /// Transforms `n` input channels of a compressed panel to `room`.
  void expand(int64_t panel, int64_t first, int64_t n, float* room) const;
  const float* panel_of(int64_t panel, int64_t first, int64_t n, float* room) const;

  WinogradBlocking p_;
  int arg_;
  CompressedFilters compressed_;
  std::optional<kernel::StoredConstant> stored_;
  std::optional<FileWeights> unpacked_;
  PackedBytes packed_;
};

/// The weights before the transform.
struct Taps {
  const WinogradWeights* weights;
  const float* constant;  ///< as in WinogradWeights::read

  void read(int64_t first, int64_t n, float* to) const { weights->read(constant, first, n, to); }
};

}  // namespace moka::devices::cpu
