#include "model_facts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
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

std::vector<std::pair<std::string, int64_t>> operation_counts(const OperationList& structure) {
  std::map<std::string, int64_t> counts;
  for (const auto& operation : structure.operations)
    if (operation.type != "const") ++counts[operation.type];
  std::vector<std::pair<std::string, int64_t>> out(counts.begin(), counts.end());
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

bool is_weight(const OperationList::Weight& weight) {
  constexpr int64_t kShort = 16;
  if (weight.storage == "file") return true;
  const TensorType type = parse_tensor_type(weight.type);
  const bool numbers = type.element.starts_with("fp") || type.element == "bf16";
  return type.count >= (numbers ? 2 : kShort);
}

std::vector<WeightGroup> weight_groups(const OperationList& structure) {
  std::map<std::pair<std::string, std::string>, WeightGroup> groups;
  for (const auto& weight : structure.weights) {
    if (!is_weight(weight)) continue;
    const TensorType type = parse_tensor_type(weight.type);
    WeightGroup& group = groups[{type.element, weight.storage}];
    group.element = type.element;
    group.storage = weight.storage;
    ++group.weights;
    group.parameters += type.count;
    group.bytes += weight.bytes;
  }
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
