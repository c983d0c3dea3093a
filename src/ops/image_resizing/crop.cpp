// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/gradients.h"
#include "ops/common/ranks.h"

namespace moka::ops {

namespace {

/// The numbers of elements to cut before and after. The parameter has two elements and any rank.
Result<Ints> cuts(const OpCall& call, std::string_view param) {
  const TensorView* v = call.value(param);
  if (v == nullptr) return call.error(param, "two known integers", "a value that is not known before running");
  if (!is_integer(v->dtype) || v->count() != 2) return call.error(param, "two integers", cat(v->shape));
  Ints c{load_i64(*v, 0), load_i64(*v, 1)};
  if (c[0] < 0 || c[1] < 0) return call.error(param, "0 or more", cat(c[0], " and ", c[1]));
  return c;
}

Result<std::vector<Type>> infer_crop(const OpCall& call) {
  const Ints height = MOKA_TRY(cuts(call, "crop_height")), width = MOKA_TRY(cuts(call, "crop_width"));
  if (any_unranked(call, {"x"})) return one(Type::unranked(call.dtype("x")));
  Shape s = call.shape("x");
  if (s.rank() < 3) return call.error("x", "rank 3 or more", cat(s));
  const Ints* cut[2] = {&height, &width};
  for (int i = 0; i < 2; ++i) {
    int64_t& d = s[s.rank() - 2 + i];
    const int64_t gone = (*cut[i])[0] + (*cut[i])[1];
    if (gone == 0) continue;
    if (d >= 0 && d < gone) {
      return call.error(i == 0 ? "crop_height" : "crop_width",
                        cat("at most the ", d, " elements of x (", call.shape("x"), ")"), cat(gone));
    }
    d = d < 0 ? kAnyDim : d - gone;
  }
  return one(Type::tensor(call.dtype("x"), s));
}

Status crop_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  const TensorView& x = call.in("x");
  const TensorView& y = out[0];
  const int64_t top = MOKA_TRY(cuts(call, "crop_height"))[0], left = MOKA_TRY(cuts(call, "crop_width"))[0];
  const int r = x.shape.rank();
  const int64_t planes = x.shape.count(0, r - 2), ih = x.shape[r - 2], iw = x.shape[r - 1], oh = y.shape[r - 2],
                ow = y.shape[r - 1];
  for (int64_t p = 0; p < planes; ++p) {
    for (int64_t i = 0; i < oh; ++i) copy_elements(y, (p * oh + i) * ow, x, (p * ih + top + i) * iw + left, ow);
  }
  return {};
}

void crop_gradient(Gradient& g) { resize_gradient(g); }

}  // namespace

OpDef define_crop() {
  return OpBuilder("crop",
                   "Cuts rows off the top and bottom and columns off the left and right of the last two dimensions.")
      .type_var("T", kF16F32)
      .in("x", "T")
      .constant("crop_height", kI32)
      .constant("crop_width", kI32)
      .infer(infer_crop)
      .reference(crop_reference)
      .traits(Trait::moves_data_only)
      .note("All elements may be cut.", "coremltools' definition")
      .gradient(crop_gradient)
      .build();
}

}  // namespace moka::ops
