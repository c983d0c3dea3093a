// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/error.h"
#include "ir/array_view.h"
#include "ir/tensor.h"
#include "moka/feature.h"

namespace moka::boundary {

/// A row-major array in the memory of `view`, which `owner` keeps; rank 0 becomes shape [1]. Error: unsupported
/// (element type).
Result<MultiArray> array_in(const ir::TensorView& view, std::shared_ptr<const void> owner);
/// One plane of half floats as an image in the same memory.
Image image_in(const ir::TensorView& view, std::shared_ptr<const void> owner);
/// A row-major array with undefined content; rank 0 becomes shape [1]. Errors: unsupported (element type),
/// out_of_budget.
Result<MultiArray> new_array(ir::DType dtype, const ir::Shape& shape);
/// A row-major copy of a numeric tensor; rank 0 becomes shape [1].
Result<MultiArray> to_array(const ir::TensorView& view);
ir::ArrayView view_of(const MultiArray& array);
inline bool lacks_data(const MultiArray& a) { return a.data() == nullptr && (a.count() > 0 || a.shape().empty()); }
/// Whether `to`, if it is an integer type, has every number of the array. The error invalid_argument shows the first
/// one that it lacks: "expected whole numbers of type int32, got 3.7 at [0, 2]". `first_row`: added to the first index.
Status check_whole(const ir::ArrayView& from, ir::DType to, int64_t first_row = 0);

}  // namespace moka::boundary
