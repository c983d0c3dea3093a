// SPDX-License-Identifier: Apache-2.0
#include "compiler/text_form.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <span>
#include <utility>

#include "base/checksum.h"

namespace moka::compiler {
namespace {

using ir::Constant;
using ir::DType;
using ir::Tensor;
using ir::Type;

const Type text = Type::scalar(DType::string);
const Type sizes = Type::tensor(DType::int32, ir::Shape{ir::kAnyDim});

Constant dict(const Type& value, std::vector<Constant> parts) { return {Type::dict(text, value), std::move(parts)}; }

/// Builds ("DefaultShapes", {...}), ("RangeDims", {...}) or ("EnumeratedShapes", {...}).
Constant entry(const char* name, Constant values) {
  Type type = Type::tuple({text, values.type});
  std::vector<Constant> parts;
  parts.emplace_back(Tensor::text(name));
  parts.push_back(std::move(values));
  return {std::move(type), std::move(parts)};
}

using Inputs = std::vector<const import::FeatureDescription*>;

Constant ranges_of(const import::MultiArrayConstraint& array) {
  const Type pair = Type::tensor(DType::int32, ir::Shape{2});
  std::vector<Constant> parts;
  for (const auto& r : array.ranges) parts.emplace_back(Tensor::i32({r.lower, r.upper}));
  return {Type::list(pair), std::move(parts)};
}

Constant ranges_of(const Inputs& inputs) {
  std::vector<Constant> parts;
  for (const auto* input : inputs) {
    parts.emplace_back(Tensor::text(input->name));
    parts.push_back(ranges_of(input->array));
  }
  return entry("RangeDims", dict(Type::list(Type::tensor(DType::int32, ir::Shape{2})), std::move(parts)));
}

/// Each shape has a label of eight hexadecimal digits, in alphabetical order. How Apple's compiler makes the label is
/// not known; here it is a hash of the input's name and the shape.
Constant shapes_of(const import::FeatureDescription& input) {
  std::map<uint32_t, std::vector<int64_t>> labels;
  for (const auto& shape : input.array.enumerated) {
    std::string named = input.name;
    for (int64_t size : shape) named += cat(' ', size);
    auto label = static_cast<uint32_t>(checksum(std::as_bytes(std::span(named))));
    while (labels.try_emplace(label, shape).first->second != shape) ++label;
  }
  std::vector<Constant> parts;
  for (const auto& [label, shape] : labels) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08x", label);
    std::vector<Constant> named;
    named.emplace_back(Tensor::text(input.name));
    named.emplace_back(Tensor::i32(shape));
    parts.emplace_back(Tensor::text(digits));
    parts.push_back(dict(sizes, std::move(named)));
  }
  return entry("EnumeratedShapes", dict(Type::dict(text, sizes), std::move(parts)));
}

/// Inputs of flexible size, by name as the text lists them.
Inputs flexible_inputs(const import::FunctionDescription& function) {
  Inputs out;
  for (const auto& input : function.inputs) {
    const auto& ranges = input.array.ranges;
    const bool range = std::any_of(ranges.begin(), ranges.end(), [](const auto& r) { return r.lower != r.upper; });
    if (range && input.array.shape.size() == ranges.size()) out.push_back(&input);
  }
  std::sort(out.begin(), out.end(), [](auto* a, auto* b) { return a->name < b->name; });
  return out;
}

/// The only input with several shapes; null if there is none or another flexible input.
const import::FeatureDescription* enumerated_input(const import::FunctionDescription& function) {
  const import::FeatureDescription* found = nullptr;
  for (const auto& input : function.inputs) {
    if (input.kind != import::FeatureKind::multi_array || input.array.enumerated.empty()) continue;
    if (found != nullptr) return nullptr;
    found = &input;
  }
  return found;
}

void add_shapes(ir::Function& f, const import::FunctionDescription& described) {
  if (f.attributes.contains("FlexibleShapeInformation")) return;
  Inputs inputs = flexible_inputs(described);
  const auto* enumerated = enumerated_input(described);
  if (inputs.empty() == (enumerated == nullptr)) return;
  Constant shapes = enumerated != nullptr ? shapes_of(*enumerated) : ranges_of(inputs);
  if (enumerated != nullptr) inputs = {enumerated};
  std::vector<Constant> defaults;
  for (const auto* input : inputs) {
    defaults.emplace_back(Tensor::text(input->name));
    defaults.emplace_back(Tensor::i32(input->array.shape));
  }
  Constant default_entry = entry("DefaultShapes", dict(sizes, std::move(defaults)));
  Type type = Type::tuple({default_entry.type, shapes.type});
  std::vector<Constant> parts;
  parts.push_back(std::move(default_entry));
  parts.push_back(std::move(shapes));
  f.attributes["FlexibleShapeInformation"] = Constant(std::move(type), std::move(parts));
}

}  // namespace

void prepare_text(ir::Program& program, const import::ModelDescription& description) {
  program.version = "1.0";
  for (const auto& f : program.functions)
    if (f->opset >= ir::Opset::ios18 || description.specification_version >= 9) program.version = "1.3";
  std::map<std::string, std::string> build;
  if (auto it = program.attributes.find("buildInfo"); it != program.attributes.end())
    for (size_t i = 0; i + 1 < it->second.parts.size(); i += 2)
      if (it->second.parts[i].tensor.dtype() == DType::string &&
          it->second.parts[i + 1].tensor.dtype() == DType::string)
        build[it->second.parts[i].tensor.text()] = it->second.parts[i + 1].tensor.text();
  build["moka-version"] = MOKA_VERSION;
  std::vector<Constant> parts;
  for (const auto& [key, value] : build) {
    parts.emplace_back(Tensor::text(key));
    parts.emplace_back(Tensor::text(value));
  }
  program.attributes["buildInfo"] = dict(text, std::move(parts));
  for (const auto& f : program.functions)
    if (const auto* described = description.function(f->name)) add_shapes(*f, *described);
}

}  // namespace moka::compiler
