// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_band_part(const OpCall& call) {
  const Type& x = call.type("x");
  if (x.is_ranked() && x.rank() < 2) return call.error("x", "rank 2 or more", cat("rank ", x.rank()));
  MOKA_TRY(call.integer("lower"));
  MOKA_TRY(call.integer("upper"));
  return one(x);
}

Status band_part_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const int64_t lower = MOKA_TRY(call.integer("lower")), upper = MOKA_TRY(call.integer("upper"));
  const int rank = x.shape.rank();
  const int64_t rows = x.shape[rank - 2], columns = x.shape[rank - 1], all_rows = x.shape.count(0, rank - 1);
  if (columns == 0) return {};
  for (int64_t r = 0; r < all_rows; r++) {
    const int64_t m = r % rows, at = r * columns;
    const int64_t first = lower < 0 ? 0 : std::clamp<int64_t>(m - lower, 0, columns);
    const int64_t last = upper < 0 ? columns : std::clamp<int64_t>(m + upper + 1, first, columns);
    zero_elements(out[0], at, first);
    copy_elements(out[0], at + first, x, at + first, last - first);
    zero_elements(out[0], at + last, columns - last);
  }
  return {};
}

void band_part_gradient(Gradient& g) { g.set("x", g.again(g.dy())); }

}  // namespace

OpDef define_band_part() {
  return OpBuilder("band_part", "Keeps a band around the diagonal of each innermost matrix and sets the rest to zero.")
      .type_var("T", kPlain15)
      .in("x", "T")
      .constant("lower", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, -1))
      .constant("upper", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, -1))
      .infer(infer_band_part)
      .reference(band_part_reference)
      .note("Outside of the band even NaN and infinities become 0.", "coremltools' definition; tf.linalg.band_part")
      .gradient(band_part_gradient)
      .build();
}

}  // namespace moka::ops
