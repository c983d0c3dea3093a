// SPDX-License-Identifier: Apache-2.0
#include "model_facts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "text.h"

namespace moka::cli {

uint64_t size_on_disk(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_regular_file(path, error)) return fs::file_size(path, error);
  uint64_t total = 0;
  fs::recursive_directory_iterator files(path, error), end;
  for (; !error && files != end; files.increment(error)) {
    std::error_code ignored;
    if (files->is_regular_file(ignored)) total += files->file_size(ignored);
  }
  return total;
}

std::string systems_for(int specification_version) {
  constexpr std::pair<const char*, const char*> kSystems[] = {
      {"11", "10.13"}, {"11.2", "10.13.2"}, {"12", "10.14"}, {"13", "10.15"}, {"14", "11"},
      {"15", "12"},    {"16", "13"},        {"17", "14"},    {"18", "15"},    {"26", "26"},
  };
  if (specification_version < 1 || specification_version > static_cast<int>(std::size(kSystems))) return {};
  const auto [ios, macos] = kSystems[specification_version - 1];
  return std::string("iOS ") + ios + ", macOS " + macos;
}

std::string folded_type(const FeatureDescription& feature) {
  constexpr size_t kMost = 4, kShown = 3;
  FeatureDescription folded = feature;
  const size_t shapes = std::max(feature.array.enumerated.size(), feature.image.enumerated.size());
  if (shapes <= kMost) return feature.formatted_type();
  folded.array.enumerated.resize(std::min(kShown, feature.array.enumerated.size()));
  folded.image.enumerated.resize(std::min(kShown, feature.image.enumerated.size()));
  std::string out = folded.formatted_type();
  out.pop_back();
  return out + " | … " + plural(static_cast<int64_t>(shapes), feature.type == FeatureType::image ? "size" : "shape") +
         ")";
}

namespace {

void add_nodes(const ModelStructure::Block& block, int depth, std::vector<Node>& out) {
  for (const auto& operation : block.operations) {
    if (operation.type == "const") continue;
    out.push_back({&operation, nullptr, depth});
    for (const auto& inner : operation.blocks) add_nodes(inner, depth + 1, out);
  }
}

using Groups = std::map<std::pair<std::string, std::string>, WeightGroup>;

void add_groups(const ModelStructure& structure, const std::string& function, Groups& groups) {
  for (const auto* weight : weights_of(structure, function)) {
    const TensorType type = parse_tensor_type(weight->type);
    WeightGroup& group = groups[{type.element, weight->storage}];
    group.element = type.element;
    group.storage = weight->storage;
    ++group.weights;
    group.parameters += type.count;
    group.bytes += weight->bytes;
  }
  for (const auto& part : structure.models) {
    const auto& functions = part.structure.functions;
    add_groups(part.structure, functions.empty() ? "" : functions[0].name, groups);
  }
}

}  // namespace

std::vector<Node> nodes_of(const ModelStructure& structure, const std::string& function) {
  std::vector<Node> out;
  for (const auto& f : structure.functions)
    if (f.name == function) add_nodes(f.body, 0, out);
  for (const auto& layer : structure.layers) out.push_back({nullptr, &layer, layer.depth});
  return out;
}

std::vector<std::pair<std::string, int64_t>> type_counts(const std::vector<Node>& nodes) {
  std::map<std::string, int64_t> counts;
  for (const Node& node : nodes) ++counts[node.operation != nullptr ? node.operation->type : node.layer->type];
  std::vector<std::pair<std::string, int64_t>> out(counts.begin(), counts.end());
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

bool is_weight(const ModelStructure::Weight& weight) {
  constexpr int64_t kShort = 16;
  if (weight.storage == "file") return true;
  const TensorType type = parse_tensor_type(weight.type);
  const bool numbers = type.element.starts_with("fp") || type.element == "bf16" || weight.function.empty();
  return type.count >= (numbers ? 2 : kShort);
}

std::vector<const ModelStructure::Weight*> weights_of(const ModelStructure& structure, const std::string& function) {
  std::vector<const ModelStructure::Weight*> out;
  for (const auto& weight : structure.weights)
    if ((weight.function.empty() || weight.function == function) && is_weight(weight)) out.push_back(&weight);
  return out;
}

std::vector<WeightGroup> weight_groups(const ModelStructure& structure, const std::string& function) {
  Groups groups;
  add_groups(structure, function, groups);
  std::vector<WeightGroup> out;
  for (auto& [key, group] : groups) out.push_back(std::move(group));
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return out;
}

uint64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("VmHWM:")) continue;
    std::istringstream rest(line.substr(6));
    uint64_t kibibytes = 0;
    rest >> kibibytes;
    return kibibytes * 1024;
  }
  return 0;
}

}  // namespace moka::cli
