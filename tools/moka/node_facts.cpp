// SPDX-License-Identifier: Apache-2.0
#include "node_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <string_view>

#include "text.h"

namespace moka::cli {
namespace {

constexpr int kMostParts = 8;  ///< operations on constants behind each other

std::string text_of(const ValueSize& size) {
  if (!size) return "?";
  std::string out;
  for (const int64_t n : *size) out += (out.empty() ? "" : " x ") + (n < 0 ? "?" : std::to_string(n));
  return out.empty() ? "scalar" : out;
}

/// The dimensions of a tensor's type; nullopt for other types.
ValueSize size_in(std::string_view type) {
  const size_t open = type.find('['), close = type.find(']');
  if (!type.starts_with("tensor<") || open == type.npos || close == type.npos || close < open) return std::nullopt;
  ValueSize out(std::in_place);
  std::string_view sizes = type.substr(open + 1, close - open - 1);
  while (!trimmed(sizes).empty()) {
    const size_t end = std::min(sizes.find(','), sizes.size());
    out->push_back(parse_integer(trimmed(sizes.substr(0, end))).value_or(-1));
    sizes.remove_prefix(std::min(end + 1, sizes.size()));
  }
  return out;
}

std::string element_name(std::string_view element) {
  if (element == "bf16") return "bfloat16";
  return element.starts_with("fp") ? "float" + std::string(element.substr(2)) : std::string(element);
}

/// The bits in a name such as "uint4"; 0 when it has none.
int64_t bits_of(std::string_view element) {
  const size_t digits = element.find_first_of("123456789");
  return digits == element.npos ? 0 : parse_integer(element.substr(digits)).value_or(0);
}

std::string bits_text(int64_t bits) { return bits == 1 ? "1 bit" : fmt::format("{} bits", bits); }

/// How an operation stores the weight that it expands.
std::string storage_of(const ModelStructure::Operation& op,
                       const std::map<std::string, const ModelStructure::Weight*>& weights) {
  const auto part = [&](std::string_view parameter) -> TensorType {
    auto it = weights.find(op.name + "." + std::string(parameter));
    for (const auto& [name, values] : op.inputs)
      if (name == parameter && values.size() == 1) it = weights.find(values[0]);
    return it == weights.end() ? TensorType{"", 0} : parse_tensor_type(it->second->type);
  };
  if (op.type == "constexpr_lut_to_dense") {
    const TensorType indices = part("indices"), table = part("lut");
    // Before iOS 18 the indices are packed into bytes, and the table tells their bits.
    const int64_t bits = indices.element == "uint8" && std::has_single_bit(static_cast<uint64_t>(table.count))
                             ? std::countr_zero(static_cast<uint64_t>(table.count))
                             : bits_of(indices.element);
    return bits > 0 ? "palette of " + bits_text(bits) : "palette";
  }
  if (op.type == "constexpr_affine_dequantize" || op.type == "constexpr_blockwise_shift_scale") {
    const TensorType data = part(op.type == "constexpr_affine_dequantize" ? "quantized_data" : "data");
    const int64_t bits = bits_of(data.element);
    return bits > 0 ? "linear " + bits_text(bits) : "linear";
  }
  if (op.type.find("sparse") != op.type.npos) return "sparse";
  if (op.type == "constexpr_cast") return element_name(part("source_val").element);
  return op.type;
}

/// An array of one element is a weight where the operation takes one, such as the bias of one channel.
bool is_weight_of(std::string_view parameter, const ModelStructure::Weight& weight) {
  constexpr std::string_view names[] = {"weight", "bias", "gamma", "beta", "mean", "variance", "alpha", "peephole"};
  const auto is_it = [&](std::string_view name) {
    return parameter == name || (parameter.starts_with(name) && parameter[name.size()] == '_');
  };
  return is_weight(weight) || std::ranges::any_of(names, is_it);
}

}  // namespace

std::string storage_text(const ModelStructure::Weight& weight) {
  const std::string element = parse_tensor_type(weight.type).element;
  std::string out = element_name(element);
  if (weight.storage == "inline palette") out = "palette of " + bits_text(bits_of(element));
  if (weight.storage == "inline linear") out = "linear " + bits_text(bits_of(element));
  return weight.available ? out : out + ", missing";
}

NodeReader::NodeReader(const Inspection& inspection, const ModelStructure& structure, const std::string& function,
                       const std::vector<size_t>& models)
    : structure_(structure), layer_sizes_(inspection.layer_sizes(models)) {
  for (const auto& weight : structure.weights)
    if (weight.function.empty() || weight.function == function) weights_[weight.name] = &weight;
  for (const auto& f : structure.functions)
    if (f.name == function) add(f.body);
  for (auto& [name, type] : inspection.types_at_default_sizes(function, models))
    if (size_in(type)) types_[name] = type;
}

void NodeReader::add(const ModelStructure::Block& block) {
  for (const auto& [name, type] : block.inputs) types_[name] = type;
  for (const auto& op : block.operations) {
    const bool constant = op.type == "const" || op.type.starts_with("constexpr_");
    for (const auto& [name, type] : op.outputs) {
      types_[name] = type;
      if (constant) constants_[name] = &op;
    }
    for (const auto& inner : op.blocks) add(inner);
  }
}

NodeFacts NodeReader::facts(const Node& node) const {
  NodeFacts out = node.layer != nullptr ? of_layer(*node.layer) : of_operation(*node.operation);
  for (const NodeWeight& weight : out.weights) {
    out.parameters += weight.parameters;
    out.bytes += weight.bytes;
  }
  return out;
}

NodeFacts NodeReader::of_layer(const ModelStructure::Layer& layer) const {
  NodeFacts out;
  const auto index = static_cast<size_t>(&layer - structure_.layers.data());
  if (index < layer_sizes_.size()) {
    out.input_sizes = layer_sizes_[index].inputs;
    out.output_sizes = layer_sizes_[index].outputs;
  }
  out.input_sizes.resize(layer.inputs.size());
  out.output_sizes.resize(layer.outputs.size());
  for (const ValueSize& size : out.input_sizes) out.inputs.push_back(text_of(size));
  for (const ValueSize& size : out.output_sizes) out.outputs.push_back(text_of(size));
  for (const size_t i : layer.weights) {
    const Weight& w = structure_.weights[i];
    out.weights.push_back({w.name, storage_text(w), size_in(w.type), parse_tensor_type(w.type).count, w.bytes});
  }
  return out;
}

void NodeReader::add_parts(const std::string& value, NodeWeight& weight, int depth) const {
  if (const auto it = weights_.find(value); it != weights_.end()) weight.bytes += it->second->bytes;
  const auto found = constants_.find(value);
  if (found == constants_.end() || found->second->type == "const" || depth > kMostParts) return;
  const ModelStructure::Operation& op = *found->second;
  weight.storage += (weight.storage.empty() ? "" : ", ") + storage_of(op, weights_);
  for (const auto& [parameter, values] : op.inputs) {
    if (const auto it = weights_.find(op.name + "." + parameter); it != weights_.end())
      weight.bytes += it->second->bytes;
    for (const std::string& part : values) add_parts(part, weight, depth + 1);
  }
}

bool NodeReader::add_weight(const std::string& parameter, const std::string& value, NodeFacts& facts) const {
  const auto constant = constants_.find(value);
  if (constant == constants_.end()) return false;
  const auto stored = weights_.find(value);
  const bool expanded = constant->second->type != "const";
  if (!expanded && (stored == weights_.end() || !is_weight_of(parameter, *stored->second))) return true;
  const auto type = types_.find(value);
  NodeWeight weight{value, "", type == types_.end() ? ValueSize() : size_in(type->second), 0, 0};
  if (!expanded) weight.storage = storage_text(*stored->second);
  if (type != types_.end()) weight.parameters = parse_tensor_type(type->second).count;
  add_parts(value, weight, 0);
  facts.weights.push_back(std::move(weight));
  return true;
}

NodeFacts NodeReader::of_operation(const ModelStructure::Operation& op) const {
  NodeFacts out;
  const auto type_of = [&](const std::string& value) {
    const auto it = types_.find(value);
    return it == types_.end() ? std::string("?") : it->second;
  };
  for (const auto& [parameter, values] : op.inputs) {
    const auto it = weights_.find(op.name + "." + parameter);
    if (it != weights_.end() && (is_weight_of(parameter, *it->second) || op.type.starts_with("constexpr_"))) {
      const Weight& w = *it->second;
      out.weights.push_back({w.name, storage_text(w), size_in(w.type), parse_tensor_type(w.type).count, w.bytes});
    }
    for (const std::string& value : values) {
      if (add_weight(parameter, value, out)) continue;
      out.inputs.push_back(short_type(type_of(value)));
      out.input_sizes.push_back(size_in(type_of(value)));
    }
  }
  for (const auto& [value, type] : op.outputs) {
    const std::string at_default = type_of(value);
    out.outputs.push_back(short_type(at_default == "?" ? type : at_default));
    out.output_sizes.push_back(size_in(at_default == "?" ? type : at_default));
  }
  return out;
}

}  // namespace moka::cli
