// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "import/onnx/label_lists.h"
#include "import/onnx/subgraph.h"

namespace moka::import::onnx {
namespace {

Value* matrix(const Node& n, int64_t rows, int64_t columns, const std::vector<float>& values) {
  return n.constant(Tensor::f32({rows, columns}, values));
}

/// The kernel's values for one row of features and each support vector: [1, vectors].
Value* kernel_values(const Node& n, Value* x, Value* vectors) {
  const std::string kernel = n.text_or("kernel_type", "LINEAR");
  const std::vector<float> params = n.numbers_or("kernel_params", {0, 0, 3});
  if (params.size() < 3) n.malformed(cat(params.size(), " kernel_params: expected 3"));
  const auto gamma = static_cast<double>(params[0]), offset = static_cast<double>(params[1]);
  if (kernel == "RBF") {
    Value* difference = n.sub(vectors, x);
    Value* distance = n.reduce("reduce_sum", n.mul(difference, difference), {1}, false);
    return n.expand_dims(n.unary("exp", n.mul(distance, -gamma)), {0});
  }
  Value* y = n.matmul(x, vectors, false, true);
  if (kernel == "LINEAR") return y;
  y = n.add(n.mul(y, gamma), offset);
  if (kernel == "SIGMOID") return n.unary("tanh", y);
  if (kernel != "POLY") n.malformed(cat("kernel_type '", kernel, "'"));
  return n.binary("pow", y, n.scalar(static_cast<double>(params[2]), y));
}

/// The decisions of all pairs of classes, of which the first has the lower number: [1, pairs].
Value* decisions(const Node& n, Value* kernel, const std::vector<int64_t>& counts, int64_t vectors) {
  const auto k = static_cast<int64_t>(counts.size()), pairs = k * (k - 1) / 2;
  const std::vector<float> alpha = n.numbers_or("coefficients"), rho = n.numbers_or("rho");
  if (static_cast<int64_t>(alpha.size()) != (k - 1) * vectors || static_cast<int64_t>(rho.size()) != pairs)
    n.malformed(
        cat(alpha.size(), " coefficients and ", rho.size(), " rho for ", vectors, " vectors of ", k, " classes"));
  std::vector<float> table(static_cast<size_t>(pairs * vectors), 0);
  int64_t begin_i = 0, pair = 0;
  for (int64_t i = 0; i < k; begin_i += counts[static_cast<size_t>(i++)]) {
    int64_t begin_j = begin_i + counts[static_cast<size_t>(i)];
    for (int64_t j = i + 1; j < k; begin_j += counts[static_cast<size_t>(j++)], ++pair)
      for (const auto& [row, begin, count] : {std::tuple(j - 1, begin_i, counts[static_cast<size_t>(i)]),
                                              std::tuple(i, begin_j, counts[static_cast<size_t>(j)])})
        std::copy_n(alpha.begin() + row * vectors + begin, count, table.begin() + pair * vectors + begin);
  }
  return n.add(n.matmul(kernel, matrix(n, pairs, vectors, table), false, true), matrix(n, 1, pairs, rho));
}

/// The probability of the first class of each pair.
Value* pair_probabilities(const Node& n, Value* decisions, int64_t pairs) {
  const std::vector<float> a = n.numbers_or("prob_a"), b = n.numbers_or("prob_b");
  if (static_cast<int64_t>(a.size()) != pairs || static_cast<int64_t>(b.size()) != pairs)
    n.malformed(cat(a.size(), " prob_a and ", b.size(), " prob_b for ", pairs, " pairs of classes"));
  Value* line = n.add(n.mul(decisions, matrix(n, 1, pairs, a)), matrix(n, 1, pairs, b));
  Value* p = n.unary("sigmoid", n.mul(line, -1));
  constexpr double least = 1e-7;
  return n.op("clip", {{"x", p}, n.arg("alpha", least, p), n.arg("beta", 1 - least, p)});
}

/// The matrix Q of the problem "min p'Qp, the sum of p is 1": [k, k].
Value* coupling_matrix(const Node& n, Value* pairs_p, int64_t k) {
  const int64_t pairs = k * (k - 1) / 2;
  std::vector<float> upper(static_cast<size_t>(pairs * k * k), 0), ones(static_cast<size_t>(k * k), 0),
      eye(static_cast<size_t>(k * k), 0);
  int64_t pair = 0;
  for (int64_t i = 0; i < k; ++i) {
    eye[static_cast<size_t>(i * k + i)] = 1;
    for (int64_t j = i + 1; j < k; ++j, ++pair) {
      upper[static_cast<size_t>(pair * k * k + i * k + j)] = 1;
      upper[static_cast<size_t>(pair * k * k + j * k + i)] = -1;
      ones[static_cast<size_t>(j * k + i)] = 1;
    }
  }
  // r[i, j] is the probability of i in the pair of i and j.
  Value* r = n.add(n.matmul(pairs_p, matrix(n, pairs, k * k, upper)), matrix(n, 1, k * k, ones));
  r = n.reshape(r, {k, k});
  Value* own = n.reduce("reduce_sum", n.mul(r, r), {0}, true);
  return n.sub(n.mul(matrix(n, k, k, eye), own), n.mul(r, n.transpose(r, {1, 0})));
}

/// Class probabilities from pairwise ones as LIBSVM computes them: Wu, Lin and Weng, "Probability Estimates for
/// Multi-class Classification by Pairwise Coupling" (2004), second method. It stops early, and the result is not the
/// minimum itself, so the steps are the same here.
Value* coupled(const Node& n, Value* q, int64_t k) {
  const double tolerance = 0.005 / static_cast<double>(k);
  const auto limit = static_cast<double>(std::max<int64_t>(100, k));
  Value* start = matrix(n, 1, k, std::vector<float>(static_cast<size_t>(k), 1.0F / static_cast<float>(k)));
  Value* first = n.constant(Tensor::scalar_i64(DType::int32, 0));
  const auto product = [&](const Node& at, Value* p, Value*& qp) {
    qp = at.matmul(p, q, false, true);
    return at.reduce("reduce_sum", at.mul(p, qp), {1}, true);
  };
  const ir::Op* loop = append_while_loop(
      n, {first, start}, [&](const Node& at, size_t block, const std::vector<Value*>& in) -> std::vector<Value*> {
        Value *step = in[0], *p = in[1], *qp = nullptr;
        Value* pqp = product(at, p, qp);
        if (block == 0) {
          Value* error = at.reduce("reduce_max", at.unary("abs", at.sub(qp, pqp)), {0, 1}, false);
          Value* goes_on = at.binary("greater_equal", error, at.scalar(tolerance, error));
          return {at.binary("logical_and", at.binary("less", step, at.scalar(limit, step)), goes_on)};
        }
        for (int64_t t = 0; t < k; ++t) {
          std::vector<float> only(static_cast<size_t>(k), 0);
          only[static_cast<size_t>(t)] = 1;
          Value *row = at.slice(q, 0, t, t + 1), *own = at.slice(row, 1, t, t + 1), *qt = at.slice(qp, 1, t, t + 1);
          Value* d = at.div(at.sub(pqp, qt), own);
          Value* sum = at.add(d, 1);
          Value* moved = at.add(pqp, at.mul(d, at.add(at.mul(d, own), at.mul(qt, 2))));
          pqp = at.div(at.div(moved, sum), sum);
          p = at.div(at.add(p, at.mul(d, matrix(at, 1, k, only))), sum);
          qp = at.div(at.add(qp, at.mul(d, row)), sum);
        }
        return {at.add(step, 1), p};
      });
  return loop->output(1);
}

void svm_classifier(Node& n) {
  constexpr int64_t most_classes = 64;
  const Tensor labels = class_labels(n, "classlabels_strings", "classlabels_ints");
  const std::vector<int64_t> counts = n.integers_or("vectors_per_class");
  const std::vector<float> support = n.numbers_or("support_vectors");
  const auto k = static_cast<int64_t>(counts.size());
  // Each vector has a number or more.
  const bool fit =
      std::all_of(counts.begin(), counts.end(), [&](int64_t c) { return c >= 0 && c <= std::ssize(support); });
  const int64_t vectors = fit ? std::accumulate(counts.begin(), counts.end(), int64_t{0}) : -1;
  if (n.attribute("prob_a") == nullptr) n.unsupported("support vectors without probabilities (prob_a)");
  if (k < 2 || k != labels.count() || vectors < 1)
    n.malformed(cat(k, " classes of ", vectors, " vectors, ", labels.count(), " labels"));
  if (k > most_classes) n.unsupported(cat(k, " classes: expected at most ", most_classes));
  if (n.text_or("post_transform", "NONE") != "NONE") n.unsupported("a post_transform");
  Value* x = n.cast(n.in(0), DType::fp32);
  const Shape s = n.known_shape(x, "SVMClassifier");
  if (s.rank() != 2 || s[0] != 1) n.unsupported(cat("rows of shape ", s, ": expected one row"));
  if (static_cast<int64_t>(support.size()) != vectors * s[1])
    n.malformed(cat(support.size(), " support_vectors for ", vectors, " of ", s[1], " features"));
  Value* kernel = kernel_values(n, x, matrix(n, vectors, s[1], support));
  Value* pairs = pair_probabilities(n, decisions(n, kernel, counts, vectors), k * (k - 1) / 2);
  set_classified(n, labels, coupled(n, coupling_matrix(n, pairs, k), k));
}

constexpr OperatorImport kSupportVectorsOperators[] = {
    {"SVMClassifier", svm_classifier, "ai.onnx.ml"},
};

}  // namespace

std::span<const OperatorImport> operators_support_vectors() { return kSupportVectorsOperators; }

}  // namespace moka::import::onnx
