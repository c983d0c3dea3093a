// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/graph.h"

namespace moka::compiler::onnx {
namespace {

ox::Attribute named(std::string name, ox::Attribute::Kind kind) {
  ox::Attribute a;
  a.name = std::move(name);
  a.kind = kind;
  return a;
}

}  // namespace

ox::Attribute attr(std::string name, int64_t v) {
  ox::Attribute a = named(std::move(name), ox::Attribute::Kind::integer);
  a.integer = v;
  return a;
}
ox::Attribute attr(std::string name, int v) { return attr(std::move(name), int64_t{v}); }
ox::Attribute attr(std::string name, bool v) { return attr(std::move(name), int64_t{v}); }
ox::Attribute attr(std::string name, double v) {
  ox::Attribute a = named(std::move(name), ox::Attribute::Kind::number);
  a.number = static_cast<float>(v);
  return a;
}
ox::Attribute attr(std::string name, const char* v) {
  ox::Attribute a = named(std::move(name), ox::Attribute::Kind::string);
  a.string = v;
  return a;
}
ox::Attribute attr(std::string name, std::vector<int64_t> v) {
  ox::Attribute a = named(std::move(name), ox::Attribute::Kind::integers);
  a.integers = std::move(v);
  return a;
}
ox::Attribute attr(std::string name, std::vector<float> v) {
  ox::Attribute a = named(std::move(name), ox::Attribute::Kind::numbers);
  a.numbers = std::move(v);
  return a;
}
ox::Attribute attr(std::string name, std::vector<std::string> v) {
  ox::Attribute a = named(std::move(name), ox::Attribute::Kind::strings);
  a.strings = std::move(v);
  return a;
}
ox::Attribute attr(std::string name, ox::Graph v) {
  ox::Attribute a = named(std::move(name), ox::Attribute::Kind::graph);
  a.graphs.push_back(std::move(v));
  return a;
}
ox::Attribute attr(std::string name, ox::Tensor v) {
  ox::Attribute a = named(std::move(name), ox::Attribute::Kind::tensor);
  a.tensors.push_back(std::move(v));
  return a;
}

}  // namespace moka::compiler::onnx
