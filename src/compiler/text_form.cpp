#include "compiler/text_form.h"

#include <algorithm>
#include <utility>

namespace moka::compiler {
namespace {

using ir::Constant;
using ir::DType;
using ir::Tensor;
using ir::Type;

const Type text = Type::scalar(DType::string);
const Type sizes = Type::tensor(DType::int32, ir::Shape{ir::kAnyDim});

Constant dict(const Type& value, std::vector<Constant> parts) { return {Type::dict(text, value), std::move(parts)}; }

/// Builds ("DefaultShapes", {...}) or ("RangeDims", {...}).
Constant entry(const char* name, Constant values) {
  Type type = Type::tuple({text, values.type});
  std::vector<Constant> parts;
  parts.emplace_back(Tensor::text(name));
  parts.push_back(std::move(values));
  return {std::move(type), std::move(parts)};
}

Constant ranges_of(const import::MultiArrayConstraint& array) {
  const Type pair = Type::tensor(DType::int32, ir::Shape{2});
  std::vector<Constant> parts;
  for (const auto& r : array.ranges) parts.emplace_back(Tensor::i32({r.lower, r.upper}));
  return {Type::list(pair), std::move(parts)};
}

/// Inputs of flexible size, by name as the text lists them.
std::vector<const import::FeatureDescription*> flexible_inputs(const import::FunctionDescription& function) {
  std::vector<const import::FeatureDescription*> out;
  for (const auto& input : function.inputs) {
    const auto& ranges = input.array.ranges;
    const bool range = std::any_of(ranges.begin(), ranges.end(), [](const auto& r) { return r.lower != r.upper; });
    if (range && input.array.shape.size() == ranges.size()) out.push_back(&input);
  }
  std::sort(out.begin(), out.end(), [](auto* a, auto* b) { return a->name < b->name; });
  return out;
}

void add_shapes(ir::Function& f, const import::FunctionDescription& described) {
  const auto inputs = flexible_inputs(described);
  if (inputs.empty() || f.attributes.contains("FlexibleShapeInformation")) return;
  std::vector<Constant> defaults, ranges;
  for (const auto* input : inputs) {
    for (auto* list : {&defaults, &ranges}) list->emplace_back(Tensor::text(input->name));
    defaults.emplace_back(Tensor::i32(input->array.shape));
    ranges.push_back(ranges_of(input->array));
  }
  Constant default_entry = entry("DefaultShapes", dict(sizes, std::move(defaults)));
  Constant range_entry =
      entry("RangeDims", dict(Type::list(Type::tensor(DType::int32, ir::Shape{2})), std::move(ranges)));
  Type type = Type::tuple({default_entry.type, range_entry.type});
  std::vector<Constant> parts;
  parts.push_back(std::move(default_entry));
  parts.push_back(std::move(range_entry));
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
