// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "import/onnx/call.h"
#include "import/onnx/subgraph.h"

namespace moka::import::onnx {
namespace {

void if_else(Node& n) {
  const Graph* graphs[] = {&graph_of(n, "then_branch"), &graph_of(n, "else_branch")};
  if (const Tensor* t = n.constant(0); t != nullptr) {
    const bool chosen = ir::load_i64(t->view(), 0) != 0;
    const std::vector<Item> out = inlined(n, *graphs[chosen ? 0 : 1], {});
    for (size_t i = 0; i < n.outputs() && i < out.size(); ++i)
      if (n.wants(i)) n.set(i, out[i]);
    return;
  }
  Value* cond = n.in(0);
  if (n.rank(cond) != 0) cond = n.reshape(cond, {});
  // A branch returns the elements of its sequences, as many as the other branch.
  constexpr size_t none = SIZE_MAX;
  struct Result {
    DataType type;
    size_t elements;  ///< `none`: a tensor
    bool operator==(const Result&) const = default;
  };
  std::vector<Result> results[2];
  const std::vector<std::vector<std::pair<std::string, ir::Type>>> inputs(2);
  const ir::Builder::BlockFn fill = [&](size_t branch, ir::Builder& builder) {
    return guarded([&] {
      Scope inner = scope_in(n, builder);
      run_graph(inner, *graphs[branch]);
      std::vector<Value*> out;
      for (const auto& output : graphs[branch]->outputs) {
        Item& item = inner.own(output.name);
        if (item.is_absent) n.computed_parameter(0, "the condition of branches that return no value");
        results[branch].push_back({item.type, item.is_sequence ? item.elements->size() : none});
        if (!item.is_sequence) {
          out.push_back(inner.result(item, output.name));
          continue;
        }
        for (Item element : *item.elements) out.push_back(inner.result(element, output.name));
      }
      return out;
    });
  };
  ir::OpSpec spec{"cond", {{"pred", cond}}, identifier(n.message.name.empty() ? "cond" : n.message.name), {}, {}};
  auto made = n.scope.builder.append_with_blocks(std::move(spec), inputs, fill);
  for (size_t i = 0; i < std::min(results[0].size(), results[1].size()); ++i)
    if (results[0][i].elements != results[1][i].elements)
      n.computed_parameter(0, "the condition of branches that return sequences of different lengths");
  ir::Op* op = need(std::move(made));
  size_t at = 0;
  for (size_t i = 0; i < results[0].size() && i < n.outputs(); ++i) {
    const auto [type, count] = results[0][i];
    if (count == none) {
      n.set(i, op->output(at++), type);
      continue;
    }
    Item sequence{nullptr, {}, type, true, false, std::make_shared<std::vector<Item>>()};
    for (size_t k = 0; k < count; ++k) sequence.elements->push_back({op->output(at++), {}, type});
    n.set(i, std::move(sequence));
  }
}

/// The body for each element of sequences of known length.
void sequence_map(Node& n) {
  const Graph& body = graph_of(n, "body");
  const Item first = n.item(0);
  if (!first.is_sequence) n.malformed("expected a sequence");
  std::vector<std::shared_ptr<std::vector<Item>>> results;
  for (size_t i = 0; i < n.outputs(); ++i) results.push_back(std::make_shared<std::vector<Item>>());
  for (size_t k = 0; k < first.elements->size(); ++k) {
    std::vector<Item> inputs;
    for (size_t i = 0; i < n.inputs(); ++i) {
      const Item item = n.item(i);
      if (item.is_sequence && k >= item.elements->size()) n.malformed("sequences of different lengths");
      inputs.push_back(item.is_sequence ? (*item.elements)[k] : item);
    }
    const std::vector<Item> out = inlined(n, body, inputs);
    for (size_t i = 0; i < n.outputs() && i < out.size(); ++i) results[i]->push_back(out[i]);
  }
  for (size_t i = 0; i < n.outputs(); ++i)
    if (n.wants(i)) n.set(i, Item{nullptr, {}, first.type, true, false, results[i]});
}

constexpr OperatorImport kControlOperators[] = {
    {"If", if_else},
    {"SequenceMap", sequence_map},
};

}  // namespace

std::span<const OperatorImport> operators_control() { return kControlOperators; }

}  // namespace moka::import::onnx
