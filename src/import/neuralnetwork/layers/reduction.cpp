// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/network.h"

namespace moka::import::nn {

namespace {

Status reduce(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.reduce();
  Ints back;
  switch (p.axis()) {
    case proto::ReduceLayerParams::CHW: back = Ints{3, 2, 1}; break;
    case proto::ReduceLayerParams::HW: back = Ints{2, 1}; break;
    case proto::ReduceLayerParams::C: back = Ints{3}; break;
    case proto::ReduceLayerParams::H: back = Ints{2}; break;
    case proto::ReduceLayerParams::W: back = Ints{1}; break;
    default: return l.malformed(cat("unknown axis ", static_cast<int>(p.axis())));
  }
  Form form = MOKA_TRY(l.blob(0))->rank() >= 3 ? Form::nchw : Form::exact;
  Value* x = MOKA_TRY(l.in(0, form));
  int rank = x->type.rank();
  Ints axes;
  for (int64_t b : back) {
    if (b > rank) return l.malformed(cat("expected an input of rank ", b, " or more, got ", x->type));
    axes.push_back(rank - b);
  }
  std::string_view op;
  switch (p.mode()) {
    case proto::ReduceLayerParams::SUM: op = "reduce_sum"; break;
    case proto::ReduceLayerParams::AVG: op = "reduce_mean"; break;
    case proto::ReduceLayerParams::PROD: op = "reduce_prod"; break;
    case proto::ReduceLayerParams::LOGSUM:
      // The sum of the logarithms, unlike MIL's reduce_log_sum.
      x = MOKA_TRY(l.op("log", {{"x", x}, {"epsilon", p.epsilon() == 0 ? 1e-6f : p.epsilon()}}));
      op = "reduce_sum";
      break;
    case proto::ReduceLayerParams::SUMSQUARE: op = "reduce_sum_square"; break;
    case proto::ReduceLayerParams::L1: op = "reduce_l1_norm"; break;
    case proto::ReduceLayerParams::L2: op = "reduce_l2_norm"; break;
    case proto::ReduceLayerParams::MAX: op = "reduce_max"; break;
    case proto::ReduceLayerParams::MIN: op = "reduce_min"; break;
    case proto::ReduceLayerParams::ARGMAX: {
      if (axes.size() != 1) return l.malformed("ARGMAX needs one axis: C, H or W");
      Value* y = MOKA_TRY(l.op("reduce_argmax", {{"x", x}, {"axis", static_cast<int>(axes[0])}, {"keep_dims", true}}));
      return l.set(0, MOKA_TRY(l.f32(y)), form);
    }
    default: return l.malformed(cat("unknown mode ", static_cast<int>(p.mode())));
  }
  return l.set(0, MOKA_TRY(l.op(op, {{"x", x}, {"axes", axes}, {"keep_dims", true}})), form);
}

template <class P>
Status reduce_nd(Layer& l, std::string_view op, const P& p) {
  MOKA_TRY(l.arity(1, 1));
  Value* x = MOKA_TRY(l.any(0));
  if (!x->type.is_ranked() && !p.reduceall() && p.axes_size() > 0) {
    Ints given;
    for (int64_t a : p.axes()) given.push_back(MOKA_TRY(l.axis(a, x)));
    return l.set(0, MOKA_TRY(l.op(op, {{"x", x}, {"axes", given}, {"keep_dims", p.keepdims()}})));
  }
  if (!x->type.is_ranked()) return l.set(0, MOKA_TRY(l.op(op, {{"x", x}, {"keep_dims", p.keepdims()}})));
  int rank = x->type.rank();
  bool drop[ir::kMaxRank] = {};
  if (p.reduceall() || p.axes_size() == 0)
    for (int i = 0; i < rank; i++) drop[i] = true;
  else
    for (int64_t a : p.axes()) drop[MOKA_TRY(ir::normalize_axis(a, rank))] = true;
  Ints axes;
  for (int i = 0; i < rank; i++)
    if (drop[i]) axes.push_back(i);
  Value* y = MOKA_TRY(l.op(op, {{"x", x}, {"axes", axes}, {"keep_dims", p.keepdims()}}));
  // A tensor of a neural network keeps at least one dimension.
  if (y->type.rank() == 0) y = MOKA_TRY(l.op("expand_dims", {{"x", y}, {"axes", Ints{0}}}));
  return l.set(0, y);
}

Status l1(Layer& l) { return reduce_nd(l, "reduce_l1_norm", l.p.reducel1()); }
Status l2(Layer& l) { return reduce_nd(l, "reduce_l2_norm", l.p.reducel2()); }
Status reduce_maximum(Layer& l) { return reduce_nd(l, "reduce_max", l.p.reducemax()); }
Status reduce_minimum(Layer& l) { return reduce_nd(l, "reduce_min", l.p.reducemin()); }
Status sum(Layer& l) { return reduce_nd(l, "reduce_sum", l.p.reducesum()); }
Status prod(Layer& l) { return reduce_nd(l, "reduce_prod", l.p.reduceprod()); }
Status mean(Layer& l) { return reduce_nd(l, "reduce_mean", l.p.reducemean()); }
Status log_sum(Layer& l) { return reduce_nd(l, "reduce_log_sum", l.p.reducelogsum()); }
Status sum_square(Layer& l) { return reduce_nd(l, "reduce_sum_square", l.p.reducesumsquare()); }
Status log_sum_exp(Layer& l) { return reduce_nd(l, "reduce_log_sum_exp", l.p.reducelogsumexp()); }

Status arg(Layer& l, std::string_view op, int64_t axis, bool remove) {
  MOKA_TRY(l.arity(1, 1));
  Value* x = MOKA_TRY(l.any(0));
  const int a = MOKA_TRY(l.axis(axis, x));
  const bool only = x->type.is_ranked() && x->type.rank() == 1;
  return l.set(0, MOKA_TRY(l.op(op, {{"x", x}, {"axis", a}, {"keep_dims", !remove || only}})));
}
Status arg_max(Layer& l) { return arg(l, "reduce_argmax", l.p.argmax().axis(), l.p.argmax().removedim()); }
Status arg_min(Layer& l) { return arg(l, "reduce_argmin", l.p.argmin().axis(), l.p.argmin().removedim()); }

/// Returns the first K of all sorted elements, where K is the layer's second input.
Status top_computed_k(Layer& l, Value* x, int axis) {
  ir::Op* all =
      MOKA_TRY(l.multi("topk", {{"x", x}, {"k", -1}, {"axis", axis}, {"ascending", l.p.topk().usebottomk()}}));
  Value* k = MOKA_TRY(l.int32(1));
  k = MOKA_TRY(l.op("reshape", {{"x", k}, {"shape", Ints{1}}}));
  const int rank = x->type.rank();
  const auto rest = [](int n) { return Tensor::i32(std::vector<int64_t>(static_cast<size_t>(n), -1)); };
  std::vector<Value*> sizes;
  if (axis > 0) sizes.push_back(MOKA_TRY(l.constant(rest(axis), "sizes_before")));
  sizes.push_back(k);
  if (axis + 1 < rank) sizes.push_back(MOKA_TRY(l.constant(rest(rank - axis - 1), "sizes_behind")));
  if (sizes.size() > 1) k = MOKA_TRY(l.op("concat", {{"values", sizes}, {"axis", 0}}));
  const Tensor begin = Tensor::i32(std::vector<int64_t>(static_cast<size_t>(rank), 0));
  for (int i = 0; i < 2; i++)
    MOKA_TRY(l.set(i, MOKA_TRY(l.op("slice_by_size",
                                    {{"x", all->output(static_cast<size_t>(i))}, {"begin", begin}, {"size", k}}))));
  return {};
}

Status top_k(Layer& l) {
  MOKA_TRY(l.arity(1, 2, 2, 2));
  const auto& p = l.p.topk();
  Value* x = MOKA_TRY(l.in(0));
  const int axis = MOKA_TRY(ir::normalize_axis(p.axis(), x->type.rank()));
  double k = static_cast<double>(p.k());
  if (l.inputs() == 2) {
    Value* v = MOKA_TRY(l.in(1));
    if (v->constant() == nullptr || v->constant()->tensor.count() != 1) return top_computed_k(l, x, axis);
    k = ir::load_f64(v->constant()->tensor.view(), 0);
  }
  if (!(k >= 1) || k > (int64_t{1} << 31) - 1) return l.malformed(cat("a K of ", k));
  ir::Op* top =
      MOKA_TRY(l.multi("topk", {{"x", x}, {"k", static_cast<int>(k)}, {"axis", axis}, {"ascending", p.usebottomk()}}));
  MOKA_TRY(l.set(0, top->output(0)));
  return l.set(1, top->output(1));
}

Status arg_sort(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.argsort();
  Value* x = MOKA_TRY(l.any(0));
  const int axis = MOKA_TRY(l.axis(p.axis(), x));
  return l.set(0, MOKA_TRY(l.op("argsort", {{"x", x}, {"axis", axis}, {"ascending", !p.descending()}})));
}

Status cum_sum(Layer& l) {
  MOKA_TRY(l.arity(1, 2));
  const auto& p = l.p.cumsum();
  Value* x = MOKA_TRY(l.any(0));
  int64_t at = p.axis();
  if (l.inputs() == 2) {
    Value* v = MOKA_TRY(l.in(1));
    if (v->constant() == nullptr || v->constant()->tensor.count() != 1)
      return l.unsupported(cat("an axis that is computed ('", l.p.input(1), "'); a constant is supported"));
    at = ir::load_i64(v->constant()->tensor.view(), 0);
  }
  const int axis = MOKA_TRY(l.axis(at, x));
  return l.set(
      0, MOKA_TRY(
             l.op("cumsum", {{"x", x}, {"axis", axis}, {"exclusive", p.excludefinalsum()}, {"reverse", p.reverse()}})));
}

}  // namespace

std::span<const LayerImport> layers_reduction() {
  using L = proto::NeuralNetworkLayer;
  static const LayerImport list[] = {
      {L::kReduce, "reduce", reduce},
      {L::kReduceL1, "reduceL1", l1},
      {L::kReduceL2, "reduceL2", l2},
      {L::kReduceMax, "reduceMax", reduce_maximum},
      {L::kReduceMin, "reduceMin", reduce_minimum},
      {L::kReduceSum, "reduceSum", sum},
      {L::kReduceProd, "reduceProd", prod},
      {L::kReduceMean, "reduceMean", mean},
      {L::kReduceLogSum, "reduceLogSum", log_sum},
      {L::kReduceSumSquare, "reduceSumSquare", sum_square},
      {L::kReduceLogSumExp, "reduceLogSumExp", log_sum_exp},
      {L::kArgMax, "argMax", arg_max},
      {L::kArgMin, "argMin", arg_min},
      {L::kTopK, "topK", top_k},
      {L::kArgSort, "argSort", arg_sort},
      {L::kCumSum, "cumSum", cum_sum},
  };
  return list;
}

}  // namespace moka::import::nn
