// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/network.h"

namespace moka::import::nn {

namespace {

Result<std::string> mode_name(Layer& l, proto::ScatterMode mode) {
  static constexpr const char* kNames[] = {"update", "add", "sub", "mul", "div", "max", "min"};
  int m = static_cast<int>(mode);
  if (m < 0 || m > 6) return l.malformed(cat("unknown scatter mode ", m));
  return std::string(kNames[m]);
}

Status gather(Layer& l) {
  MOKA_TRY(l.arity(2, 2));
  Value* x = MOKA_TRY(l.any(0));
  Value* indices = MOKA_TRY(l.int32(1));
  const int axis = MOKA_TRY(l.axis(l.p.gather().axis(), x));
  return l.set(0, MOKA_TRY(l.op("gather", {{"x", x}, {"indices", indices}, {"axis", axis}})));
}

Status gather_nd(Layer& l) {
  MOKA_TRY(l.arity(2, 2));
  Value* x = MOKA_TRY(l.any(0));
  Value* indices = MOKA_TRY(l.int32(1));
  return l.set(0, MOKA_TRY(l.op("gather_nd", {{"x", x}, {"indices", indices}})));
}

Status gather_along_axis(Layer& l) {
  MOKA_TRY(l.arity(2, 2));
  Value* x = MOKA_TRY(l.any(0));
  int axis = MOKA_TRY(l.axis(l.p.gatheralongaxis().axis(), x));
  Value* indices = MOKA_TRY(l.int32(1));
  return l.set(0, MOKA_TRY(l.op("gather_along_axis", {{"x", x}, {"indices", indices}, {"axis", axis}})));
}

Result<std::vector<NamedArg>> scatter_inputs(Layer& l) {
  MOKA_TRY(l.arity(3, 3));
  Value* data = MOKA_TRY(l.any(0));
  Value* indices = MOKA_TRY(l.int32(1));
  Value* updates = MOKA_TRY(l.any(2));
  return std::vector<NamedArg>{{"data", data}, {"indices", indices}, {"updates", updates}};
}

Status scatter(Layer& l) {
  std::vector<NamedArg> args = MOKA_TRY(scatter_inputs(l));
  args.emplace_back("axis", MOKA_TRY(l.axis(l.p.scatter().axis(), MOKA_TRY(l.any(0)))));
  args.emplace_back("mode", MOKA_TRY(mode_name(l, l.p.scatter().mode())));
  return l.set(0, MOKA_TRY(l.op("scatter", std::move(args))));
}

Status scatter_nd(Layer& l) {
  std::vector<NamedArg> args = MOKA_TRY(scatter_inputs(l));
  args.emplace_back("mode", MOKA_TRY(mode_name(l, l.p.scatternd().mode())));
  return l.set(0, MOKA_TRY(l.op("scatter_nd", std::move(args))));
}

Status scatter_along_axis(Layer& l) {
  std::vector<NamedArg> args = MOKA_TRY(scatter_inputs(l));
  args.emplace_back("axis", MOKA_TRY(l.axis(l.p.scatteralongaxis().axis(), MOKA_TRY(l.any(0)))));
  args.emplace_back("mode", MOKA_TRY(mode_name(l, l.p.scatteralongaxis().mode())));
  return l.set(0, MOKA_TRY(l.op("scatter_along_axis", std::move(args))));
}

Status where_non_zero(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  return l.set(0, MOKA_TRY(l.op("non_zero", {{"x", MOKA_TRY(l.any(0))}})));
}

/// Keeps the elements between the diagonals. A negative count keeps all elements on that side.
Result<Value*> band(Layer& l, Value* x, int64_t lower, int64_t upper) {
  auto fit = [](int64_t v) { return static_cast<int>(v < 0 ? -1 : std::min<int64_t>(v, (int64_t{1} << 31) - 1)); };
  return l.op("band_part", {{"x", x}, {"lower", fit(lower)}, {"upper", fit(upper)}});
}

Status matrix_band_part(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.matrixbandpart();
  return l.set(0, MOKA_TRY(band(l, MOKA_TRY(l.in(0)), p.numlower(), p.numupper())));
}

/// A triangle without the main diagonal is what is left without the opposite triangle.
Status triangle(Layer& l, Value* x, bool lower, int64_t k) {
  if (k < -(int64_t{1} << 31) || k > (int64_t{1} << 31)) return l.malformed(cat("a diagonal of ", k));
  if (lower ? k >= 0 : k <= 0) return l.set(0, MOKA_TRY(lower ? band(l, x, -1, k) : band(l, x, -k, -1)));
  Value* ones = MOKA_TRY(l.op("fill_like", {{"ref_tensor", x}, {"value", 1.0f}}));
  Value* zeros = MOKA_TRY(l.op("fill_like", {{"ref_tensor", x}, {"value", 0.0f}}));
  Value* rest = MOKA_TRY(lower ? band(l, ones, -k - 1, -1) : band(l, ones, -1, k - 1));
  Value* keep = MOKA_TRY(l.op("equal", {{"x", rest}, {"y", zeros}}));
  return l.set(0, MOKA_TRY(l.op("select", {{"cond", keep}, {"a", x}, {"b", zeros}})));
}

Status lower_triangular(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  return triangle(l, MOKA_TRY(l.in(0)), true, l.p.lowertriangular().k());
}

Status upper_triangular(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  return triangle(l, MOKA_TRY(l.in(0)), false, l.p.uppertriangular().k());
}

Status one_hot(Layer& l) {
  MOKA_TRY(l.arity(1, 2));
  const auto& p = l.p.onehot();
  Value* indices = MOKA_TRY(l.int32(0));
  std::vector<NamedArg> args{{"indices", indices}};
  if (l.inputs() == 2) {
    Value* size = MOKA_TRY(l.int32(1));
    if (size->type.rank() == 1) size = MOKA_TRY(l.op("squeeze", {{"x", size}, {"axes", Ints{0}}}));
    args.emplace_back("one_hot_vector_size", size);
  } else {
    if (p.onehotvectorsize() == 0 || p.onehotvectorsize() > (uint64_t{1} << 31) - 1)
      return l.malformed(cat("a vector size of ", p.onehotvectorsize()));
    args.emplace_back("one_hot_vector_size", static_cast<int>(p.onehotvectorsize()));
  }
  int rank = indices->type.rank() + 1;
  int axis = MOKA_TRY(ir::normalize_axis(p.axis(), rank));
  args.emplace_back("axis", axis);
  args.emplace_back("on_value", p.onvalue());
  args.emplace_back("off_value", p.offvalue());
  return l.set(0, MOKA_TRY(l.op("one_hot", std::move(args))));
}

/// Thresholds and the box count may be inputs, which must then be constants of the model.
Status non_maximum_suppression(Layer& l) {
  MOKA_TRY(l.arity(2, 5, 1, 4));
  const auto& p = l.p.nonmaximumsuppression();
  Value* boxes = MOKA_TRY(l.in(0));
  Value* scores = MOKA_TRY(l.in(1));
  double given[3] = {p.iouthreshold(), p.scorethreshold(), static_cast<double>(p.maxboxes())};
  for (int i = 2; i < l.inputs(); i++) {
    Value* v = MOKA_TRY(l.in(i));
    if (v->constant() == nullptr || v->constant()->tensor.count() != 1)
      return l.unsupported(
          cat("a threshold or count that is computed ('", l.p.input(i), "'); a constant is supported"));
    given[i - 2] = ir::load_f64(v->constant()->tensor.view(), 0);
  }
  if (!(given[2] >= 1) || given[2] > (int64_t{1} << 31) - 1) return l.malformed(cat("at most ", given[2], " boxes"));
  ir::Op* nms = MOKA_TRY(l.multi("non_maximum_suppression", {{"boxes", boxes},
                                                             {"scores", scores},
                                                             {"iou_threshold", static_cast<float>(given[0])},
                                                             {"score_threshold", static_cast<float>(given[1])},
                                                             {"max_boxes", static_cast<int>(given[2])},
                                                             {"per_class_suppression", p.perclasssuppression()}}));
  for (int i = 0; i < l.outputs(); i++) MOKA_TRY(l.set(i, nms->output(static_cast<size_t>(i))));
  return {};
}

}  // namespace

std::span<const LayerImport> layers_gathering() {
  using L = proto::NeuralNetworkLayer;
  static const LayerImport list[] = {
      {L::kGather, "gather", gather},
      {L::kGatherND, "gatherND", gather_nd},
      {L::kGatherAlongAxis, "gatherAlongAxis", gather_along_axis},
      {L::kScatter, "scatter", scatter},
      {L::kScatterND, "scatterND", scatter_nd},
      {L::kScatterAlongAxis, "scatterAlongAxis", scatter_along_axis},
      {L::kWhereNonZero, "whereNonZero", where_non_zero},
      {L::kMatrixBandPart, "matrixBandPart", matrix_band_part},
      {L::kLowerTriangular, "lowerTriangular", lower_triangular},
      {L::kUpperTriangular, "upperTriangular", upper_triangular},
      {L::kOneHot, "oneHot", one_hot},
      {L::kNonMaximumSuppression, "NonMaximumSuppression", non_maximum_suppression},
  };
  return list;
}

}  // namespace moka::import::nn
