#pragma once

#include <functional>

#include "ir/op_def.h"

/// The meaning of the attention operations.
namespace moka::ops {

/// A matrix within a tensor: element (i, j) is at first + i * row + j * column.
struct MatrixSteps {
  int64_t first = 0, row = 0, column = 0;
};

/// One head: softmax(query key^T * scale + mask) value, in double. A boolean mask says which keys take part.
struct AttentionHead {
  int64_t rows = 0, keys = 0, width = 0, made = 0;
  double scale = 1;
  MatrixSteps query, key, value, mask, out;
};
/// Calls fn for every head of scaled_dot_product_attention and of moka_attention.
using HeadFn = std::function<void(const AttentionHead&)>;
void each_head_of_products(const ir::OpCall& call, const ir::Shape& out, const HeadFn& fn);
Status each_head_of_views(const ir::OpCall& call, const HeadFn& fn);

void attend(const AttentionHead& head, const ir::TensorView& query, const ir::TensorView& key,
            const ir::TensorView& value, const ir::TensorView* mask, const ir::TensorView& out);

}  // namespace moka::ops
