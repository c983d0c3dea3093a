// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

/// The dimension at `hole` that makes `out` hold as many elements as `in`.
Result<int64_t> fill_hole(const OpCall& call, const Shape& in, const Shape& out, int hole) {
  int64_t in_known = 1, out_known = 1;
  Ints in_unknown, out_unknown;
  for (int64_t d : in) {
    if (d < 0)
      in_unknown.push_back(d);
    else
      in_known = MOKA_TRY(multiply_dims(in_known, d));
  }
  for (int i = 0; i < out.rank(); i++) {
    if (i == hole) continue;
    if (out[i] < 0)
      out_unknown.push_back(out[i]);
    else
      out_known = MOKA_TRY(multiply_dims(out_known, out[i]));
  }
  // Equal symbols on both sides cancel.
  Ints left;
  for (int64_t s : in_unknown) {
    bool cancelled = false;
    for (int64_t& o : std::span(&out_unknown[0], static_cast<size_t>(out_unknown.size()))) {
      if (o == s && s < kAnyDim) {
        o = 0;
        cancelled = true;
        break;
      }
    }
    if (!cancelled) left.push_back(s);
  }
  for (int64_t o : out_unknown)
    if (o != 0) return kAnyDim;
  if (left.size() == 1 && in_known == out_known) return left[0];
  if (!left.empty()) return kAnyDim;
  if (out_known == 0) {
    if (in_known != 0) return call.error("shape", cat("a shape of ", in_known, " elements"), cat(out));
    return int64_t{0};
  }
  if (in_known % out_known != 0) {
    return call.error("shape", cat("a divisor of ", in_known, " elements beside -1"), cat(out_known));
  }
  return in_known / out_known;
}

/// Replaces zeros in the shape. With `zeros_from_right` a 0 becomes the dimension of x at the same distance from the
/// end, or 1 if there is none. Otherwise it becomes the dimension at the same index, and the ranks must be equal.
Result<std::vector<Type>> infer_reshape(const OpCall& call, bool zeros_from_right) {
  const Type& x = call.type("x");
  MOKA_TRY(expect_vector(call, "shape"));
  const TensorView* wanted = call.value("shape");
  if (wanted == nullptr) {
    const int64_t rank = length_of(call, "shape");
    if (rank < 0) return one(Type::unranked(x.dtype()));
    if (rank > kMaxRank) return call.error("shape", cat("at most ", kMaxRank, " dimensions"), cat(rank));
    Shape out;
    for (int64_t i = 0; i < rank; i++) out.push_back(kAnyDim);
    if (rank == 0 && x.is_ranked() && x.shape().is_concrete()) {
      const int64_t n = MOKA_TRY(x.shape().checked_count());
      if (n != 1) return call.error("shape", cat("a shape of ", n, " elements, as x has"), cat(out));
    }
    return tensor_result(call, x.dtype(), out);
  }
  const int64_t rank = wanted->count();
  if (rank > kMaxRank) return call.error("shape", cat("at most ", kMaxRank, " dimensions"), cat(rank));
  Shape out;
  int hole = -1;
  for (int i = 0; i < rank; i++) {
    const int64_t d = load_i64(*wanted, i);
    if (d < -1) return call.error("shape", "sizes, 0 or -1", cat(d));
    if (d == -1) {
      if (hole >= 0) return call.error("shape", "-1 at most once", "more");
      hole = i;
    }
    if (d == 0 && !x.is_ranked()) {
      out.push_back(kAnyDim);
    } else if (d == 0 && zeros_from_right) {
      const int64_t at = x.rank() - (rank - i);
      out.push_back(at >= 0 ? x.shape()[static_cast<int>(at)] : 1);
    } else if (d == 0) {
      if (x.rank() != rank)
        return call.error("shape", cat("as many entries as x has dimensions where 0 is used, ", x.rank()), cat(rank));
      out.push_back(x.shape()[i]);
    } else {
      out.push_back(d);
    }
  }
  if (hole >= 0) {
    out[hole] = x.is_ranked() ? MOKA_TRY(fill_hole(call, x.shape(), out, hole)) : kAnyDim;
  } else if (x.is_ranked() && x.shape().is_concrete() && out.is_concrete()) {
    const int64_t want = MOKA_TRY(out.checked_count()), have = MOKA_TRY(x.shape().checked_count());
    if (want != have) return call.error("shape", cat("a shape of ", have, " elements, as x has"), cat(out));
  }
  return tensor_result(call, x.dtype(), out);
}

Status reshape_reference(const OpCall& call, std::span<const TensorView> out) {
  copy_all(out[0], call.in("x"));
  return {};
}

void reshape_gradient(Gradient& g) { g.set("x", g.reshape(g.dy(), g.x().shape())); }

}  // namespace

OpDef define_reshape() {
  return OpBuilder("reshape", "Gives the elements another shape. -1 stands for what remains, 0 for a dimension of x.")
      .type_var("T", kPlain15)
      .in("x", "T")
      .in("shape", kI32)
      .infer([](const OpCall& c) { return infer_reshape(c, false); })
      .reference(reshape_reference)
      .traits(Trait::alias | Trait::moves_data_only)
      .at(Opset::ios17,
          [](OpVersion& v) {
            v.set_domain("T", kPlain17);
            retype(v, "shape", "U", kSizes17);
            v.infer = [](const OpCall& c) { return infer_reshape(c, true); };
          })
      .note(
          "0 keeps the dimension at the same index and needs equal ranks. Since iOS17 it keeps the one at the same "
          "distance from "
          "the end.",
          "coremltools' definition")
      .note("-1 stands for what remains and may occur once. Next to an empty dimension it is 0.",
            "NumPy refuses the latter; Core ML needs a size")
      .gradient(reshape_gradient)
      .build();
}

}  // namespace moka::ops
