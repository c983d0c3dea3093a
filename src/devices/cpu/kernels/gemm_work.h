#pragma once

#include "devices/cpu/kernels/common.h"

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

/// Of a linear or a matmul; nullopt: it is none, and `refusal` says why.
std::optional<ConstantProduct> constant_product(const MatchCall& m, std::string& refusal);

}  // namespace moka::devices::cpu
