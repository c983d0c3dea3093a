// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/cpu/common/common.h"
#include "devices/cpu/common/compressed_weights.h"
#include "devices/cpu/common/file_weights.h"
#include "devices/cpu/vector/gemm.h"

namespace moka::devices::cpu {

/// x [rows, depth] times constant weights [depth, made]. Weight (k, column) is at k * row_step + column * column_step.
struct ConstantProduct {
  int64_t rows = 0, depth = 0, made = 0;  ///< made: columns of the result
  int64_t row_step = 0, column_step = 0;
  int x = -1, weights = -1, bias = -1, addend = -1;  ///< indices in all_args; negative: none

  double flops() const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(made) * static_cast<double>(depth);
  }
};

/// How weights are packed. This does not depend on the number of rows, so plans for other shapes share them.
struct Panels {
  const vector::Gemm* gemm = nullptr;
  /// Packed as float16, which holds all weights exactly because the file stores them so.
  bool as_half = false;
  /// Pairs of adjacent panels for kernels/gemm_strassen.cpp. After the panels there is one float per pair: 1 if the
  /// columns of both panels have similar magnitudes, so that they may be added, else 0.
  int64_t pairs = 0;
  std::shared_ptr<const CompressedWeights> compressed = nullptr;  ///< packed in fewer bits than float32

  int64_t padded(const ConstantProduct& p) const { return count(p) / p.depth; }
  int64_t count(const ConstantProduct& p) const { return vector::packed_count(*gemm, p.depth, p.made); }
  size_t weight_bytes(const ConstantProduct& p) const {
    if (compressed) return (compressed->bytes(padded(p)) + sizeof(float) - 1) / sizeof(float) * sizeof(float);
    return static_cast<size_t>(count(p)) * (as_half ? sizeof(uint16_t) : sizeof(float));
  }
  size_t bytes(const ConstantProduct& p) const { return weight_bytes(p) + static_cast<size_t>(pairs) * sizeof(float); }
  /// Scratch memory for products of packed weights.
  int64_t scratch_floats() const { return as_half ? gemm->widened() : 0; }
  std::string note() const { return as_half ? "packed as float16" : compressed ? compressed->note() : ""; }
};
Panels panels_of(const MatchCall& m, const ConstantProduct& p);
Panels halved_panels(const MatchCall& m, const ConstantProduct& p);  ///< with as many pairs as possible

/// Two adjacent packed panels: floats, or halves.
struct PanelPair {
  const float* floats = nullptr;
  const uint16_t* halves = nullptr;
  bool are_alike = false;
};

/// Weights that `prepare` packs.
struct PackedPanels {
  Panels panels;
  ConstantProduct product;
  int64_t depth = 0;
  size_t alike = 0;  ///< where the floats of the pairs begin
  PackedBytes bytes;
  std::optional<FileWeights> unpacked;  ///< if `multiply` may be called before they are packed

  const float* floats(int64_t column) const { return reinterpret_cast<const float*>(bytes.get()) + column * depth; }
  const uint16_t* halves(int64_t column) const {
    return reinterpret_cast<const uint16_t*>(bytes.get()) + column * depth;
  }
  /// Pair number `pair`. If `prepare` has not packed it, this packs it into `room` as floats.
  PanelPair pair(int64_t pair, float* room) const;
  /// The floats of `room` that `pair` needs.
  int64_t pair_floats() const {
    return unpacked || panels.compressed ? (is_by_column() ? 3 : 2) * panels.gemm->panel * depth : 0;
  }
  /// The floats of `scratch` that `multiply` needs.
  int64_t scratch_floats() const;
  /// As Gemm::multiply, with n columns from the first column of a panel on.
  void multiply(const float* a, int64_t a_step, int64_t column, int64_t rows, int64_t n, float* c, int64_t c_step,
                const float* bias, bool add, float* scratch) const;

 private:
  bool is_by_column() const { return product.row_step == 1; }
  /// Packs the columns of one panel, which may be the last. `room` is for weights that are widened first.
  void pack_panel(int64_t column, int64_t wide, float* to, float* squares, float* room) const;
  /// Widens a few panels at a time into `scratch`.
  void multiply_widened(const float* a, int64_t a_step, int64_t column, int64_t rows, int64_t n, float* c,
                        int64_t c_step, const float* bias, bool add, float* scratch) const;
  /// Packs one panel at a time into `scratch`.
  void multiply_unpacked(const float* a, int64_t a_step, int64_t column, int64_t rows, int64_t n, float* c,
                         int64_t c_step, const float* bias, bool add, float* scratch) const;
};
std::shared_ptr<const PackedPanels> packed_panels(KernelChoice& c, const MatchCall& m, const ConstantProduct& p,
                                                  const Panels& panels);

constexpr int64_t kHalvedRows = 256;   ///< rows per block that is cut into halves
constexpr int64_t kHalvedDepth = 384;  ///< most depth of a quarter
/// Whether seven products of quarters and the sums that they need clearly cost less than all eight products.
bool spares_products(const ConstantProduct& p, int64_t rows, int64_t pairs);

/// Whether two rows or columns with these sums of squares may be added. The error then stays small relative to both.
bool are_alike(float a, float b);
constexpr float kLargeSquares = 1e30f;  ///< above it, sums might overflow a float

/// The product of a linear or a matmul with constant weights. nullopt: not such a product; `refusal` says why.
std::optional<ConstantProduct> constant_product(const MatchCall& m, std::string& refusal);

}  // namespace moka::devices::cpu
