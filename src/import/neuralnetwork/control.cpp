// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/control.h"

namespace moka::import::nn {

namespace {

constexpr int kMaxNesting = 8;

template <class F>
void for_each_layer(const proto::NeuralNetwork& n, const F& fn, int depth = 0);

/// Calls `fn` for the layer and for every layer of branches and loops inside it.
template <class F>
void for_each_inside(const proto::NeuralNetworkLayer& layer, const F& fn, int depth = 0) {
  fn(layer);
  for (const proto::NeuralNetwork* inner : networks_inside(layer)) for_each_layer(*inner, fn, depth + 1);
}

template <class F>
void for_each_layer(const proto::NeuralNetwork& n, const F& fn, int depth) {
  if (depth > 64) return;
  for (const auto& layer : n.layers()) for_each_inside(layer, fn, depth);
}

}  // namespace

std::vector<const proto::NeuralNetwork*> networks_inside(const proto::NeuralNetworkLayer& layer) {
  if (layer.has_branch()) return {&layer.branch().ifbranch(), &layer.branch().elsebranch()};
  if (layer.has_loop()) return {&layer.loop().conditionnetwork(), &layer.loop().bodynetwork()};
  return {};
}

Names outputs_of(const proto::NeuralNetwork& n) {
  Names names;
  for_each_layer(n, [&](const auto& layer) { names.insert(layer.output().begin(), layer.output().end()); });
  return names;
}

Names inputs_of(const proto::NeuralNetwork& n) {
  Names names;
  for_each_layer(n, [&](const auto& layer) { names.insert(layer.input().begin(), layer.input().end()); });
  return names;
}

Names outputs_of(const proto::NeuralNetworkLayer& layer) {
  Names names;
  for_each_inside(layer, [&](const auto& l) { names.insert(l.output().begin(), l.output().end()); });
  return names;
}

Names inputs_of(const proto::NeuralNetworkLayer& layer) {
  Names names;
  for_each_inside(layer, [&](const auto& l) { names.insert(l.input().begin(), l.input().end()); });
  return names;
}

bool has_custom(const proto::NeuralNetworkLayer& layer) {
  bool out = false;
  for_each_inside(layer, [&](const auto& l) { out |= l.has_custom(); });
  return out;
}

std::vector<bool> needed(const google::protobuf::RepeatedPtrField<proto::NeuralNetworkLayer>& layers, Names wanted) {
  std::vector<bool> out(static_cast<size_t>(layers.size()));
  for (int i = layers.size(); i-- > 0;) {
    bool is = false;
    for_each_inside(layers[i], [&](const auto& l) {
      for (const std::string& name : l.output()) is |= wanted.contains(name);
    });
    out[static_cast<size_t>(i)] = is;
    if (!is) continue;
    for_each_inside(layers[i], [&](const auto& l) {
      wanted.insert(l.input().begin(), l.input().end());
      if (l.has_loop()) wanted.insert(l.loop().conditionvar());
    });
  }
  return out;
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
