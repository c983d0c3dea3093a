#include <algorithm>

#include "import/onnx/call.h"
#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

using format::onnx::Graph;

const Graph& graph_of(const Node& n, std::string_view name) {
  const Attribute* a = n.attribute(name);
  if (a == nullptr || a->graphs.empty()) n.malformed(cat("the graph '", name, "' is missing"));
  return a->graphs[0];
}

Scope scope_in(const Node& n, ir::Builder& builder) {
  Scope inner(n.scope.context, builder, n.scope.opsets, &n.scope);
  inner.attributes = n.scope.attributes;
  return inner;
}

/// The outputs of a graph whose inputs are these.
std::vector<Item> inlined(const Node& n, const Graph& graph, const std::vector<Item>& inputs) {
  Scope inner = scope_in(n, n.scope.builder);
  if (inputs.size() != graph.inputs.size())
    n.malformed(cat("the graph has ", graph.inputs.size(), " inputs, expected ", inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) inner.add(graph.inputs[i].name, inputs[i]);
  run_graph(inner, graph);
  std::vector<Item> out;
  for (const auto& output : graph.outputs) out.push_back(inner.own(output.name));
  return out;
}

/// Runs `fill` in a block and turns what it throws into an error, which the builder passes on.
template <class Fill>
Result<std::vector<Value*>> guarded(const Fill& fill) {
  try {
    return fill();
  } catch (Failure& f) {
    return std::move(f.error);
  }
}

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
  std::vector<DataType> types;
  const std::vector<std::vector<std::pair<std::string, ir::Type>>> inputs(2);
  const ir::Builder::BlockFn fill = [&](size_t i, ir::Builder& builder) {
    return guarded([&] {
      Scope inner = scope_in(n, builder);
      run_graph(inner, *graphs[i]);
      std::vector<Value*> out;
      for (const auto& output : graphs[i]->outputs) {
        out.push_back(inner.result(output.name));
        if (i == 0) types.push_back(inner.own(output.name).type);
      }
      return out;
    });
  };
  ir::OpSpec spec{"cond", {{"pred", cond}}, identifier(n.message.name.empty() ? "cond" : n.message.name), {}, {}};
  ir::Op* op = need(n.scope.builder.append_with_blocks(std::move(spec), inputs, fill));
  for (size_t i = 0; i < n.outputs() && i < op->output_count(); ++i) n.set(i, op->output(i), types[i]);
}

/// Whether the body of a loop passes its condition on, or sets it to true.
bool goes_on(const Graph& body) {
  if (body.outputs.empty() || body.inputs.size() < 2) return false;
  std::string name = body.outputs[0].name;
  for (size_t i = body.nodes.size(); i-- > 0;) {
    const format::onnx::Node& node = body.nodes[i];
    if (std::find(node.outputs.begin(), node.outputs.end(), name) == node.outputs.end()) continue;
    if (node.op_type == "Constant") return true;  // the first iteration tells its value
    if (node.op_type != "Identity" && node.op_type != "Cast") return false;
    name = node.inputs.at(0);
  }
  return name == body.inputs[1].name ||
         std::any_of(body.initializers.begin(), body.initializers.end(), [&](const auto& t) { return t.name == name; });
}

/// One tensor of the slices along a new axis.
Item stacked(const Node& n, const std::vector<Item>& items, const std::vector<std::string>& names, int64_t axis) {
  std::vector<Value*> values;
  for (Item item : items) values.push_back(n.scope.value(item, names[0]));
  if (axis < 0) axis += n.rank(values[0]) + 1;
  return Item{n.op("stack", {NamedArg("values", values), {"axis", static_cast<int>(axis)}}), {}, items[0].type};
}

Item scalar_item(const Node& n, Tensor t, DataType type) {
  (void)n;
  return Item{nullptr, std::move(t), type};
}

void unrolled(Node& n, const Graph& body, int64_t count) {
  const size_t carried = n.inputs() - 2;
  std::vector<Item> state;
  for (size_t i = 0; i < carried; ++i) state.push_back(n.item(i + 2));
  std::vector<std::vector<Item>> scans(body.outputs.size() - 1 - carried);
  for (int64_t k = 0; k < count; ++k) {
    std::vector<Item> inputs{scalar_item(n, Tensor::scalar_i64(DType::int64, k), DataType::int64),
                             scalar_item(n, Tensor::boolean(true), DataType::boolean)};
    inputs.insert(inputs.end(), state.begin(), state.end());
    std::vector<Item> out = inlined(n, body, inputs);
    for (size_t i = 0; i < carried; ++i) state[i] = out[i + 1];
    for (size_t i = 0; i < scans.size(); ++i) scans[i].push_back(out[i + 1 + carried]);
    Item& going = out[0];
    const Tensor* flag = going.is_constant()      ? &going.tensor
                         : going.value != nullptr ? constant_of(going.value)
                                                  : nullptr;
    if (flag != nullptr && ir::load_i64(flag->view(), 0) == 0) break;
  }
  for (size_t i = 0; i < carried; ++i)
    if (n.wants(i)) n.set(i, state[i]);
  for (size_t i = 0; i < scans.size(); ++i) {
    if (!n.wants(carried + i)) continue;
    if (scans[i].empty()) n.unsupported("a loop without iterations that collects values");
    n.set(carried + i, stacked(n, scans[i], {"scan"}, 0));
  }
}

/// The shape of what a loop collects in each iteration, which must be known before the loop runs.
Shape element_shape(const Node& n, const format::onnx::ValueInfo& info) {
  Shape out;
  if (!info.type.shape) n.unsupported(cat("output '", info.name, "' of the loop's body: its shape is not declared"));
  for (const auto& d : *info.type.shape) {
    if (!d.value || out.rank() == ir::kMaxRank)
      n.unsupported(cat("output '", info.name, "' of the loop's body: its declared shape is not known"));
    out.push_back(*d.value);
  }
  return out;
}

void while_loop(Node& n, const Graph& body) {
  const size_t carried = n.inputs() > 2 ? n.inputs() - 2 : 0;
  if (body.outputs.size() < 1 + carried) n.malformed("the body has fewer outputs than the loop carries values");
  const size_t scans = body.outputs.size() - 1 - carried;
  ir::Builder& builder = n.scope.builder;
  const auto name = [&](std::string_view what) {
    return builder.function().unique_name(cat(identifier(n.message.op_type), "_", what));
  };
  const auto scalar = [&](Value* v) { return n.rank(v) == 0 ? v : n.reshape(v, {}); };
  Value* limit = n.has(0) ? scalar(n.in(0)) : nullptr;
  Value* going = n.has(1) ? scalar(n.in(1)) : n.constant(Tensor::boolean(true));
  std::vector<Value*> vars{n.constant(Tensor::scalar_i64(DType::int32, 0)), going};
  std::vector<DataType> types;
  for (size_t i = 0; i < carried; ++i) {
    vars.push_back(n.in(i + 2));
    types.push_back(n.type(i + 2));
  }
  for (size_t i = 0; i < scans; ++i) {
    const auto& info = body.outputs[1 + carried + i];
    types.push_back(info.type.element);
    const Shape shape = element_shape(n, info);
    std::vector<Value*> sizes;
    for (const int64_t d : shape) sizes.push_back(n.constant(Tensor::scalar_i64(DType::int32, d)));
    NamedArg elements("elem_shape", sizes);
    elements.tuple = true;
    vars.push_back(n.op("make_list", {{"init_length", 1},
                                      {"dynamic_length", true},
                                      elements,
                                      {"dtype", std::string(ir::to_string(computed_as(info.type.element)))}}));
  }
  std::vector<std::pair<std::string, ir::Type>> inputs;
  for (Value* v : vars) inputs.emplace_back(name("var"), v->type);
  const std::vector<std::vector<std::pair<std::string, ir::Type>>> block_inputs(2, inputs);
  const ir::Builder::BlockFn fill = [&](size_t which, ir::Builder& inside) {
    return guarded([&]() -> std::vector<Value*> {
      std::vector<Value*> in;
      for (const auto& v : inside.block().inputs()) in.push_back(v.get());
      Scope inner = scope_in(n, inside);
      Node at(inner, n.message, n.opset);
      if (which == 0) {
        if (limit == nullptr) return {at.unary("identity", in[1])};
        return {at.binary("logical_and", at.binary("less", in[0], limit), in[1])};
      }
      inner.add(body.inputs[0].name, Item{in[0], {}, DataType::int64});
      inner.add(body.inputs[1].name, Item{in[1], {}, DataType::boolean});
      for (size_t i = 0; i < carried; ++i) inner.add(body.inputs[i + 2].name, Item{in[i + 2], {}, types[i]});
      run_graph(inner, body);
      std::vector<Value*> out{at.add(in[0], 1)};
      Value* on = inner.result(body.outputs[0].name);
      out.push_back(at.rank(on) == 0 ? on : at.reshape(on, {}));
      for (size_t i = 0; i < carried; ++i) out.push_back(inner.result(body.outputs[i + 1].name));
      for (size_t i = 0; i < scans; ++i)
        out.push_back(at.op("list_write", {{"ls", in[2 + carried + i]},
                                           {"index", in[0]},
                                           {"value", inner.result(body.outputs[1 + carried + i].name)}}));
      return out;
    });
  };
  if (body.inputs.size() != carried + 2)
    n.malformed(cat("the body has ", body.inputs.size(), " inputs, expected ", carried + 2));
  ir::OpSpec spec{"while_loop", {NamedArg("loop_vars", vars)}, name("loop"), {}, {}};
  spec.args[0].tuple = true;
  ir::Op* op = need(builder.append_with_blocks(std::move(spec), block_inputs, fill));
  for (size_t i = 0; i < carried; ++i) n.set(i, op->output(i + 2), types[i]);
  for (size_t i = 0; i < scans; ++i) {
    if (!n.wants(carried + i)) continue;
    Value* all = n.op("range_1d", {{"end", op->output(0)}, {"start", 0}, {"step", 1}});
    n.set(carried + i, n.op("list_gather", {{"ls", op->output(2 + carried + i)}, {"indices", all}}),
          types[carried + i]);
  }
}

/// Loops of few known iterations are written out, so that sizes inside them are known.
void loop(Node& n) {
  constexpr int64_t most = 64;
  const Graph& body = graph_of(n, "body");
  const Tensor* count = n.has(0) ? n.constant(0) : nullptr;
  const Tensor* start = n.has(1) ? n.constant(1) : nullptr;
  const bool starts = !n.has(1) || (start != nullptr && ir::load_i64(start->view(), 0) != 0);
  const int64_t k = count != nullptr ? ir::load_i64(count->view(), 0) : most + 1;
  if (n.inputs() < 2) n.malformed("expected two inputs or more");
  if (body.outputs.size() < n.inputs() - 1) n.malformed("the body has fewer outputs than the loop carries values");
  if (starts && k > 0 && k <= most && goes_on(body)) return unrolled(n, body, k);
  while_loop(n, body);
}

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
    give(states + i, stacked(n, results[i], {"scan"}, out_axes[i]));
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
    {"Loop", loop},
    {"Scan", scan},
    {"SequenceMap", sequence_map},
};

}  // namespace

std::span<const OperatorImport> operators_control() { return kControlOperators; }

}  // namespace moka::import::onnx
