// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// [batch, steps, heads * size] as [batch, heads, steps, size].
Value* split_heads(const Node& n, Value* x, int64_t heads) {
  const Shape s = n.known_shape(x, "attention");
  if (heads < 1 || s[2] % heads != 0) n.malformed(cat(heads, " heads for an input of type ", x->type));
  return n.transpose(n.reshape(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}

Value* join_heads(const Node& n, Value* x) {
  const Shape s = n.known_shape(x, "attention");
  return n.reshape(n.transpose(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

/// Each head `count` times in a row.
Value* repeated(const Node& n, Value* x, int64_t count) {
  if (count == 1) return x;
  const Shape s = x->type.shape();
  std::vector<int64_t> at;
  for (int64_t i = 0; i < s[1] * count; ++i) at.push_back(i / count);
  return n.op("gather", {{"x", x}, {"indices", Tensor::i32(at)}, {"axis", 1}});
}

/// 0 where the mask is true, else minus infinity.
Value* bias_of(const Node& n, Value* mask, const Value* like) {
  return n.select(mask, n.scalar(0, like), n.scalar(kMinusInfinity, like));
}

/// A mask over [queries, keys]: keys up to the query's own position, or within a window around it.
Value* positional(const Node& n, const Value* like, int64_t queries, int64_t keys, int64_t past, Value* lengths,
                  bool causal, int64_t left, int64_t right) {
  constexpr int64_t most = int64_t{1} << 26;
  if (keys > 0 && queries > most / keys) n.unsupported(cat("a mask of ", queries, " x ", keys));
  std::vector<int64_t> distances;
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = 0; j < keys; ++j) distances.push_back(i + (lengths == nullptr ? past : -queries) - j);
  Value* d = n.reshape(n.integers_constant(distances), {queries, keys});
  if (lengths != nullptr) d = n.add(d, n.reshape(lengths, {-1, 1, 1, 1}));
  Value* allowed = causal ? n.binary("greater_equal", d, n.scalar(0, d)) : nullptr;
  const auto both = [&](Value* more) { allowed = allowed == nullptr ? more : n.binary("logical_and", allowed, more); };
  if (left >= 0) both(n.binary("less_equal", d, n.scalar(static_cast<double>(left), d)));
  if (right >= 0) both(n.binary("greater_equal", d, n.scalar(static_cast<double>(-right), d)));
  return bias_of(n, allowed, like);
}

/// What is added to the scores of `past` and new keys: [..., queries, keys]; nullptr: nothing.
Value* attention_bias(Node& n, Value* q, int64_t queries, int64_t keys, int64_t past) {
  Value* lengths = n.has(6) ? n.in(6) : nullptr;
  const int64_t left = n.integer_or("left_window_size", -1), right = n.integer_or("right_window_size", -1);
  const bool causal = n.integer_or("is_causal", 0) != 0;
  Value* bias = nullptr;
  const auto more = [&](Value* b) { bias = bias == nullptr ? b : n.add(bias, b); };
  if (n.has(3)) {
    Value* mask = n.in(3);
    if (mask->type.dtype() == DType::boolean) mask = bias_of(n, mask, q);
    const int64_t missing = keys - n.known_shape(mask, "Attention")[n.rank(mask) - 1];
    if (missing > 0) {
      std::vector<int64_t> dims = mask->type.shape().to_vector();
      dims.back() = missing;
      Value* rest = n.op("fill", {{"shape", Tensor::i32(dims)}, n.arg("value", kMinusInfinity, mask)});
      mask = n.concat({mask, rest}, n.rank(mask) - 1);
    }
    more(n.cast(mask, q->type.dtype()));
  }
  if (causal || left >= 0 || right >= 0)
    more(positional(n, q, queries, keys, past, n.has(4) ? nullptr : lengths, causal, left, right));
  if (lengths != nullptr) {
    std::vector<int64_t> at;
    for (int64_t j = 0; j < keys; ++j) at.push_back(j);
    Value* inside = n.binary("less", n.integers_constant(at), n.reshape(lengths, {-1, 1}));
    more(bias_of(n, n.reshape(inside, {-1, 1, 1, keys}), q));
  }
  return bias;
}

/// The softmax of scores over keys, of the type of `q`.
Value* softmax_of_scores(Node& n, Value* scores, Value* bias, Value* q) {
  const auto precision = static_cast<DataType>(n.integer_or("softmax_precision", static_cast<int64_t>(n.type())));
  Value* wide = n.cast(scores, computed_as(precision));
  // A row without any key gives zeros: its largest bias is minus infinity.
  Value* peak = n.reduce("reduce_max", wide, {3}, true);
  Value* none = bias == nullptr ? nullptr
                                : n.binary("equal", n.reduce("reduce_max", bias, {n.rank(bias) - 1}, true),
                                           n.scalar(kMinusInfinity, bias));
  if (none != nullptr)
    peak = n.select(n.binary("equal", peak, n.scalar(kMinusInfinity, peak)), n.scalar(0, peak), peak);
  Value* powers = n.unary("exp", n.sub(wide, peak));
  Value* sum = n.reduce("reduce_sum", powers, {3}, true);
  if (none != nullptr) sum = n.select(n.binary("equal", sum, n.scalar(0, sum)), n.scalar(1, sum), sum);
  Value* weights = n.div(powers, sum);
  if (none != nullptr) weights = n.select(none, n.scalar(0, weights), weights);
  return n.cast(weights, q->type.dtype());
}

void attention(Node& n) {
  Value *q = n.in(0), *k = n.in(1), *v = n.in(2);
  const bool flat = n.rank(q) == 3;
  const int64_t q_heads = n.integer_or("q_num_heads", 0), kv_heads = n.integer_or("kv_num_heads", 0);
  if (flat) q = split_heads(n, q, q_heads), k = split_heads(n, k, kv_heads), v = split_heads(n, v, kv_heads);
  int64_t past = 0;
  if (n.has(4)) {
    past = n.known_shape(n.in(4), "Attention")[2];
    k = n.concat({n.in(4), k}, 2);
    v = n.concat({n.in(5), v}, 2);
  }
  n.set(1, k, n.type(1));
  n.set(2, v, n.type(2));
  const Shape qs = n.known_shape(q, "Attention"), ks = n.known_shape(k, "Attention");
  const int64_t queries = qs[2], keys = ks[2];
  Value* bias = attention_bias(n, q, queries, keys, past);
  const int64_t groups = qs[1] / std::max<int64_t>(1, ks[1]);
  Value* keys_used = repeated(n, k, groups);
  Value* values_used = repeated(n, v, groups);
  const double scale =
      n.attribute("scale") != nullptr ? n.number_or("scale", 1) : 1 / std::sqrt(static_cast<double>(qs[3]));
  const int64_t mode = n.integer_or("qk_matmul_output_mode", 0);
  const double cap = n.number_or("softcap", 0);
  const bool fused =
      cap == 0 && !n.wants(3) && !n.has(6) && n.scope.builder.opset >= ir::Opset::ios18 && !n.attribute("scale");
  if (fused) {
    std::vector<NamedArg> args{{"query", q}};
    args.emplace_back("key", keys_used);
    args.emplace_back("value", values_used);
    if (bias != nullptr) args.emplace_back("attn_mask", bias);
    Value* out = n.op("scaled_dot_product_attention", std::move(args));
    return n.set(0, flat ? join_heads(n, out) : out);
  }
  const double root = std::sqrt(scale);
  Value* scores = n.matmul(n.mul(q, root), n.mul(keys_used, root), false, true);
  Value* shown = scores;
  if (cap > 0) scores = n.mul(n.unary("tanh", n.mul(scores, 1 / cap)), cap);
  if (mode == 1) shown = scores;
  if (bias != nullptr) scores = n.add(scores, bias);
  if (mode == 2) shown = scores;
  Value* weights = softmax_of_scores(n, scores, bias, q);
  if (mode == 3) shown = weights;
  if (n.wants(3)) n.set(3, shown == scores && mode == 0 ? n.unary("identity", shown) : shown);
  Value* out = n.matmul(weights, values_used);
  n.set(0, flat ? join_heads(n, out) : out);
}

void rotary_embedding(Node& n) {
  Value* x = n.in(0);
  const bool flat = n.rank(x) == 3;
  const Shape given = n.known_shape(x, "RotaryEmbedding");
  if (flat) {
    const int64_t heads = n.integer_or("num_heads", 0);
    if (heads < 1 || given[2] % heads != 0) n.malformed(cat("num_heads of ", heads));
    x = n.reshape(x, {given[0], given[1], heads, given[2] / heads});
  } else {
    x = n.transpose(x, {0, 2, 1, 3});
  }
  const int64_t size = x->type.shape()[3];
  int64_t turned = n.integer_or("rotary_embedding_dim", 0);
  if (turned == 0) turned = size;
  Value *cos = n.in(1), *sin = n.in(2);
  if (n.has(3)) {
    cos = n.op("gather", {{"x", cos}, {"indices", n.in(3)}, {"axis", 0}});
    sin = n.op("gather", {{"x", sin}, {"indices", n.in(3)}, {"axis", 0}});
  }
  cos = n.expand_dims(cos, {2});
  sin = n.expand_dims(sin, {2});
  Value* part = turned == size ? x : n.slice(x, 3, 0, turned);
  const bool interleaved = n.integer_or("interleaved", 0) != 0;
  Value* a = interleaved ? n.slice(part, 3, 0, turned, 2) : n.slice(part, 3, 0, turned / 2);
  Value* b = interleaved ? n.slice(part, 3, 1, turned, 2) : n.slice(part, 3, turned / 2, turned);
  Value* real = n.sub(n.mul(cos, a), n.mul(sin, b));
  Value* imaginary = n.add(n.mul(sin, a), n.mul(cos, b));
  const Shape s = x->type.shape();
  Value* out = interleaved
                   ? n.reshape(n.op("stack", {NamedArg("values", std::vector<Value*>{real, imaginary}), {"axis", 4}}),
                               {s[0], s[1], s[2], turned})
                   : n.concat({real, imaginary}, 3);
  if (turned != size) out = n.concat({out, n.slice(x, 3, turned, size)}, 3);
  n.set(0, flat ? n.reshape(out, given.to_vector()) : n.transpose(out, {0, 2, 1, 3}));
}

/// A convolution per channel over the past and the input, and what the next call needs of them.
void causal_conv(Node& n) {
  Value *x = n.in(0), *weight = n.in(1);
  const Shape s = n.known_shape(x, "CausalConvWithState"), w = n.known_shape(weight, "CausalConvWithState");
  if (s.rank() != 3 || w.rank() != 3) n.malformed("expected an input and a weight of rank 3");
  const int64_t before = w[2] - 1;
  Value* whole = x;
  if (before > 0) {
    Value* past =
        n.has(3) ? n.in(3) : n.op("fill", {{"shape", Tensor::i32({s[0], s[1], before})}, n.arg("value", 0, x)});
    whole = n.concat({past, x}, 2);
  }
  Value* out =
      n.op("conv", {{"x", whole}, {"weight", weight}, {"pad_type", "valid"}, {"groups", static_cast<int>(s[1])}});
  if (n.has(2)) out = n.add(out, n.reshape(n.in(2), {1, -1, 1}));
  const std::string activation = n.text_or("activation", "none");
  if (activation == "silu" || activation == "swish") out = n.unary("silu", out);
  n.set(0, out);
  n.set(1, n.slice(whole, 2, s[2], s[2] + before));
}

/// The recurrence of linear attention, step by step, in float32.
void linear_attention(Node& n) {
  constexpr int64_t most = 1024;
  const int64_t q_heads = n.integer_or("q_num_heads", 0), kv_heads = n.integer_or("kv_num_heads", 0);
  const std::string rule = n.text_or("update_rule", "gated_delta");
  const bool gated = rule.starts_with("gated"), delta = rule.ends_with("delta");
  const auto wide = [&](Value* v) { return n.cast(v, DType::fp32); };
  Value *q = split_heads(n, wide(n.in(0)), q_heads), *k = split_heads(n, wide(n.in(1)), kv_heads),
        *v = split_heads(n, wide(n.in(2)), kv_heads);
  const Shape s = q->type.shape(), vs = v->type.shape();
  const int64_t steps = s[2];
  if (steps > most) n.unsupported(cat("a recurrence of ", steps, " steps: expected at most ", most));
  const DataType state_type = n.has(3) ? n.type(3) : n.type(0);
  Value* state =
      n.has(3) ? wide(n.in(3)) : n.op("fill", {{"shape", Tensor::i32({s[0], kv_heads, s[3], vs[3]})}, {"value", 0.f}});
  Value* decay = nullptr;
  if (gated) {
    decay = n.unary("exp", split_heads(n, wide(n.in(4)), kv_heads));
  }
  Value* beta = nullptr;
  if (delta) {
    const Shape bs = n.known_shape(n.in(5), "LinearAttention");
    beta = split_heads(n, wide(n.in(5)), bs[2]);
  }
  const double given = n.number_or("scale", 0);
  const double scale = given == 0 ? 1 / std::sqrt(static_cast<double>(s[3])) : given;
  std::vector<Value*> outputs;
  for (int64_t t = 0; t < steps; ++t) {
    const auto now = [&](Value* x) { return n.slice(x, 2, t, t + 1); };  // [batch, heads, 1, size]
    if (decay != nullptr) state = n.mul(state, n.transpose(now(decay), {0, 1, 3, 2}));
    Value* kt = now(k);
    Value* vt = now(v);
    if (beta != nullptr) vt = n.mul(now(beta), n.sub(vt, n.matmul(kt, state)));
    state = n.add(state, n.matmul(kt, vt, true, false));
    outputs.push_back(n.mul(n.matmul(now(q), repeated(n, state, q_heads / kv_heads)), scale));
  }
  if (outputs.empty()) n.unsupported("a sequence without steps");
  n.set(0, n.cast(join_heads(n, n.concat(outputs, 2)), computed_as(n.type(0))));
  n.set(1, n.cast(state, computed_as(state_type)), state_type);
}

void swiglu(Node& n) {
  Value* a = n.in(0);
  const double alpha = n.number_or("alpha", 1);
  Value* swish = alpha == 1 ? n.unary("silu", a) : n.mul(a, n.unary("sigmoid", n.mul(a, alpha)));
  n.set(0, n.mul(swish, n.in(1)));
}

constexpr OperatorImport kAttentionOperators[] = {
    {"Attention", attention},
    {"RotaryEmbedding", rotary_embedding},
    {"CausalConvWithState", causal_conv},
    {"LinearAttention", linear_attention},
    {"SwiGLU", swiglu},
};

}  // namespace

std::span<const OperatorImport> operators_attention() { return kAttentionOperators; }

}  // namespace moka::import::onnx
