// SPDX-License-Identifier: Apache-2.0
#include "format/onnx/read.h"

#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>

#include "format/file_kind.h"
#include "format/onnx/fields.h"
#include "format/onnx/reader.h"
#include "format/path_guard.h"

namespace moka::format::onnx {

Graph Reader::graph(pbf_reader in) {
  const Level level(*this);
  Graph out;
  while (in.next()) {
    switch (in.tag()) {
      case field::graph::node: out.nodes.push_back(node(message(in))); break;
      case field::graph::name: out.name = text(in); break;
      case field::graph::initializer: out.initializers.push_back(tensor(message(in))); break;
      case field::graph::doc_string: out.doc_string = text(in); break;
      case field::graph::input: out.inputs.push_back(value_info(message(in))); break;
      case field::graph::output: out.outputs.push_back(value_info(message(in))); break;
      case field::graph::value_info: out.values.push_back(value_info(message(in))); break;
      case field::graph::quantization: out.quantization.push_back(quantization(message(in))); break;
      case field::graph::sparse_initializer: out.sparse_initializers.push_back(sparse_tensor(message(in))); break;
      case field::graph::metadata: out.metadata.push_back(property(message(in))); break;
      default: in.skip();
    }
  }
  return out;
}

Node Reader::node(pbf_reader in) {
  Node out;
  while (in.next()) {
    switch (in.tag()) {
      case field::node::input: out.inputs.push_back(text(in)); break;
      case field::node::output: out.outputs.push_back(text(in)); break;
      case field::node::name: out.name = text(in); break;
      case field::node::op_type: out.op_type = text(in); break;
      case field::node::attribute: out.attributes.push_back(attribute(message(in))); break;
      case field::node::doc_string: out.doc_string = text(in); break;
      case field::node::domain: out.domain = text(in); break;
      case field::node::overload: out.overload = text(in); break;
      case field::node::metadata: out.metadata.push_back(property(message(in))); break;
      default: in.skip();
    }
  }
  return out;
}

Attribute Reader::attribute(pbf_reader in) {
  using Kind = Attribute::Kind;
  Attribute out;
  Kind seen = Kind::undefined;
  const auto is = [&](Kind kind) { seen = kind; };
  while (in.next()) {
    switch (in.tag()) {
      case field::attribute::name: out.name = text(in); break;
      case field::attribute::reference: out.reference = text(in); break;
      case field::attribute::doc_string: out.doc_string = text(in); break;
      case field::attribute::kind: out.kind = static_cast<Kind>(integer(in)); break;
      case field::attribute::number: is(Kind::number), out.number = number(in); break;
      case field::attribute::integer: is(Kind::integer), out.integer = integer(in); break;
      case field::attribute::string: is(Kind::string), out.string = text(in); break;
      case field::attribute::tensor: is(Kind::tensor), out.tensors = {tensor(message(in))}; break;
      case field::attribute::graph:
        is(Kind::graph);
        out.graphs.clear();
        out.graphs.push_back(graph(message(in)));
        break;
      case field::attribute::sparse_tensor:
        is(Kind::sparse_tensor), out.sparse_tensors = {sparse_tensor(message(in))};
        break;
      case field::attribute::type_proto: is(Kind::type), out.types = {type(message(in))}; break;
      case field::attribute::numbers: is(Kind::numbers), numbers(in, out.numbers); break;
      case field::attribute::integers: is(Kind::integers), integers(in, out.integers); break;
      case field::attribute::strings: is(Kind::strings), out.strings.push_back(text(in)); break;
      case field::attribute::tensors: is(Kind::tensors), out.tensors.push_back(tensor(message(in))); break;
      case field::attribute::graphs: is(Kind::graphs), out.graphs.push_back(graph(message(in))); break;
      case field::attribute::sparse_tensors:
        is(Kind::sparse_tensors), out.sparse_tensors.push_back(sparse_tensor(message(in)));
        break;
      case field::attribute::type_protos: is(Kind::types), out.types.push_back(type(message(in))); break;
      default: in.skip();
    }
  }
  if (out.kind == Kind::undefined) out.kind = seen;
  return out;
}

Function Reader::function(pbf_reader in) {
  const Level level(*this);
  Function out;
  while (in.next()) {
    switch (in.tag()) {
      case field::function::name: out.name = text(in); break;
      case field::function::input: out.inputs.push_back(text(in)); break;
      case field::function::output: out.outputs.push_back(text(in)); break;
      case field::function::attribute: out.attributes.push_back(text(in)); break;
      case field::function::node: out.nodes.push_back(node(message(in))); break;
      case field::function::doc_string: out.doc_string = text(in); break;
      case field::function::opset_import: out.opsets.push_back(opset(message(in))); break;
      case field::function::domain: out.domain = text(in); break;
      case field::function::attribute_default: out.attribute_defaults.push_back(attribute(message(in))); break;
      case field::function::value_info: out.values.push_back(value_info(message(in))); break;
      case field::function::overload: out.overload = text(in); break;
      case field::function::metadata: out.metadata.push_back(property(message(in))); break;
      default: in.skip();
    }
  }
  return out;
}

Model Reader::model(pbf_reader in) {
  Model out;
  bool has_graph = false;
  while (in.next()) {
    switch (in.tag()) {
      case field::model::ir_version: out.ir_version = integer(in); break;
      case field::model::producer_name: out.producer_name = text(in); break;
      case field::model::producer_version: out.producer_version = text(in); break;
      case field::model::domain: out.domain = text(in); break;
      case field::model::model_version: out.model_version = integer(in); break;
      case field::model::doc_string: out.doc_string = text(in); break;
      case field::model::graph:
        if (has_graph) throw Refused("it has more than one graph");
        has_graph = true;
        out.graph = graph(message(in));
        break;
      case field::model::opset_import: out.opsets.push_back(opset(message(in))); break;
      case field::model::metadata: out.metadata.push_back(property(message(in))); break;
      case field::model::training_info: in.skip(), out.has_training = true; break;
      case field::model::functions: out.functions.push_back(function(message(in))); break;
      default: in.skip();
    }
  }
  if (!has_graph) throw Refused("it has no graph");
  return out;
}

namespace {

template <class Read>
auto guarded(const Bytes& bytes, const Read& read) -> Result<decltype(read(std::declval<Reader&>(), pbf_reader()))> {
  try {
    Reader reader(bytes);
    return read(reader, pbf_reader(bytes.text().data(), bytes.size()));
  } catch (const protozero::exception& e) {
    if (bytes.text().starts_with("version https://git-lfs"))
      return fail(ErrorCode::malformed, "expected an ONNX model, got ", foreign_kind(bytes));
    return fail(ErrorCode::malformed, "not a complete ONNX model: ", e.what());
  } catch (const Refused& e) {
    return fail(ErrorCode::malformed, "not a valid ONNX model: ", e.what());
  }
}

}  // namespace

Result<Model> read_model(const Bytes& bytes) {
  return guarded(bytes, [](Reader& reader, pbf_reader in) { return reader.model(in); });
}

Result<Tensor> read_tensor(const Bytes& bytes) {
  return guarded(bytes, [](Reader& reader, pbf_reader in) { return reader.tensor(in); });
}

Result<ModelFile> open_model(const std::string& path) {
  const Bytes bytes = MOKA_TRY(map_file(path));
  Model model = MOKA_TRY_IN(read_model(bytes), path);
  const std::string folder = MOKA_TRY(folder_of(path));
  WeightStore files = MOKA_TRY(WeightStore::in_folder(folder, folder));
  return ModelFile{std::move(model), std::move(files)};
}

}  // namespace moka::format::onnx
