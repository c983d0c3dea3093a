#pragma once

#include "devices/cpu/kernels/common.h"
#include "devices/cpu/vector/gemm.h"

namespace moka::devices::cpu {

/// x [rows, depth] times constant weights, of which element (k, column) is at k * row_step + column * column_step.
struct ConstantProduct {
  int64_t rows = 0, depth = 0, made = 0;  ///< made: columns
  int64_t row_step = 0, column_step = 0;
  int x = -1, weights = -1, bias = -1, addend = -1;  ///< arguments, negative: none

  double flops() const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(made) * static_cast<double>(depth);
  }
};

/// How weights are packed, whatever the number of rows: plans for other shapes share them.
struct Panels {
  const vector::Gemm* gemm = nullptr;
  /// Of neighbouring panels that may be added (kernels/gemm_strassen.cpp). Behind the panels is 1 for each whose
  /// columns are of like size, else 0.
  int64_t pairs = 0;

  int64_t floats(const ConstantProduct& p) const { return vector::packed_count(*gemm, p.depth, p.made); }
};
Panels panels_of(const ConstantProduct& p);
Panels halved_panels(const ConstantProduct& p);  ///< with as many pairs as there are
std::shared_ptr<const PackedFloats> packed_panels(KernelChoice& c, const MatchCall& m, const ConstantProduct& p,
                                                  const Panels& panels);

constexpr int64_t kHalvedRows = 256;   ///< that are cut into halves at once
constexpr int64_t kHalvedDepth = 384;  ///< of a quarter, at most
/// Whether seven products of quarters and the sums that they take are well below all products.
bool spares_products(const ConstantProduct& p, int64_t rows, int64_t pairs);

/// Rows or columns whose sums of squares these are may be added: an error remains small for both.
bool are_alike(float a, float b);
constexpr float kLargeSquares = 1e30f;  ///< beyond which sums may be too large for a float

/// Of a linear or a matmul; nullopt: it is none, and `refusal` says why.
std::optional<ConstantProduct> constant_product(const MatchCall& m, std::string& refusal);

}  // namespace moka::devices::cpu
