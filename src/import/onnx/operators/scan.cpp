// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "import/onnx/call.h"
#include "import/onnx/subgraph.h"

namespace moka::import::onnx {
namespace {

void scan(Node& n) {
  constexpr int64_t most = 1024;
  const Graph& body = graph_of(n, "body");
  const bool older = n.opset < 9;
  const size_t first = older ? 1 : 0;
  const auto scanned = static_cast<size_t>(n.integer_or("num_scan_inputs", 1));
  if (n.inputs() < scanned + first || body.outputs.size() + scanned + first < n.inputs())
    n.malformed(cat("num_scan_inputs of ", scanned, " for ", n.inputs(), " inputs"));
  if (older && n.has(0)) n.unsupported("sequence_lens");
  const size_t states = n.inputs() - scanned - first;
  const size_t outputs = body.outputs.size() - states;
  // Before opset 9 everything has a batch axis. One of size 1 is dropped.
  const auto input = [&](size_t i) {
    Item item = n.item(i + first);
    if (!older) return item;
    Value* v = n.in(i + first);
    if (n.known_shape(v, "Scan of opset 8")[0] != 1) n.unsupported("Scan of opset 8 with a batch of more than one");
    return Item{n.squeeze(v, {0}), {}, item.type};
  };
  const std::vector<int64_t> axes = n.integers_or("scan_input_axes", std::vector<int64_t>(scanned, 0)),
                             directions = n.integers_or(older ? "directions" : "scan_input_directions",
                                                        std::vector<int64_t>(scanned, 0)),
                             out_axes = n.integers_or("scan_output_axes", std::vector<int64_t>(outputs, 0)),
                             out_directions = n.integers_or("scan_output_directions", std::vector<int64_t>(outputs, 0));
  if (axes.size() != scanned || directions.size() != scanned || out_axes.size() != outputs ||
      out_directions.size() != outputs)
    n.malformed("axes or directions for another number of inputs or outputs");
  std::vector<Item> state, sequences;
  for (size_t i = 0; i < states; ++i) state.push_back(input(i));
  for (size_t i = 0; i < scanned; ++i) sequences.push_back(input(states + i));
  int64_t length = 0;
  std::vector<Value*> values;
  std::vector<int64_t> along;
  for (size_t i = 0; i < scanned; ++i) {
    values.push_back(n.scope.value(sequences[i], n.message.inputs[states + i + first]));
    along.push_back(n.axis(axes[i], values[i]));
    length = n.known_shape(values[i], "Scan")[static_cast<int>(along[i])];
  }
  if (length > most) n.unsupported(cat("a Scan over ", length, " elements: expected at most ", most));
  std::vector<std::vector<Item>> results(outputs);
  for (int64_t k = 0; k < length; ++k) {
    std::vector<Item> inputs = state;
    for (size_t i = 0; i < scanned; ++i) {
      const int64_t at = directions[i] == 0 ? k : length - 1 - k;
      inputs.push_back({n.squeeze(n.slice(values[i], along[i], at, at + 1), {along[i]}), {}, sequences[i].type});
    }
    std::vector<Item> out = inlined(n, body, inputs);
    for (size_t i = 0; i < states; ++i) state[i] = out[i];
    for (size_t i = 0; i < outputs; ++i) results[i].push_back(out[states + i]);
  }
  const auto give = [&](size_t i, Item item) {
    if (!n.wants(i)) return;
    if (older) item = Item{n.expand_dims(n.scope.value(item, n.message.outputs[i]), {0}), {}, item.type};
    n.set(i, std::move(item));
  };
  for (size_t i = 0; i < states; ++i) give(i, state[i]);
  for (size_t i = 0; i < outputs; ++i) {
    if (out_directions[i] != 0) std::reverse(results[i].begin(), results[i].end());
    if (results[i].empty()) n.unsupported("a Scan over nothing");
    give(states + i, stacked(n, results[i], out_axes[i]));
  }
}

constexpr OperatorImport kScanOperators[] = {
    {"Scan", scan},
};

}  // namespace

std::span<const OperatorImport> operators_scan() { return kScanOperators; }

}  // namespace moka::import::onnx
