// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/network.h"

namespace moka::import::nn {

namespace {

Result<Shape> sizes(Layer& l, const google::protobuf::RepeatedField<uint64_t>& f, std::string_view what) {
  if (f.size() > ir::kMaxRank) return l.unsupported(cat(what, ": rank ", f.size()));
  Shape s;
  for (uint64_t d : f) {
    if (d > (uint64_t{1} << 31)) return l.malformed(cat(what, ": a dimension of ", d));
    s.push_back(static_cast<int64_t>(d));
  }
  MOKA_TRY_IN(s.checked_count(), what);
  return s;
}

Status load_constant(Layer& l) {
  MOKA_TRY(l.arity(0, 0));
  const auto& p = l.p.loadconstant();
  if (p.shape_size() != 3) return l.malformed(cat("expected a shape of 3 dimensions, got ", p.shape_size()));
  Shape s = MOKA_TRY(sizes(l, p.shape(), "shape"));
  Value* v = MOKA_TRY(l.weight(p.data(), Shape{1, s[0], s[1], s[2]}, "data", 1));
  return l.set_folded(0, v, Form::nchw, {Dim{1}, Dim{1}});
}

Status load_constant_nd(Layer& l) {
  MOKA_TRY(l.arity(0, 0));
  const auto& p = l.p.loadconstantnd();
  Shape s = MOKA_TRY(sizes(l, p.shape(), "shape"));
  if (s.rank() == 0) s = Shape{1};
  return l.set(0, MOKA_TRY(l.weight(p.data(), s, "data")));
}

Status fill_like(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  return l.set(0, MOKA_TRY(l.op("fill_like", {{"ref_tensor", MOKA_TRY(l.any(0))}, {"value", l.p.filllike().value()}})));
}

Status fill_static(Layer& l) {
  MOKA_TRY(l.arity(0, 0));
  const auto& p = l.p.fillstatic();
  Shape s = MOKA_TRY(sizes(l, p.targetshape(), "target shape"));
  return l.set(0, MOKA_TRY(l.op("fill", {{"shape", Tensor::i32(s.dims())}, {"value", p.value()}})));
}

/// The constant entries of a vector, and kAnyDim for the others. Empty when the vector's length is unknown or exceeds
/// the maximal rank.
std::vector<int64_t> known_entries(const Value* v, int depth = 0) {
  const ir::Type& t = v->type;
  if (!t.is_ranked() || t.rank() != 1 || t.shape()[0] < 0 || t.shape()[0] > ir::kMaxRank) return {};
  std::vector<int64_t> all;
  const ir::Op* op = v->producer();
  if (v->constant() != nullptr) {
    for (int64_t i = 0; i < t.shape()[0]; i++) all.push_back(ir::load_i64(v->constant()->tensor.view(), i));
  } else if (op != nullptr && depth < 16 && op->type_name() == "cast") {
    all = known_entries(op->input("x"), depth + 1);
  } else if (op != nullptr && depth < 16 && op->type_name() == "concat" && op->input("interleave") == nullptr) {
    for (const Value* part : op->inputs("values")) {
      const std::vector<int64_t> some = known_entries(part, depth + 1);
      all.insert(all.end(), some.begin(), some.end());
    }
  }
  if (static_cast<int64_t>(all.size()) != t.shape()[0]) all.assign(static_cast<size_t>(t.shape()[0]), ir::kAnyDim);
  return all;
}

Status fill_dynamic(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  Value* shape = MOKA_TRY(l.int32_vector(0));
  std::vector<NamedArg> args{{"shape", shape}, {"value", l.p.filldynamic().value()}};
  const std::vector<int64_t> sizes = known_entries(shape);
  if (sizes.empty()) return l.set(0, MOKA_TRY(l.op("fill", std::move(args))));
  Shape declared;
  for (int64_t d : sizes) declared.push_back(d < 0 || d > (int64_t{1} << 31) ? ir::kAnyDim : d);
  const ir::Type type = ir::Type::tensor(DType::fp32, declared);
  return l.set(0, MOKA_TRY(l.op("fill", std::move(args), &type)));
}

Status range_static(Layer& l) {
  MOKA_TRY(l.arity(0, 0));
  const auto& p = l.p.rangestatic();
  return l.set(
      0, MOKA_TRY(l.op("range_1d", {{"end", p.endvalue()}, {"start", p.startvalue()}, {"step", p.stepsizevalue()}})));
}

/// A number from an input with one element.
Result<Value*> scalar(Layer& l, int i) {
  Value* v = MOKA_TRY(l.any(i));
  if (v->type.is_ranked() && v->type.rank() == 0) return v;
  return l.op("squeeze", {{"x", v}});
}

/// Inputs: end, start, step. The layer supplies the values of absent inputs.
Status range_dynamic(Layer& l) {
  MOKA_TRY(l.arity(1, 3));
  const auto& p = l.p.rangedynamic();
  std::vector<NamedArg> args{{"end", MOKA_TRY(scalar(l, 0))}};
  if (l.inputs() > 1)
    args.emplace_back("start", MOKA_TRY(scalar(l, 1)));
  else
    args.emplace_back("start", p.startvalue());
  if (l.inputs() > 2)
    args.emplace_back("step", MOKA_TRY(scalar(l, 2)));
  else
    args.emplace_back("step", p.stepsizevalue());
  return l.set(0, MOKA_TRY(l.op("range_1d", std::move(args))));
}

/// The shape parameter of a random operation: the shape of the input, the input itself, or the layer's shape.
Result<NamedArg> like(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  return NamedArg("shape", MOKA_TRY(l.op("shape", {{"x", MOKA_TRY(l.any(0))}})));
}
Result<NamedArg> dynamic(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  return NamedArg("shape", MOKA_TRY(l.int32_vector(0)));
}
Result<NamedArg> fixed(Layer& l, const google::protobuf::RepeatedField<uint64_t>& f) {
  MOKA_TRY(l.arity(0, 0));
  return NamedArg("shape", Tensor::i32(MOKA_TRY(sizes(l, f, "output shape")).dims()));
}

int seed_of(int64_t seed) { return seed < 0 ? -1 : static_cast<int>(seed & 0x7fffffff); }

template <class P>
Status normal(Layer& l, NamedArg shape, const P& p) {
  return l.set(
      0, MOKA_TRY(l.op("random_normal",
                       {std::move(shape), {"mean", p.mean()}, {"stddev", p.stddev()}, {"seed", seed_of(p.seed())}})));
}
template <class P>
Status uniform(Layer& l, NamedArg shape, const P& p) {
  return l.set(
      0, MOKA_TRY(l.op("random_uniform",
                       {std::move(shape), {"low", p.minval()}, {"high", p.maxval()}, {"seed", seed_of(p.seed())}})));
}
template <class P>
Status bernoulli(Layer& l, NamedArg shape, const P& p) {
  return l.set(0,
               MOKA_TRY(l.op("random_bernoulli", {std::move(shape), {"prob", p.prob()}, {"seed", seed_of(p.seed())}})));
}

Status normal_like(Layer& l) { return normal(l, MOKA_TRY(like(l)), l.p.randomnormallike()); }
Status normal_static(Layer& l) {
  return normal(l, MOKA_TRY(fixed(l, l.p.randomnormalstatic().outputshape())), l.p.randomnormalstatic());
}
Status normal_dynamic(Layer& l) { return normal(l, MOKA_TRY(dynamic(l)), l.p.randomnormaldynamic()); }
Status uniform_like(Layer& l) { return uniform(l, MOKA_TRY(like(l)), l.p.randomuniformlike()); }
Status uniform_static(Layer& l) {
  return uniform(l, MOKA_TRY(fixed(l, l.p.randomuniformstatic().outputshape())), l.p.randomuniformstatic());
}
Status uniform_dynamic(Layer& l) { return uniform(l, MOKA_TRY(dynamic(l)), l.p.randomuniformdynamic()); }
Status bernoulli_like(Layer& l) { return bernoulli(l, MOKA_TRY(like(l)), l.p.randombernoullilike()); }
Status bernoulli_static(Layer& l) {
  return bernoulli(l, MOKA_TRY(fixed(l, l.p.randombernoullistatic().outputshape())), l.p.randombernoullistatic());
}
Status bernoulli_dynamic(Layer& l) { return bernoulli(l, MOKA_TRY(dynamic(l)), l.p.randombernoullidynamic()); }

Status categorical(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.categoricaldistribution();
  if (p.numsamples() < 1 || p.numsamples() > (int64_t{1} << 31) - 1)
    return l.malformed(cat(p.numsamples(), " samples"));
  Value* x = MOKA_TRY(l.in(0));
  float temperature = p.temperature() == 0 ? 1.0f : p.temperature();
  bool logits = p.islogits();
  if (temperature != 1) {
    if (!logits) x = MOKA_TRY(l.op("log", {{"x", x}, {"epsilon", p.eps() == 0 ? 1e-10f : p.eps()}}));
    x = MOKA_TRY(l.op("mul", {{"x", x}, {"y", 1 / temperature}}));
    logits = true;
  }
  return l.set(0, MOKA_TRY(l.op("random_categorical", {{"x", x},
                                                       {"mode", logits ? "logits" : "probs"},
                                                       {"size", static_cast<int>(p.numsamples())},
                                                       {"seed", seed_of(p.seed())}})));
}

}  // namespace

std::span<const LayerImport> layers_constant() {
  using L = proto::NeuralNetworkLayer;
  static const LayerImport list[] = {
      {L::kLoadConstant, "loadConstant", load_constant},
      {L::kLoadConstantND, "loadConstantND", load_constant_nd},
      {L::kFillLike, "fillLike", fill_like},
      {L::kFillStatic, "fillStatic", fill_static},
      {L::kFillDynamic, "fillDynamic", fill_dynamic},
      {L::kRangeStatic, "rangeStatic", range_static},
      {L::kRangeDynamic, "rangeDynamic", range_dynamic},
      {L::kRandomNormalLike, "randomNormalLike", normal_like},
      {L::kRandomNormalStatic, "randomNormalStatic", normal_static},
      {L::kRandomNormalDynamic, "randomNormalDynamic", normal_dynamic},
      {L::kRandomUniformLike, "randomUniformLike", uniform_like},
      {L::kRandomUniformStatic, "randomUniformStatic", uniform_static},
      {L::kRandomUniformDynamic, "randomUniformDynamic", uniform_dynamic},
      {L::kRandomBernoulliLike, "randomBernoulliLike", bernoulli_like},
      {L::kRandomBernoulliStatic, "randomBernoulliStatic", bernoulli_static},
      {L::kRandomBernoulliDynamic, "randomBernoulliDynamic", bernoulli_dynamic},
      {L::kCategoricalDistribution, "categoricalDistribution", categorical},
  };
  return list;
}

}  // namespace moka::import::nn
