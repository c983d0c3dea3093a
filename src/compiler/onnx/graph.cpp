// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/graph.h"

#include <algorithm>
#include <iterator>

namespace moka::compiler::onnx {
namespace {

void rename_in(ox::Graph& graph, const Name& from, const Name& to) {
  for (ox::Node& n : graph.nodes) {
    for (Name& i : n.inputs)
      if (i == from) i = to;
    for (Name& o : n.outputs)
      if (o == from) o = to;
    for (ox::Attribute& a : n.attributes)
      for (ox::Graph& g : a.graphs) rename_in(g, from, to);
  }
  for (ox::ValueInfo& v : graph.outputs)
    if (v.name == from) v.name = to;
}

}  // namespace

DataType data_type(DType type) {
  switch (type) {
    case DType::fp16: return DataType::float16;
    case DType::fp32: return DataType::float32;
    case DType::fp64: return DataType::float64;
    case DType::bf16: return DataType::bfloat16;
    case DType::fp8e4m3fn: return DataType::float8e4m3fn;
    case DType::fp8e5m2: return DataType::float8e5m2;
    case DType::int4: return DataType::int4;
    case DType::uint4: return DataType::uint4;
    case DType::int8: return DataType::int8;
    case DType::int16: return DataType::int16;
    case DType::int32: return DataType::int32;
    case DType::int64: return DataType::int64;
    case DType::uint1:
    case DType::uint2:
    case DType::uint3:
    case DType::uint6:
    case DType::uint8: return DataType::uint8;
    case DType::uint16: return DataType::uint16;
    case DType::uint32: return DataType::uint32;
    case DType::uint64: return DataType::uint64;
    case DType::boolean: return DataType::boolean;
    case DType::string: return DataType::string;
    case DType::none: break;
  }
  return DataType::undefined;
}

namespace {

void take_names(const ir::Block& block, std::unordered_set<std::string>& taken) {
  for (const auto& v : block.inputs()) taken.insert(v->name);
  for (const auto& op : block.ops()) {
    for (size_t i = 0; i < op->output_count(); i++) taken.insert(op->output(i)->name);
    for (size_t i = 0; i < op->block_count(); i++) take_names(*op->block(i), taken);
  }
}

}  // namespace

Graph::Graph(const ir::Function& function, int opset, bool may_raise)
    : scopes_(1), opset_(opset), required_(opset), may_raise_(may_raise) {
  take_names(function.body(), taken_);
}

bool Graph::wants(int opset) {
  if (may_raise_) required_ = std::max(required_, opset);
  return may_raise_ || opset_ >= opset;
}

Name Graph::fresh(const std::string& base) {
  Name name = base;
  for (int i = 1; !taken_.insert(name).second; i++) name = cat(base, "_", i);
  return name;
}

Name Graph::value(const ir::Value* v) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto it = scope->values.find(v); it != scope->values.end()) return it->second;
    const auto it = scope->int64s.find(v);
    if (it == scope->int64s.end()) continue;
    const Name made = cast(it->second, data_type(v->type.dtype()), v->name);
    return scopes_.back().values[v] = made;
  }
  if (const ir::Constant* c = v->constant(); c != nullptr && !c->tensor.empty_handle()) {
    return scopes_[0].values[v] = tensor(c->tensor);
  }
  return {};
}

Name Graph::int64(const ir::Value* v) {
  if (const ir::Constant* c = v->constant();
      c != nullptr && !c->tensor.empty_handle() && ir::is_integer(c->tensor.dtype())) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < c->tensor.count(); i++) values.push_back(ir::load_i64(c->tensor.view(), i));
    if (c->tensor.shape().rank() == 1) return int64s(values);
    if (c->tensor.shape().rank() == 0) return int64_scalar(values[0]);
    ox::Tensor t;
    t.type = DataType::int64;
    t.dims = c->tensor.shape().to_vector();
    t.raw = Bytes::copy_of(std::as_bytes(std::span(values)));
    return initializer(std::move(t));
  }
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto it = scope->int64s.find(v); it != scope->int64s.end()) return it->second;
    if (scope->values.contains(v)) break;
  }
  const Name x = value(v);
  if (x.empty() || v->type.dtype() == DType::int64) return x;
  return scopes_.back().int64s[v] = cast(x, DataType::int64, v->name + "_int64");
}

bool Graph::has_int64(const ir::Value* v) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (scope->values.contains(v) || scope->int64s.contains(v)) return !scope->values.contains(v);
  return v->constant() != nullptr && v->type.is_tensor() && v->type.dtype() == DType::int32;
}

void Graph::set(const ir::Value* v, const Name& name) {
  scopes_.back().values[v] = name;
  scopes_.back().int64s.erase(v);
}
void Graph::set_int64(const ir::Value* v, const Name& name) {
  scopes_.back().int64s[v] = name;
  scopes_.back().values.erase(v);
}

Name Graph::initializer(ox::Tensor t) {
  const size_t bytes = t.raw ? t.raw->size() : 0;
  std::string kind = cat(static_cast<int>(t.type));
  for (int64_t d : t.dims) kind += cat(",", d);
  constexpr size_t few = 64;
  const auto make = [&] {
    if (t.name.empty()) t.name = "constant";
    t.name = fresh(t.name);
    constants_.insert(t.name);
    scopes_[0].graph.initializers.push_back(t);
    return t.name;
  };
  if (!t.raw) {
    std::string key = kind;
    for (const std::string& s : t.strings) key += cat("\n", s.size(), ":", s);
    auto [it, is_new] = small_.try_emplace(std::move(key));
    if (is_new) it->second = make();
    return it->second;
  }
  if (bytes <= few) {
    auto [it, is_new] = small_.try_emplace(cat(kind, "|", t.raw->text()));
    if (is_new) it->second = make();
    return it->second;
  }
  auto [it, is_new] = large_.try_emplace({t.raw->data(), bytes, kind});
  if (is_new) it->second = make();
  return it->second;
}

Name Graph::tensor(const ir::Tensor& t) {
  ox::Tensor out;
  out.type = data_type(t.dtype());
  out.dims = t.shape().to_vector();
  if (t.dtype() == DType::string) {
    for (int64_t i = 0; i < t.count(); i++) out.strings.push_back(t.as<std::string>()[static_cast<size_t>(i)]);
    return initializer(std::move(out));
  }
  const bool unpack = ir::is_sub_byte(t.dtype()) && out.type == DataType::uint8;
  if (unpack) {
    std::vector<std::byte> bytes(static_cast<size_t>(t.count()));
    for (int64_t i = 0; i < t.count(); i++) bytes[static_cast<size_t>(i)] = std::byte(ir::load_i64(t.view(), i));
    out.raw = Bytes::copy_of(bytes);
  } else {
    out.raw = Bytes{{static_cast<const std::byte*>(t.data()), t.bytes()}, t.owner()};
    if (t.bytes() <= 64) out.raw = Bytes::copy_of(out.raw->span);
  }
  return initializer(std::move(out));
}

Name Graph::int64s(std::span<const int64_t> values) {
  ox::Tensor t;
  t.type = DataType::int64;
  t.dims = {static_cast<int64_t>(values.size())};
  t.raw = Bytes::copy_of(std::as_bytes(values));
  return initializer(std::move(t));
}

Name Graph::int64_scalar(int64_t v) { return tensor(ir::Tensor::scalar_i64(DType::int64, v)); }

Name Graph::number(DType type, double v) {
  if (type == DType::boolean) return tensor(ir::Tensor::boolean(v != 0));
  if (ir::is_integer(type)) return tensor(ir::Tensor::scalar_i64(type, static_cast<int64_t>(v)));
  return tensor(ir::Tensor::scalar(type, v));
}

std::vector<Name> Graph::nodes(const char* type, std::vector<Name> inputs, std::vector<ox::Attribute> attributes,
                               size_t outputs, const std::string& base, const char* domain) {
  ox::Node n;
  n.op_type = type;
  n.domain = domain;
  if (*domain != 0) ml_domain.insert(domain);
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  n.inputs = std::move(inputs);
  n.attributes = std::move(attributes);
  for (size_t i = 0; i < outputs; i++) n.outputs.push_back(fresh(cat(base, "/", type)));
  n.name = n.outputs.empty() ? base : n.outputs[0];
  std::vector<Name> out = n.outputs;
  scopes_.back().graph.nodes.push_back(std::move(n));
  node_count++;
  return out;
}

Name Graph::cast(const Name& x, DataType to, const std::string& base) {
  return nodes("Cast", {x}, {attr("to", static_cast<int64_t>(to))}, 1, base)[0];
}

void Graph::open() { scopes_.emplace_back(); }

ox::Graph Graph::close(const std::string& name) {
  ox::Graph out = std::move(scopes_.back().graph);
  scopes_.pop_back();
  out.name = name;
  return out;
}

Graph::InMainGraph::InMainGraph(Graph& graph) : graph_(graph) {
  const auto first = graph.scopes_.begin() + 1;
  inner_.assign(std::make_move_iterator(first), std::make_move_iterator(graph.scopes_.end()));
  graph.scopes_.erase(first, graph.scopes_.end());
}

Graph::InMainGraph::~InMainGraph() {
  graph_.scopes_.insert(graph_.scopes_.end(), std::make_move_iterator(inner_.begin()),
                        std::make_move_iterator(inner_.end()));
}

void Graph::rename(const Name& from, const Name& to) {
  for (Scope& s : scopes_) {
    rename_in(s.graph, from, to);
    for (auto* names : {&s.values, &s.int64s})
      for (auto& [v, n] : *names)
        if (n == from) n = to;
  }
  for (auto& [v, n] : states)
    if (n == from) n = to;
}

bool Graph::rename_recent(const Name& from, const Name& to, size_t first) {
  std::vector<ox::Node>& nodes = scopes_.back().graph.nodes;
  size_t maker = first;
  while (maker < nodes.size() &&
         std::find(nodes[maker].outputs.begin(), nodes[maker].outputs.end(), from) == nodes[maker].outputs.end())
    maker++;
  if (maker >= nodes.size() || !claim(to)) return false;
  if (nodes[maker].name == from) nodes[maker].name = to;
  std::replace(nodes[maker].outputs.begin(), nodes[maker].outputs.end(), from, to);
  for (size_t i = maker + 1; i < nodes.size(); i++)
    std::replace(nodes[i].inputs.begin(), nodes[i].inputs.end(), from, to);
  return true;
}

ox::ValueInfo value_info(const std::string& name, const ir::Type& type) {
  ox::ValueInfo out;
  out.name = name;
  if (type.is_dict()) {
    out.type.kind = ox::Type::Kind::map;
    out.type.element = data_type(type.element(0).dtype());
    ox::Type inner;
    inner.kind = ox::Type::Kind::tensor;
    inner.element = DataType::float32;  // onnxruntime's Python interface makes no others
    inner.shape.emplace();
    out.type.inner = std::make_shared<const ox::Type>(std::move(inner));
    return out;
  }
  out.type.kind = ox::Type::Kind::tensor;
  out.type.element = data_type(type.dtype());
  if (!type.is_ranked()) return out;
  out.type.shape.emplace();
  for (int i = 0; i < type.rank(); i++) {
    ox::Dimension d;
    const int64_t size = type.shape()[i];
    if (size >= 0)
      d.value = size;
    else if (size != ir::kAnyDim)
      d.param = cat("size_", -size - 1);
    out.type.shape->push_back(std::move(d));
  }
  return out;
}

}  // namespace moka::compiler::onnx
