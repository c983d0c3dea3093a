// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

std::vector<int64_t> from(int64_t axis, int rank) {
  std::vector<int64_t> out;
  for (int64_t i = axis; i < rank; ++i) out.push_back(i);
  return out;
}

/// A vector with one number per channel, shaped to broadcast over x.
Value* per_channel(const Node& n, Value* v, const Value* x) {
  std::vector<int64_t> dims(static_cast<size_t>(n.rank(x)), 1);
  if (dims.size() < 2) return v;
  dims[1] = -1;
  return n.reshape(v, dims);
}

void batch_normalization(Node& n) {
  Value* x = n.in(0);
  const bool training = n.integer_or("training_mode", 0) != 0 && n.opset >= 14;
  const double epsilon = n.number_or("epsilon", 1e-5f);
  bool constants = !training;
  for (size_t i = 1; i < 5; ++i) constants &= n.constant(i) != nullptr;
  const int r = n.rank(x);
  if (constants && r >= 3 && r <= 5)
    return n.set(0, n.op("batch_norm", {{"x", x},
                                        {"mean", n.in(3)},
                                        {"variance", n.in(4)},
                                        {"gamma", n.in(1)},
                                        {"beta", n.in(2)},
                                        n.arg("epsilon", epsilon, x)}));
  Value *mean = n.in(3), *variance = n.in(4);
  if (training) {
    std::vector<int64_t> axes{0};
    for (int64_t i = 2; i < r; ++i) axes.push_back(i);
    Value* current = n.reduce("reduce_mean", x, axes, false);
    Value* centered = n.sub(x, per_channel(n, current, x));
    Value* spread = n.reduce("reduce_mean", n.mul(centered, centered), axes, false);
    const double momentum = n.number_or("momentum", 0.9f);
    if (n.wants(1)) n.set(1, n.add(n.mul(mean, momentum), n.mul(current, 1 - momentum)), n.type(3));
    if (n.wants(2)) n.set(2, n.add(n.mul(variance, momentum), n.mul(spread, 1 - momentum)), n.type(4));
    mean = current, variance = spread;
  }
  const DType own = x->type.dtype();
  Value* scale = n.div(n.cast(n.in(1), mean->type.dtype()), n.unary("sqrt", n.add(variance, epsilon)));
  Value* out = n.mul(n.sub(n.cast(x, mean->type.dtype()), per_channel(n, mean, x)), per_channel(n, scale, x));
  n.set(0, n.cast(n.add(out, per_channel(n, n.cast(n.in(2), mean->type.dtype()), x)), own));
}

void instance_normalization(Node& n) {
  Value* x = n.in(0);
  const double epsilon = n.number_or("epsilon", 1e-5f);
  const int r = n.rank(x);
  if (n.constant(1) != nullptr && n.constant(2) != nullptr && (r == 3 || r == 4))
    return n.set(
        0, n.op("instance_norm", {{"x", x}, {"gamma", n.in(1)}, {"beta", n.in(2)}, n.arg("epsilon", epsilon, x)}));
  const std::vector<int64_t> axes = from(2, r);
  Value* centered = n.sub(x, n.reduce("reduce_mean", x, axes, true));
  Value* variance = n.reduce("reduce_mean", n.mul(centered, centered), axes, true);
  Value* out = n.div(centered, n.unary("sqrt", n.add(variance, epsilon)));
  n.set(0, n.add(n.mul(out, per_channel(n, n.in(1), x)), per_channel(n, n.in(2), x)));
}

/// Statistics in float32 unless stash_type says otherwise.
DType stash(const Node& n, const Value* x) {
  const bool half = x->type.dtype() == DType::fp16 && n.integer_or("stash_type", 1) == 1;
  return half ? DType::fp32 : x->type.dtype();
}

void layer_normalization(Node& n) {
  Value* x = n.in(0);
  const int r = n.rank(x);
  const double epsilon = n.number_or("epsilon", 1e-5f);
  const std::vector<int64_t> axes = from(n.axis(n.integer_or("axis", -1), x), r);
  Shape tail;
  for (const int64_t a : axes) tail.push_back(x->type.shape()[static_cast<int>(a)]);
  const auto fits = [&](size_t i) { return !n.has(i) || (n.constant(i) != nullptr && n.constant(i)->shape() == tail); };
  if (!n.wants(1) && !n.wants(2) && fits(1) && fits(2)) {
    std::vector<NamedArg> args{{"x", x}};
    args.emplace_back("axes", Tensor::i32(axes));
    if (n.has(1)) args.emplace_back("gamma", n.in(1));
    if (n.has(2)) args.emplace_back("beta", n.in(2));
    args.push_back(n.arg("epsilon", epsilon, x));
    return n.set(0, n.op("layer_norm", std::move(args)));
  }
  const DType type = stash(n, x);
  Value* wide = n.cast(x, type);
  Value* mean = n.reduce("reduce_mean", wide, axes, true);
  Value* centered = n.sub(wide, mean);
  Value* variance = n.reduce("reduce_mean", n.mul(centered, centered), axes, true);
  Value* inverse = n.div(n.scalar(1, wide), n.unary("sqrt", n.add(variance, epsilon)));
  Value* out = n.cast(n.mul(centered, inverse), x->type.dtype());
  if (n.has(1)) out = n.mul(out, n.in(1));
  if (n.has(2)) out = n.add(out, n.in(2));
  n.set(0, out);
  n.set(1, mean, DataType::float32);
  n.set(2, inverse, DataType::float32);
}

Value* rms(const Node& n, Value* x, const std::vector<int64_t>& axes, double epsilon) {
  Value* wide = n.cast(x, stash(n, x));
  Value* mean = n.reduce("reduce_mean", n.mul(wide, wide), axes, true);
  return n.cast(n.div(wide, n.unary("sqrt", n.add(mean, epsilon))), x->type.dtype());
}

void rms_normalization(Node& n) {
  Value* x = n.in(0);
  const auto axes = from(n.axis(n.integer_or("axis", -1), x), n.rank(x));
  n.set(0, n.mul(rms(n, x, axes, n.number_or("epsilon", 1e-5f)), n.in(1)));
}

/// com.microsoft: x + skip (+ bias), normalized over the last axis. Outputs: the result, mean, inverse deviation, sum.
void skip_normalization(Node& n, bool simple) {
  Value* x = n.add(n.in(0), n.in(1));
  const size_t bias = simple ? 3 : 4;
  if (n.has(bias)) x = n.add(x, n.in(bias));
  const double epsilon = n.number_or("epsilon", 1e-12f);
  const std::vector<int64_t> axes{n.rank(x) - 1};
  Value* out = nullptr;
  if (simple) {
    out = n.mul(rms(n, x, axes, epsilon), n.in(2));
  } else {
    Value* centered = n.sub(x, n.reduce("reduce_mean", x, axes, true));
    Value* variance = n.reduce("reduce_mean", n.mul(centered, centered), axes, true);
    out = n.mul(n.div(centered, n.unary("sqrt", n.add(variance, epsilon))), n.in(2));
    if (n.has(3)) out = n.add(out, n.in(3));
  }
  n.set(0, out);
  n.set(3, x);
}

void group_normalization(Node& n) {
  Value* x = n.in(0);
  const Shape& s = n.known_shape(x, "GroupNormalization");
  const int64_t groups = n.integer_or("num_groups", 1);
  if (groups < 1 || s.rank() < 2 || s[1] % groups != 0) n.malformed(cat("num_groups of ", groups, " for ", x->type));
  Value* wide = n.cast(x, stash(n, x));
  Value* split = n.reshape(wide, {s[0], groups, s.count(1, s.rank()) / groups});
  Value* centered = n.sub(split, n.reduce("reduce_mean", split, {2}, true));
  Value* variance = n.reduce("reduce_mean", n.mul(centered, centered), {2}, true);
  Value* out = n.div(centered, n.unary("sqrt", n.add(variance, n.number_or("epsilon", 1e-5f))));
  out = n.cast(n.reshape(out, s.to_vector()), x->type.dtype());
  const auto affine = [&](size_t i) {
    Value* v = n.in(i);
    if (n.opset >= 21 || v->type.shape()[0] == s[1]) return per_channel(n, v, x);
    // One number for each group, before opset 21.
    Value* wide_v = n.op("tile", {{"x", n.reshape(v, {groups, 1})}, {"reps", Tensor::i32({1, s[1] / groups})}});
    return per_channel(n, n.reshape(wide_v, {s[1]}), x);
  };
  n.set(0, n.add(n.mul(out, affine(1)), affine(2)));
}

void lp_normalization(Node& n) {
  Value* x = n.in(0);
  const int64_t axis = n.axis(n.integer_or("axis", -1), x);
  const bool one = n.integer_or("p", 2) == 1;
  Value* norm = n.reduce(one ? "reduce_l1_norm" : "reduce_l2_norm", x, {axis}, true);
  Value* zero = n.binary("equal", norm, n.scalar(0, x));
  n.set(0, n.div(x, n.add(norm, n.cast(zero, x->type.dtype()))));
}

void mean_variance_normalization(Node& n) {
  Value* x = n.in(0);
  const std::vector<int64_t> axes = n.integers_or("axes", {0, 2, 3});
  Value* centered = n.sub(x, n.reduce("reduce_mean", x, axes, true));
  Value* variance = n.reduce("reduce_mean", n.mul(centered, centered), axes, true);
  n.set(0, n.div(centered, n.add(n.unary("sqrt", variance), 1e-9)));
}

void lrn(Node& n) {
  Value* x = n.in(0);
  n.set(0, n.op("local_response_norm", {{"x", x},
                                        {"size", static_cast<int>(n.integer_or("size", 1))},
                                        n.arg("alpha", n.number_or("alpha", 1e-4f), x),
                                        n.arg("beta", n.number_or("beta", 0.75f), x),
                                        n.arg("k", n.number_or("bias", 1), x)}));
}

/// Without training, Dropout is the identity, and its mask is all true.
void dropout(Node& n) {
  Value* x = n.in(0);
  const bool is_training = n.opset >= 12 && n.has(2);
  if (is_training) {
    const Tensor* flag = n.constant(2);
    const bool on = flag == nullptr || ir::load_i64(flag->view(), 0) != 0;
    const double ratio = n.has(1) ? n.number(1, "ratio") : 0.5;
    if (on && ratio != 0) n.unsupported("Dropout in training, whose result is random");
  }
  n.set(0, n.unary("identity", x));
  if (!n.wants(1)) return;
  const bool flags = n.opset >= 10;
  Value* ones =
      n.op("fill", {{"shape", n.shape_of(x)}, {"value", Tensor::scalar(flags ? DType::int32 : x->type.dtype(), 1)}});
  n.set(1, flags ? n.cast(ones, DType::boolean) : ones, flags ? DataType::boolean : n.type(0));
}

constexpr OperatorImport kNormalizationOperators[] = {
    {"BatchNormalization", batch_normalization},
    {"InstanceNormalization", instance_normalization},
    {"LayerNormalization", layer_normalization},
    {"RMSNormalization", rms_normalization},
    {"SimplifiedLayerNormalization", rms_normalization},
    {"SkipLayerNormalization", [](Node& n) { skip_normalization(n, false); }, "com.microsoft"},
    {"SkipSimplifiedLayerNormalization", [](Node& n) { skip_normalization(n, true); }, "com.microsoft"},
    {"GroupNormalization", group_normalization},
    {"LpNormalization", lp_normalization},
    {"MeanVarianceNormalization", mean_variance_normalization},
    {"LRN", lrn},
    {"Dropout", dropout},
};

}  // namespace

std::span<const OperatorImport> operators_normalization() { return kNormalizationOperators; }

}  // namespace moka::import::onnx
