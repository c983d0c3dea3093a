// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <limits>

#include "ir/op_def.h"

/// The reference of the attention operations.
namespace moka::ops {

/// A matrix in a tensor: element (i, j) is at first + i * row + j * column.
struct MatrixSteps {
  int64_t first = 0, row = 0, column = 0;
};

/// One head: softmax(query key^T * scale + mask) value, computed in double. A boolean mask selects the keys that take
/// part; the scores of all other keys are set to `hidden`.
struct AttentionHead {
  int64_t rows = 0, keys = 0, width = 0, made = 0;
  double scale = 1;
  MatrixSteps query, key, value, mask, out;
  double hidden = -std::numeric_limits<double>::infinity();
};
/// All heads of an operation. They differ only in where their matrices begin.
struct AttentionHeads {
  AttentionHead shared;
  ir::Shape sizes;  ///< batch dimensions, which number the heads
  /// Steps along these dimensions, for query, key, value, mask and result.
  std::array<std::array<int64_t, ir::kMaxRank>, 5> steps{};

  int64_t count() const { return sizes.count(); }
  AttentionHead at(int64_t i) const;
};
/// The heads of scaled_dot_product_attention and of moka_attention.
AttentionHeads heads_of_products(const ir::OpCall& call, const ir::Shape& out);
Result<AttentionHeads> heads_of_views(const ir::OpCall& call);

void attend(const AttentionHead& head, const ir::TensorView& query, const ir::TensorView& key,
            const ir::TensorView& value, const ir::TensorView* mask, const ir::TensorView& out);

}  // namespace moka::ops
