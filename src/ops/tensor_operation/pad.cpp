// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/sampling.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

struct Margins {
  int64_t before[kMaxRank] = {}, after[kMaxRank] = {};
};

/// The pairs (before, after) for the last axes of x.
Result<Margins> margins_of(const OpCall& call, const TensorView& pad, const Shape& x) {
  const int64_t n = pad.count();
  if (n % 2 != 0 || n / 2 > x.rank())
    return call.error("pad", cat("an even count of at most ", 2 * x.rank(), " entries"), cat(n));
  Margins m;
  const int first = x.rank() - static_cast<int>(n / 2);
  for (int64_t i = 0; i < n; i++) {
    const int axis = first + static_cast<int>(i / 2);
    const int64_t v = MOKA_TRY(dim_from_value(call, "pad", load_i64(pad, i)));
    (i % 2 == 0 ? m.before : m.after)[axis] = v;
  }
  return m;
}

Result<std::vector<Type>> infer_pad(const OpCall& call) {
  const Type& x = call.type("x");
  MOKA_TRY(expect_vector(call, "pad"));
  const std::string_view mode = MOKA_TRY(call.text("mode"));
  if (mode == "constant" && (call.value("constant_val") == nullptr || call.value("constant_val")->count() != 1)) {
    return call.error("constant_val", "a known scalar", "something else");
  }
  if (!x.is_ranked()) return one(x);
  Shape out = x.shape();
  const TensorView* pad = call.value("pad");
  if (pad == nullptr) {
    const int64_t n = length_of(call, "pad");
    if (n > 2 * x.rank() || (n >= 0 && n % 2 != 0))
      return call.error("pad", cat("an even count of at most ", 2 * x.rank(), " entries"), cat(n));
    for (int i = n < 0 ? 0 : x.rank() - static_cast<int>(n / 2); i < x.rank(); i++) out[i] = kAnyDim;
    return one(Type::tensor(x.dtype(), out));
  }
  const Margins m = MOKA_TRY(margins_of(call, *pad, x.shape()));
  for (int i = 0; i < out.rank(); i++) {
    const int64_t extra = MOKA_TRY(add_dims(m.before[i], m.after[i]));
    if (mode != "constant" && out[i] == 0 && extra > 0)
      return call.error("x", cat("elements to ", mode), cat(x.shape()));
    out[i] = MOKA_TRY(add_dims(out[i], extra));
  }
  return tensor_result(call, x.dtype(), out);
}

Status pad_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &x = call.in("x"), &y = out[0];
  const std::string_view mode = MOKA_TRY(call.text("mode"));
  const bool reflect = mode == "reflect";
  const Margins m = MOKA_TRY(margins_of(call, call.in("pad"), x.shape));
  const int rank = x.shape.rank();
  const auto from = x.shape.strides(), to = y.shape.strides();
  int64_t corner = 0;
  for (int i = 0; i < rank; i++) {
    if (x.shape[i] + m.before[i] + m.after[i] != y.shape[i]) {
      return fail(ErrorCode::data, "operation '", call.name(),
                  "' (pad): the padding does not lead to the planned shape ", y.shape);
    }
    corner += m.before[i] * to[static_cast<size_t>(i)];
  }
  if (y.count() == 0) return {};
  if (mode == "constant" || rank == 0) {
    if (x.count() != y.count()) fill_elements(y, 0, y.count(), *call.value("constant_val"));
    StridedCopy copy;
    copy.add(x.shape, to.data(), from.data());
    copy.run(y, corner, x, 0);
    return {};
  }
  auto source = [&](int axis, int64_t i) {
    const int64_t n = x.shape[axis];
    i -= m.before[axis];
    if (reflect) return mirrored(i, n);
    return std::clamp<int64_t>(i, 0, n - 1);
  };
  const int last = rank - 1;
  const int64_t width = y.shape[last], middle = x.shape[last], left = m.before[last];
  const int64_t rows = y.count() / width;
  for (int64_t r = 0; r < rows; r++) {
    int64_t rest = r, base = 0;
    for (int k = last - 1; k >= 0; k--) {
      base += source(k, rest % y.shape[k]) * from[static_cast<size_t>(k)];
      rest /= y.shape[k];
    }
    const int64_t at = r * width;
    for (int64_t i = 0; i < left; i++) copy_element(y, at + i, x, base + source(last, i));
    copy_elements(y, at + left, x, base, middle);
    for (int64_t i = left + middle; i < width; i++) copy_element(y, at + i, x, base + source(last, i));
  }
  return {};
}

void pad_gradient(Gradient& g) {
  const Ints pad = g.ints("pad");
  const int rank = g.x().rank(), first = rank - pad.size() / 2;
  const bool reflects = g.text("mode") == "reflect";
  if (g.text("mode") == "constant") {
    Ints begin, size;
    for (int i = 0; i < rank; i++) {
      begin.push_back(i < first ? 0 : pad[2 * (i - first)]);
      size.push_back(g.x().shape()[i]);
    }
    g.set("x", g.call("slice_by_size", {{"x", g.dy().value()}, {"begin", begin}, {"size", size}}));
    return;
  }
  Term dy = g.dy();
  for (int i = first; i < rank; i++) {
    const int64_t n = g.x().shape()[i], period = std::max<int64_t>(1, 2 * (n - 1)), before = pad[2 * (i - first)];
    Tensor from = g.take(Tensor::zeros(DType::int32, {dy.shape()[i]}));
    for (int64_t k = 0; k < from.count(); k++) {
      const int64_t at = ((k - before) % period + period) % period;
      store_i64(from.view(), k, reflects ? std::min(at, period - at) : std::clamp<int64_t>(k - before, 0, n - 1));
    }
    Shape shape = dy.shape();
    shape[i] = n;
    dy = g.call("scatter", {{"data", g.fill(shape, 0).value()},
                            {"indices", std::move(from)},
                            {"updates", dy.value()},
                            {"axis", i},
                            {"mode", "add"}});
  }
  g.set("x", dy);
}

}  // namespace

OpDef define_pad() {
  return OpBuilder("pad", "Extends the last axes on both sides with a constant, the repeated mirror image or the edge.")
      .type_var("T", kF16F32)
      .in("x", "T")
      .in("pad", kI32)
      .constant("mode", kString)
      .one_of({"constant", "reflect", "replicate"})
      .or_else(Tensor::text("constant"))
      .constant("constant_val", "T")
      .or_else(Tensor::scalar(DType::fp32, 0))
      .infer(infer_pad)
      .reference(pad_reference)
      .note("pad holds pairs for the last axes. All modes work on every axis.", "coremltools' definition")
      .note(
          "reflect leaves the edge out and mirrors again if the padding is larger than the axis. replicate "
          "repeats the edge.",
          "numpy.pad, modes reflect and edge; coremltools allows less")
      .gradient(pad_gradient)
      .build();
}

}  // namespace moka::ops
