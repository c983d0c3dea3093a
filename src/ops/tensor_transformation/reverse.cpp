// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<unsigned> chosen_axes(const OpCall& call, int rank) {
  if (!call.has("axes")) return ~0u;
  unsigned set = 0;
  const Ints axes = MOKA_TRY(axes_of(call, "axes", rank));
  for (int64_t a : axes) set |= 1u << a;
  return set;
}

Result<std::vector<Type>> infer_reverse(const OpCall& call) {
  const Type& x = call.type("x");
  if (x.is_ranked()) MOKA_TRY(chosen_axes(call, x.rank()));
  return one(x);
}

Status reverse_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const unsigned set = MOKA_TRY(chosen_axes(call, x.shape.rank()));
  const auto strides = x.shape.strides();
  StridedCopy copy;
  int64_t from = 0;
  for (int i = 0; i < x.shape.rank(); i++) {
    const int64_t step = strides[static_cast<size_t>(i)];
    const bool flip = (set >> i) & 1;
    if (flip) from += (x.shape[i] - 1) * step;
    copy.add(x.shape[i], step, flip ? -step : step);
  }
  copy.run(out[0], 0, x, from);
  return {};
}

void reverse_gradient(Gradient& g) { g.set("x", g.again(g.dy())); }

}  // namespace

OpDef define_reverse() {
  return OpBuilder("reverse", "Reverses the order of the elements along the given axes, or along all.")
      .type_var("T", kPlain15)
      .in("x", "T")
      .constant("axes", kI32)
      .optional()
      .infer(infer_reverse)
      .reference(reverse_reference)
      .traits(Trait::moves_data_only)
      .at(Opset::ios17, [](OpVersion& v) { v.set_domain("T", kPlain17); })
      .note("Without axes, all axes are reversed.", "coremltools' definition")
      .gradient(reverse_gradient)
      .build();
}

}  // namespace moka::ops
