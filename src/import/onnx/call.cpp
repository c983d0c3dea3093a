// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/call.h"

namespace moka::import::onnx {
std::string domain_of(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

namespace {

const format::onnx::Function* function_of(const format::onnx::Model& model, const format::onnx::Node& node) {
  for (const format::onnx::Function& f : model.functions)
    if (f.name == node.op_type && domain_of(f.domain) == domain_of(node.domain) && f.overload == node.overload)
      return &f;
  return nullptr;
}

}  // namespace

bool call_function(Scope& scope, const format::onnx::Node& node) {
  const format::onnx::Function* f = function_of(scope.context.file.model, node);
  if (f == nullptr) return false;
  if (node.inputs.size() > f->inputs.size() || node.outputs.size() > f->outputs.size())
    refuse(ErrorCode::malformed, "the function has ", f->inputs.size(), " inputs and ", f->outputs.size(),
           " outputs, the call ", node.inputs.size(), " and ", node.outputs.size());
  Opsets opsets;
  for (const format::onnx::OperatorSet& o : f->opsets) opsets[domain_of(o.domain)] = o.version;
  for (const auto& [domain, version] : scope.opsets) opsets.emplace(domain, version);
  std::map<std::string, Attribute> attributes;
  for (const Attribute& a : f->attribute_defaults) attributes[a.name] = a;
  for (const Attribute& a : node.attributes) {
    if (a.reference.empty()) {
      attributes[a.name] = a;
    } else if (scope.attributes != nullptr) {
      const auto it = scope.attributes->find(a.reference);
      if (it != scope.attributes->end()) attributes[a.name] = it->second;
    }
  }
  Scope inner(scope.context, scope.builder, opsets, nullptr);
  inner.attributes = &attributes;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (!node.inputs[i].empty()) inner.add(f->inputs[i], scope.own(node.inputs[i]));
  // Inputs that the call omits are omitted in the body.
  std::vector<format::onnx::Node> nodes = f->nodes;
  for (format::onnx::Node& n : nodes)
    for (std::string& name : n.inputs)
      for (size_t i = 0; i < f->inputs.size(); ++i)
        if (name == f->inputs[i] && (i >= node.inputs.size() || node.inputs[i].empty())) name.clear();
  inner.run(nodes);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (!node.outputs[i].empty()) scope.add(node.outputs[i], inner.own(f->outputs[i]));
  return true;
}

void run_graph(Scope& inner, const format::onnx::Graph& graph) {
  inner.add_initializers(graph);
  inner.run(graph.nodes);
}

}  // namespace moka::import::onnx
