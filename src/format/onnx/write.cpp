// SPDX-License-Identifier: Apache-2.0
#include "format/onnx/write.h"

#include "format/onnx/fields.h"
#include "format/onnx/writer.h"

namespace moka::format::onnx {

Rope Writer::node(const Node& n) {
  MessageWriter out;
  for (const std::string& name : n.inputs) out.text_always(field::node::input, name);
  for (const std::string& name : n.outputs) out.text_always(field::node::output, name);
  out.text(field::node::name, n.name);
  out.text(field::node::op_type, n.op_type);
  for (const Attribute& a : n.attributes) out.message(field::node::attribute, attribute(a));
  out.text(field::node::doc_string, n.doc_string);
  out.text(field::node::domain, n.domain);
  out.text(field::node::overload, n.overload);
  properties(out, field::node::metadata, n.metadata);
  return std::move(out).take();
}

Rope Writer::attribute(const Attribute& a) {
  using Kind = Attribute::Kind;
  MessageWriter out;
  out.text(field::attribute::name, a.name);
  const bool referred = !a.reference.empty();
  const auto tensors = [&](uint32_t number) {
    for (const Tensor& t : a.tensors) out.message(number, tensor(t));
  };
  const auto graphs = [&](uint32_t number) {
    for (const Graph& g : a.graphs) out.message(number, graph(g));
  };
  const auto sparse = [&](uint32_t number) {
    for (const SparseTensor& s : a.sparse_tensors) out.message(number, sparse_tensor(s));
  };
  const auto types = [&](uint32_t number) {
    for (const Type& t : a.types) out.message(number, type(t));
  };
  if (!referred) switch (a.kind) {
      case Kind::undefined: break;
      case Kind::number: out.number(field::attribute::number, a.number); break;
      case Kind::integer: out.integer_always(field::attribute::integer, a.integer); break;
      case Kind::string: out.text_always(field::attribute::string, a.string); break;
      case Kind::tensor: tensors(field::attribute::tensor); break;
      case Kind::graph: graphs(field::attribute::graph); break;
      case Kind::numbers:
        for (const float v : a.numbers) out.number(field::attribute::numbers, v);
        break;
      case Kind::integers:
        for (const int64_t v : a.integers) out.integer_always(field::attribute::integers, v);
        break;
      case Kind::strings:
        for (const std::string& s : a.strings) out.text_always(field::attribute::strings, s);
        break;
      case Kind::tensors: tensors(field::attribute::tensors); break;
      case Kind::graphs: graphs(field::attribute::graphs); break;
      case Kind::sparse_tensor: sparse(field::attribute::sparse_tensor); break;
      case Kind::sparse_tensors: sparse(field::attribute::sparse_tensors); break;
      case Kind::type: types(field::attribute::type_proto); break;
      case Kind::types: types(field::attribute::type_protos); break;
    }
  out.text(field::attribute::doc_string, a.doc_string);
  out.integer(field::attribute::kind, static_cast<int64_t>(a.kind));
  out.text(field::attribute::reference, a.reference);
  return std::move(out).take();
}

Rope Writer::graph(const Graph& g) {
  MessageWriter out;
  for (const Node& n : g.nodes) out.message(field::graph::node, node(n));
  out.text(field::graph::name, g.name);
  for (const Tensor& t : g.initializers) out.message(field::graph::initializer, tensor(t));
  out.text(field::graph::doc_string, g.doc_string);
  for (const ValueInfo& v : g.inputs) out.message(field::graph::input, value_info(v));
  for (const ValueInfo& v : g.outputs) out.message(field::graph::output, value_info(v));
  for (const ValueInfo& v : g.values) out.message(field::graph::value_info, value_info(v));
  for (const QuantizationAnnotation& q : g.quantization) {
    MessageWriter inner;
    inner.text(field::quantization::tensor, q.tensor);
    properties(inner, field::quantization::parameters, q.parameters);
    out.message(field::graph::quantization, std::move(inner).take());
  }
  for (const SparseTensor& s : g.sparse_initializers) out.message(field::graph::sparse_initializer, sparse_tensor(s));
  properties(out, field::graph::metadata, g.metadata);
  return std::move(out).take();
}

Rope Writer::function(const Function& f) {
  MessageWriter out;
  out.text(field::function::name, f.name);
  for (const std::string& name : f.inputs) out.text_always(field::function::input, name);
  for (const std::string& name : f.outputs) out.text_always(field::function::output, name);
  for (const std::string& name : f.attributes) out.text_always(field::function::attribute, name);
  for (const Node& n : f.nodes) out.message(field::function::node, node(n));
  out.text(field::function::doc_string, f.doc_string);
  for (const OperatorSet& o : f.opsets) out.message(field::function::opset_import, opset(o));
  out.text(field::function::domain, f.domain);
  for (const Attribute& a : f.attribute_defaults) out.message(field::function::attribute_default, attribute(a));
  for (const ValueInfo& v : f.values) out.message(field::function::value_info, value_info(v));
  out.text(field::function::overload, f.overload);
  properties(out, field::function::metadata, f.metadata);
  return std::move(out).take();
}

Rope Writer::model(const Model& m) {
  MessageWriter out;
  out.integer(field::model::ir_version, m.ir_version);
  out.text(field::model::producer_name, m.producer_name);
  out.text(field::model::producer_version, m.producer_version);
  out.text(field::model::domain, m.domain);
  out.integer(field::model::model_version, m.model_version);
  out.text(field::model::doc_string, m.doc_string);
  out.message(field::model::graph, graph(m.graph));
  for (const OperatorSet& o : m.opsets) out.message(field::model::opset_import, opset(o));
  properties(out, field::model::metadata, m.metadata);
  for (const Function& f : m.functions) out.message(field::model::functions, function(f));
  return std::move(out).take();
}

Result<Written> write_model(const Model& model, const WriteOptions& options) {
  Writer writer(options);
  Rope content = writer.model(model);
  constexpr size_t most = 0x7fffffff;  // bytes of a message of protobuf
  if (content.size() > most)
    return fail(ErrorCode::unsupported, "the ONNX model: ", content.size(),
                " bytes without external data, expected at most ", most);
  return Written{std::move(content), std::move(writer.data)};
}

Rope write_tensor(const Tensor& tensor) { return Writer(WriteOptions{}).tensor(tensor); }

}  // namespace moka::format::onnx
