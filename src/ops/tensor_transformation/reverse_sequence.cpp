// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Status check_lengths(const OpCall& call, const TensorView& lengths, int64_t size) {
  for (int64_t i = 0; i < lengths.count(); i++) {
    const int64_t n = load_i64(lengths, i);
    if (n < 0 || n > size)
      return fail(ErrorCode::data, "operation '", call.name(),
                  "' (reverse_sequence), parameter 'lengths': expected lengths from 0 to ", size, ", got ", n);
  }
  return {};
}

Result<std::vector<Type>> infer_reverse_sequence(const OpCall& call) {
  const Type& x = call.type("x");
  MOKA_TRY(expect_vector(call, "lengths"));
  if (!x.is_ranked()) return one(x);
  const int seq = MOKA_TRY(axis_of(call, "seq_axis", x.rank()));
  const int batch = MOKA_TRY(axis_of(call, "batch_axis", x.rank()));
  int64_t d = 0;
  if (!unify_dim(x.shape()[batch], length_of(call, "lengths"), d)) {
    return call.error("lengths", cat(x.shape()[batch], " entries, the size of axis ", batch),
                      cat(length_of(call, "lengths")));
  }
  if (const TensorView* lengths = call.value("lengths"); lengths != nullptr && x.shape()[seq] >= 0)
    MOKA_TRY(check_lengths(call, *lengths, x.shape()[seq]));
  return one(x);
}

Status reverse_sequence_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &x = call.in("x"), &lengths = call.in("lengths");
  const int rank = x.shape.rank();
  const int seq = MOKA_TRY(axis_of(call, "seq_axis", rank)), batch = MOKA_TRY(axis_of(call, "batch_axis", rank));
  const auto strides = x.shape.strides();
  const auto s = static_cast<size_t>(seq), b = static_cast<size_t>(batch);
  MOKA_TRY(check_lengths(call, lengths, x.shape[seq]));
  copy_all(out[0], x);
  if (x.count() == 0 || seq == batch) return {};
  for (int64_t i = 0; i < x.shape[batch]; i++) {
    const int64_t n = load_i64(lengths, i);
    if (n < 2) continue;
    StridedCopy copy;
    for (int k = 0; k < rank; k++) {
      const auto u = static_cast<size_t>(k);
      if (k == seq)
        copy.add(n, strides[u], -strides[u]);
      else if (k != batch)
        copy.add(x.shape[k], strides[u], strides[u]);
    }
    copy.run(out[0], i * strides[b], x, i * strides[b] + (n - 1) * strides[s]);
  }
  return {};
}

void reverse_sequence_gradient(Gradient& g) { g.set("x", g.again(g.dy())); }

}  // namespace

OpDef define_reverse_sequence() {
  return OpBuilder("reverse_sequence",
                   "Reverses the first lengths[i] elements along seq_axis of entry i of batch_axis.")
      .type_var("T", kPlain15)
      .in("x", "T")
      .in("lengths", kI32)
      .constant("seq_axis", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 0))
      .constant("batch_axis", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 0))
      .infer(infer_reverse_sequence)
      .reference(reverse_sequence_reference)
      .traits(Trait::moves_data_only)
      .at(Opset::ios17,
          [](OpVersion& v) {
            v.set_domain("T", kPlain17);
            retype(v, "lengths", "U", kSizes17);
          })
      .note("Lengths outside of 0 to the size of seq_axis are an error. Equal axes change nothing.",
            "coremltools' definition; tf.reverse_sequence")
      .gradient(reverse_sequence_gradient)
      .build();
}

}  // namespace moka::ops
