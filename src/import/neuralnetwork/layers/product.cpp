// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/network.h"

namespace moka::import::nn {

namespace {

/// For ranks 4 and 5 the product takes all of [channel, height, width]; for lower ranks the last dimension.
Status inner_product(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.innerproduct();
  Shape shape = MOKA_TRY(l.shape({p.outputchannels(), p.inputchannels()}, "weights"));
  Blob* b = MOKA_TRY(l.blob(0));
  Value* x;
  Form form = Form::exact;
  if (b->rank() >= 4) {
    form = Form::matrix;
    bool flat = b->form(Form::matrix) != nullptr || (b->dims.end()[-1].size == 1 && b->dims.end()[-2].size == 1);
    if (flat) {
      x = MOKA_TRY(l.in(0, Form::matrix));
    } else {
      Value* v = MOKA_TRY(l.nchw(0));
      std::vector<Dim> dims{dims_of(v)[0], Dim{shape[1]}};
      int64_t features = product(std::span(b->dims).last(3));
      if (features >= 0 && features != shape[1])
        return l.malformed(cat("expected ", shape[1], " input channels, got ", features, " from ", v->type));
      x = MOKA_TRY(l.net.reshape(v, dims, l.p.name()));
    }
  } else {
    x = MOKA_TRY(l.in(0));
    if (b->rank() == 0) return l.malformed("expected an input of rank 1 or more, got a scalar");
  }
  Value* weight = MOKA_TRY(l.weight(p.weights(), shape, "weights"));
  std::vector<NamedArg> args{{"x", x}, {"weight", weight}};
  if (p.hasbias()) args.emplace_back("bias", MOKA_TRY(l.weight(p.bias(), Shape{shape[0]}, "bias")));
  return l.set(0, MOKA_TRY(l.op("linear", std::move(args))), form);
}

/// Rows of the transposed [size, vocabulary] matrix.
Result<Value*> look_up(Layer& l, Value* indices, uint64_t size, uint64_t vocabulary, const proto::WeightParams& weights,
                       const proto::WeightParams* bias) {
  Shape shape = MOKA_TRY(l.shape({size, vocabulary}, "weights"));
  Value* w = MOKA_TRY(l.weight(weights, shape, "weights"));
  Value* t = MOKA_TRY(l.op("transpose", {{"x", w}, {"perm", Ints{1, 0}}}));
  Value* y = MOKA_TRY(l.op("gather", {{"x", t}, {"indices", indices}, {"axis", 0}}));
  if (bias == nullptr) return y;
  Value* b = MOKA_TRY(l.weight(*bias, Shape{shape[0]}, "bias"));
  return l.op("add", {{"x", y}, {"y", b}});
}

Status embedding(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.embedding();
  Value* x = MOKA_TRY(l.in(0, Form::matrix));
  if (x->type.shape()[1] != 1) return l.malformed(cat("expected an input with one channel, got ", x->type));
  x = MOKA_TRY(l.op("squeeze", {{"x", x}, {"axes", Ints{1}}}));
  x = MOKA_TRY(l.op("cast", {{"x", x}, {"dtype", "int32"}}));
  Value* y = MOKA_TRY(look_up(l, x, p.outputchannels(), p.inputdim(), p.weights(), p.hasbias() ? &p.bias() : nullptr));
  return l.set(0, y, Form::matrix);
}

Status embedding_nd(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.embeddingnd();
  Value* x = MOKA_TRY(l.int32(0));
  int rank = x->type.rank();
  if (rank < 2) return l.malformed(cat("expected an input of rank 2 or more, got ", x->type));
  x = MOKA_TRY(l.op("squeeze", {{"x", x}, {"axes", Ints{rank - 1}}}));
  return l.set(
      0, MOKA_TRY(look_up(l, x, p.embeddingsize(), p.vocabsize(), p.weights(), p.hasbias() ? &p.bias() : nullptr)));
}

Status batched_matmul(Layer& l) {
  MOKA_TRY(l.arity(1, 2));
  const auto& p = l.p.batchedmatmul();
  Value* x = MOKA_TRY(l.any(0));
  const auto is_vector = [](const Value* v) { return v->type.is_ranked() && v->type.rank() == 1; };
  if (l.inputs() == 2) {
    // Vectors become a row and a column, and the product keeps both dimensions.
    Value* y = MOKA_TRY(l.any(1));
    if (is_vector(x)) x = MOKA_TRY(l.op("expand_dims", {{"x", x}, {"axes", Ints{0}}}));
    if (is_vector(y)) y = MOKA_TRY(l.op("expand_dims", {{"x", y}, {"axes", Ints{1}}}));
    return l.set(
        0, MOKA_TRY(
               l.op("matmul", {{"x", x}, {"y", y}, {"transpose_x", p.transposea()}, {"transpose_y", p.transposeb()}})));
  }
  // The file stores the matrix column by column, which are the rows of linear's weight.
  Shape shape = MOKA_TRY(l.shape({p.weightmatrixseconddimension(), p.weightmatrixfirstdimension()}, "weights"));
  Value* weights = MOKA_TRY(l.weight(p.weights(), shape, "weights"));
  Value* bias = p.hasbias() ? MOKA_TRY(l.weight(p.bias(), Shape{shape[0]}, "bias")) : nullptr;
  if (!x->type.is_ranked() || x->type.rank() > 3) {
    Value* y = MOKA_TRY(l.op("matmul", {{"x", x}, {"y", weights}, {"transpose_y", true}}));
    if (bias != nullptr) y = MOKA_TRY(l.op("add", {{"x", y}, {"y", bias}}));
    return l.set(0, y);
  }
  std::vector<NamedArg> args{{"x", x}, {"weight", weights}};
  if (bias != nullptr) args.emplace_back("bias", bias);
  return l.set(0, MOKA_TRY(l.op("linear", std::move(args))));
}

}  // namespace

std::span<const LayerImport> layers_product() {
  static const LayerImport list[] = {
      {proto::NeuralNetworkLayer::kInnerProduct, "innerProduct", inner_product},
      {proto::NeuralNetworkLayer::kEmbedding, "embedding", embedding},
      {proto::NeuralNetworkLayer::kEmbeddingND, "embeddingND", embedding_nd},
      {proto::NeuralNetworkLayer::kBatchedMatmul, "batchedMatmul", batched_matmul},
  };
  return list;
}

}  // namespace moka::import::nn
