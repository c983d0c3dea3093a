// SPDX-License-Identifier: Apache-2.0
#include "ops/common/indexing.h"

#include <cmath>

#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

template <class T>
T apply(Combine rule, T a, T b) {
  switch (rule) {
    case Combine::update: return b;
    case Combine::add: return a + b;
    case Combine::sub: return a - b;
    case Combine::mul: return a * b;
    case Combine::div: return a / b;
    case Combine::max: return b > a || std::isnan(b) ? b : a;
    case Combine::min: return b < a || std::isnan(b) ? b : a;
  }
  return b;
}

int64_t apply_int(Combine rule, int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (rule) {
    case Combine::update: return b;
    case Combine::add: return static_cast<int64_t>(ua + ub);
    case Combine::sub: return static_cast<int64_t>(ua - ub);
    case Combine::mul: return static_cast<int64_t>(ua * ub);
    case Combine::div: return b == 0 ? 0 : b == -1 ? static_cast<int64_t>(-ua) : a / b;
    case Combine::max: return b > a ? b : a;
    case Combine::min: return b < a ? b : a;
  }
  return b;
}

}  // namespace

Result<Indexer> Indexer::of(const OpCall& call) {
  Indexer i;
  i.wraps = call.version().since < Opset::ios17;
  if (call.version().param_index("validate_indices") >= 0) i.strict = MOKA_TRY(call.flag("validate_indices"));
  return i;
}

Status Indexer::check(const OpCall& call, const TensorView& indices, const Shape& s, int axis, int64_t depth) const {
  if (!strict || depth <= 0) return {};
  const int64_t n = indices.count();
  for (int64_t i = 0; i < n; i++) {
    const int64_t v = load_i64(indices, i), size = s[axis + static_cast<int>(i % depth)];
    if (size >= 0 && (v < 0 || v >= size)) {
      return fail(ErrorCode::data, "operation '", call.name(), "' (", call.version().def->name,
                  "), parameter 'indices': expected indices from 0 to ", size - 1, ", got ", v);
    }
  }
  return {};
}

Result<Combine> combine_of(const OpCall& call) {
  const std::string_view mode = MOKA_TRY(call.text("mode"));
  if (mode == "update") return Combine::update;
  if (mode == "add") return Combine::add;
  if (mode == "sub") return Combine::sub;
  if (mode == "mul") return Combine::mul;
  if (mode == "div") return Combine::div;
  if (mode == "max") return Combine::max;
  if (mode == "min") return Combine::min;
  return call.error("mode", "update, add, sub, mul, div, max or min", mode);
}

void combine_elements(Combine rule, const TensorView& dst, int64_t to, const TensorView& src, int64_t from, int64_t n) {
  if (rule == Combine::update) return copy_elements(dst, to, src, from, n);
  if (dst.dtype == DType::fp32) {
    float* d = dst.as<float>() + to;
    const float* s = src.as<float>() + from;
    for (int64_t i = 0; i < n; i++) d[i] = apply(rule, d[i], s[i]);
  } else if (is_float(dst.dtype)) {
    for (int64_t i = 0; i < n; i++) store_f64(dst, to + i, apply(rule, load_f64(dst, to + i), load_f64(src, from + i)));
  } else {
    for (int64_t i = 0; i < n; i++)
      store_i64(dst, to + i, apply_int(rule, load_i64(dst, to + i), load_i64(src, from + i)));
  }
}

namespace {

void add_axis(OpBuilder& b) { b.constant("axis", kI32).or_else(Tensor::scalar_i64(DType::int32, 0)); }
void add_validation(OpVersion& v) { add_constant(v, "validate_indices", kBool, Tensor::boolean(false)); }

}  // namespace

OpBuilder gather_builder(std::string name, std::string doc, bool has_axis, bool has_batches, InferFn infer,
                         ReferenceFn reference) {
  OpBuilder b(std::move(name), std::move(doc));
  b.type_var("T", kNumbers15).in("x", "T").in("indices", kI32);
  if (has_axis) add_axis(b);
  b.infer(std::move(infer))
      .reference(std::move(reference))
      .traits(Trait::moves_data_only)
      .at(Opset::ios16,
          [=](OpVersion& v) {
            retype(v, "indices", "I", kIndices16);
            if (has_batches) add_constant(v, "batch_dims", kI32, Tensor::scalar_i64(DType::int32, 0));
          })
      .at(Opset::ios17,
          [](OpVersion& v) {
            v.set_domain("T", kNumbers17);
            v.set_domain("I", kIndices17);
            add_validation(v);
          })
      .note(kGatherNote.text, kGatherNote.evidence)
      .note(kValidateNote.text, kValidateNote.evidence);
  return b;
}

OpDef scatter_op(std::string name, std::string doc, bool has_axis, InferFn infer, ReferenceFn reference,
                 GradientFn gradient) {
  OpBuilder b(std::move(name), std::move(doc));
  b.type_var("T", kNumbers15).in("data", "T").in("indices", kI32).in("updates", "T");
  if (has_axis) add_axis(b);
  b.gradient(std::move(gradient));
  return b.constant("mode", kString)
      .one_of({"add", "div", "max", "min", "mul", "sub", "update"})
      .or_else(Tensor::text("add"))
      .infer(std::move(infer))
      .reference(std::move(reference))
      .at(Opset::ios17, add_validation)
      .note(kScatterNote.text, kScatterNote.evidence)
      .note(kScatterModeNote.text, kScatterModeNote.evidence)
      .note(kValidateNote.text, kValidateNote.evidence)
      .note("mode is add by default, as coremltools registers it, though its text says update.",
            "coremltools' default_inputs")
      .build();
}

Result<int> batch_dims_of(const OpCall& call) {
  if (call.version().param_index("batch_dims") < 0) return 0;
  const int64_t n = MOKA_TRY(call.integer("batch_dims"));
  if (n < 0 || n > kMaxRank) return call.error("batch_dims", cat("0 to ", kMaxRank), cat(n));
  return static_cast<int>(n);
}

Status unify_batches(const OpCall& call, int batch, Shape& out) {
  const Shape &x = call.shape("x"), &indices = call.shape("indices");
  for (int i = 0; i < batch; i++)
    if (!unify_dim(x[i], indices[i], out[i]))
      return call.error("indices", cat("batch dimension ", i, " of size ", x[i]), cat(indices));
  return {};
}

Status expect_gatherable(const OpCall& call, const Shape& out, int first, int end) {
  MOKA_TRY(expect_countable(call, out));
  if (!out.is_concrete() || out.count() == 0) return {};
  const Shape& x = call.shape("x");
  for (int i = first; i < end; i++)
    if (x[i] == 0) return call.error("x", cat("elements along axis ", i), cat(x));
  return {};
}

Result<ScatterCall> begin_scatter(const OpCall& call, const TensorView& out, int axis, int64_t depth) {
  const Combine rule = MOKA_TRY(combine_of(call));
  const Indexer indexer = MOKA_TRY(Indexer::of(call));
  const ScatterCall s{call.in("data"), call.in("indices"), call.in("updates"), rule, indexer};
  MOKA_TRY(indexer.check(call, s.indices, s.data.shape, axis, depth));
  copy_all(out, s.data);
  return s;
}

}  // namespace moka::ops
