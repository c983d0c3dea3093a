// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<int64_t> scalar_at(const OpCall& call, std::string_view param, size_t i) {
  const Arg& a = call.args(param)[i];
  if (!a.type->is_tensor() || a.value == nullptr || a.value->dtype == DType::string || a.value->count() != 1) {
    return call.error(param, "known scalars", cat("a value of type ", *a.type));
  }
  return load_i64(*a.value, 0);
}

/// Resolves a bound of a Python slice of `n` entries.
int64_t clamp_bound(int64_t v, int64_t n) {
  if (v < 0) v += n;
  return v < 0 ? 0 : v > n ? n : v;
}

Result<std::vector<Type>> infer_reshape_like(const OpCall& call) {
  const Type& x = call.type("x");
  const auto refs = call.args("ref_tensors");
  for (std::string_view p : {"begins", "ends", "end_masks"}) {
    if (call.args(p).size() != refs.size()) {
      return call.error(p, cat(refs.size(), " entries, one for each of ref_tensors"), cat(call.args(p).size()));
    }
  }
  Shape out;
  for (size_t i = 0; i < refs.size(); i++) {
    if (!refs[i].type->is_tensor()) return call.error("ref_tensors", "tensors", cat("a value of type ", *refs[i].type));
    if (!refs[i].type->is_ranked()) return one(Type::unranked(x.dtype()));
    const Shape& s = refs[i].type->shape();
    const int64_t begin = clamp_bound(MOKA_TRY(scalar_at(call, "begins", i)), s.rank());
    const int64_t end = MOKA_TRY(scalar_at(call, "end_masks", i)) != 0
                            ? s.rank()
                            : clamp_bound(MOKA_TRY(scalar_at(call, "ends", i)), s.rank());
    for (int64_t k = begin; k < end; k++) {
      if (out.rank() == kMaxRank) return call.error("ref_tensors", cat("a result of at most rank ", kMaxRank), "more");
      out.push_back(s[static_cast<int>(k)]);
    }
  }
  if (x.is_ranked() && x.shape().is_concrete() && out.is_concrete()) {
    const int64_t want = MOKA_TRY(out.checked_count()), have = MOKA_TRY(x.shape().checked_count());
    if (want != have)
      return call.error("ref_tensors", cat("dimensions that make ", have, " elements, as x has"), cat(out));
  }
  return tensor_result(call, x.dtype(), out);
}

Status reshape_like_reference(const OpCall& call, std::span<const TensorView> out) {
  copy_all(out[0], call.in("x"));
  return {};
}

void reshape_like_gradient(Gradient& g) { g.set("x", g.reshape(g.dy(), g.x().shape())); }

}  // namespace

OpDef define_reshape_like() {
  return OpBuilder("reshape_like", "Gives x a shape put together from ranges of the dimensions of other tensors.",
                   Opset::ios16)
      .type_var("T", kPlain15)
      .in("x", "T")
      .variadic_any("ref_tensors")
      .variadic_any("begins")
      .variadic_any("ends")
      .variadic_any("end_masks")
      .infer(infer_reshape_like)
      .reference(reshape_like_reference)
      .traits(Trait::alias | Trait::moves_data_only)
      .at(Opset::ios17, [](OpVersion& v) { v.set_domain("T", kPlain17); })
      .note("begins and ends work like bounds of Python's slices.", "coremltools' definition")
      .gradient(reshape_like_gradient)
      .build();
}

}  // namespace moka::ops
