// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "ops/common/random.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_random_categorical(const OpCall& call) {
  const std::string_view mode = MOKA_TRY(call.text("mode"));
  if (mode != "logits" && mode != "probs") return call.error("mode", "logits or probs", mode);
  const int64_t size = MOKA_TRY(call.integer("size"));
  if (size < 1) return call.error("size", "1 or more", cat(size));
  MOKA_TRY(call.integer("seed"));
  const Type& x = call.type("x");
  if (!x.is_ranked()) return one(x);
  const int rank = x.rank();
  if (rank == 0) return call.error("x", "rank 1 or more", "a scalar");
  if (x.shape()[rank - 1] == 0) return call.error("x", "at least one class", cat("shape ", x.shape()));
  Shape out = x.shape();
  out[rank - 1] = size;
  if (out.is_concrete()) MOKA_TRY(out.checked_count());
  return one(Type::tensor(x.dtype(), out));
}

Status random_categorical_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const bool logits = MOKA_TRY(call.text("mode")) == "logits";
  const int64_t size = MOKA_TRY(call.integer("size"));
  Draw draw = MOKA_TRY(Draw::start(call));
  const int rank = x.shape.rank();
  const int64_t rows = x.shape.count(0, rank - 1), classes = x.shape[rank - 1];
  for (int64_t r = 0; r < rows; r++) {
    const int64_t first = r * classes;
    double top = -std::numeric_limits<double>::infinity();
    for (int64_t c = 0; logits && c < classes; c++) top = std::fmax(top, load_f64(x, first + c));
    auto weight = [&](int64_t c) {
      const double v = load_f64(x, first + c);
      return logits ? std::exp(v - top) : v < 0 ? 0 : v;
    };
    double total = 0;
    for (int64_t c = 0; c < classes; c++) total += weight(c);
    if (!(total > 0) || std::isinf(total)) {
      return fail(ErrorCode::data, "operation '", call.name(), "' (random_categorical): row ", r,
                  " of x is not a distribution: its weights add up to ", total);
    }
    for (int64_t s = 0; s < size; s++) {
      double rest = draw.uniform() * total;
      int64_t chosen = 0;
      for (int64_t c = 0; c < classes; c++) {
        const double w = weight(c);
        if (w > 0) chosen = c;
        if (rest < w) break;
        rest -= w;
      }
      store_i64(out[0], r * size + s, chosen);
    }
  }
  return {};
}

}  // namespace

OpDef define_random_categorical() {
  OpBuilder b("random_categorical",
              "Random class numbers, `size` for each row of logits or probabilities along the last axis. A seed of 0 "
              "or more always gives the same values.");
  b.type_var("T", kF16F32)
      .in("x", "T")
      .constant("mode", kString)
      .one_of({"logits", "probs"})
      .or_else(Tensor::text("logits"))
      .constant("size", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 1));
  return finish_random(b, infer_random_categorical, random_categorical_reference)
      .note("Probabilities need not add up to 1. Negative ones count as 0. A row that adds up to 0 is an error.",
            "torch.multinomial normalizes and refuses such rows")
      .note("The result has the type of x and holds class numbers.", "coremltools' type inference")
      .gradient(no_gradient)
      .build();
}

}  // namespace moka::ops
