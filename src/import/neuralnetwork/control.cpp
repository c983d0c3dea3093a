#include "import/neuralnetwork/control.h"

namespace moka::import::nn {

namespace {
constexpr int kMaxNesting = 8;
}

void collect_outputs(const proto::NeuralNetwork& n, Names& names, int depth) {
  if (depth > 64) return;
  for (const auto& layer : n.layers()) {
    names.insert(layer.output().begin(), layer.output().end());
    if (layer.has_branch()) {
      collect_outputs(layer.branch().ifbranch(), names, depth + 1);
      collect_outputs(layer.branch().elsebranch(), names, depth + 1);
    } else if (layer.has_loop()) {
      collect_outputs(layer.loop().conditionnetwork(), names, depth + 1);
      collect_outputs(layer.loop().bodynetwork(), names, depth + 1);
    }
  }
}

void collect_inputs(const proto::NeuralNetwork& n, Names& names, int depth) {
  if (depth > 64) return;
  for (const auto& layer : n.layers()) {
    names.insert(layer.input().begin(), layer.input().end());
    if (layer.has_branch()) {
      collect_inputs(layer.branch().ifbranch(), names, depth + 1);
      collect_inputs(layer.branch().elsebranch(), names, depth + 1);
    } else if (layer.has_loop()) {
      collect_inputs(layer.loop().conditionnetwork(), names, depth + 1);
      collect_inputs(layer.loop().bodynetwork(), names, depth + 1);
    }
  }
}

Status check_nesting(const Layer& l) {
  if (l.net.nesting >= kMaxNesting)
    return l.unsupported(cat("branches and loops nested more than ", kMaxNesting, " deep"));
  return {};
}

Result<Value*> condition(Network& net, Value* v, std::string_view name) {
  const bool one = v->type.is_concrete() && v->type.shape().count() == 1;
  if (!one) {
    v = MOKA_TRY(net.op("reshape", {{"x", v}, {"shape", Tensor::i32({-1})}}, name));
    v = MOKA_TRY(net.op("slice_by_index", {{"x", v}, {"begin", Tensor::i32({0})}, {"end", Tensor::i32({1})}}, name));
  }
  if (v->type.rank() != 0) v = MOKA_TRY(net.op("squeeze", {{"x", v}}, name));
  v = MOKA_TRY(net.op("abs", {{"x", v}}, name));
  return net.op("greater", {{"x", v}, {"y", 1e-6f}}, name);
}

}  // namespace moka::import::nn
