// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

/// The negative log likelihood of the labels, each times the weight of its class.
void set_loss(Node& n, Value* log_probabilities, Value* labels, Value* weight) {
  const std::string reduction = n.text_or("reduction", "mean");
  const Attribute* ignored = n.attribute("ignore_index");
  Value* used = labels;
  Value* kept = nullptr;
  if (ignored != nullptr) {
    kept = n.binary("not_equal", labels, n.scalar(static_cast<double>(ignored->integer), labels));
    used = n.select(kept, labels, n.mul(labels, 0.0));
  }
  Value* picked =
      n.op("gather_along_axis", {{"x", log_probabilities}, {"indices", n.expand_dims(used, {1})}, {"axis", 1}});
  Value* loss = n.mul(n.squeeze(picked, {1}), -1);
  Value* factors = nullptr;
  if (weight != nullptr) factors = n.op("gather", {{"x", weight}, {"indices", used}, {"axis", 0}});
  if (factors != nullptr) loss = n.mul(loss, factors);
  if (kept != nullptr) {
    Value* zero = n.scalar(0, loss);
    loss = n.select(kept, loss, zero);
    factors = factors == nullptr ? n.cast(kept, loss->type.dtype()) : n.select(kept, factors, zero);
  }
  if (reduction == "none") return n.set(0, loss, n.type(0));
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < n.rank(loss); ++i) axes.push_back(i);
  Value* sum = n.reduce("reduce_sum", loss, axes, false);
  if (reduction == "sum") return n.set(0, sum, n.type(0));
  if (factors == nullptr) return n.set(0, n.reduce("reduce_mean", loss, axes, false), n.type(0));
  n.set(0, n.div(sum, n.reduce("reduce_sum", factors, axes, false)), n.type(0));
}

void negative_log_likelihood(Node& n) { set_loss(n, n.in(0), n.in(1), n.maybe(2)); }

void softmax_cross_entropy(Node& n) {
  Value* x = n.in(0);
  Value* shifted = n.sub(x, n.reduce("reduce_max", x, {1}, true));
  Value* logs = n.sub(shifted, n.reduce("reduce_log_sum_exp", shifted, {1}, true));
  set_loss(n, logs, n.in(1), n.maybe(2));
  n.set(1, logs);
}

constexpr OperatorImport kLossOperators[] = {
    {"NegativeLogLikelihoodLoss", negative_log_likelihood},
    {"SoftmaxCrossEntropyLoss", softmax_cross_entropy},
};

}  // namespace

std::span<const OperatorImport> operators_loss() { return kLossOperators; }

}  // namespace moka::import::onnx
