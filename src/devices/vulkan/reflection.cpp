// SPDX-License-Identifier: Apache-2.0
#include "devices/vulkan/reflection.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace moka::devices::vulkan {

namespace {

// Numbers of the SPIR-V specification, version 1.3.
enum Op : uint32_t {
  kOpName = 5,
  kOpMemberName = 6,
  kOpExecutionMode = 16,
  kOpTypeBool = 20,
  kOpTypeInt = 21,
  kOpTypeFloat = 22,
  kOpTypeVector = 23,
  kOpTypeArray = 28,
  kOpTypeRuntimeArray = 29,
  kOpTypeStruct = 30,
  kOpTypePointer = 32,
  kOpConstant = 43,
  kOpSpecConstantTrue = 48,
  kOpSpecConstantFalse = 49,
  kOpSpecConstant = 50,
  kOpSpecConstantComposite = 51,
  kOpFunctionBegins = 54,
  kOpVariable = 59,
  kOpDecorate = 71,
  kOpMemberDecorate = 72,
};
enum Decoration : uint32_t { kSpecId = 1, kArrayStride = 6, kBuiltIn = 11, kBindingOf = 33, kOffset = 35 };
constexpr uint32_t kHeader = 5, kModeLocalSize = 17, kWorkgroupSize = 25, kPushConstant = 9, kStorage = 12;
constexpr int kDeepest = 4;          // of arrays in arrays; damaged code may have types of themselves
constexpr uint32_t kMostArray = 64;  // elements of a push constant that are shown

std::string name_at(std::span<const uint32_t> words) {
  const auto* bytes = reinterpret_cast<const char*>(words.data());
  return std::string(bytes, strnlen(bytes, words.size_bytes()));
}

using Words = std::vector<uint32_t>;

/// The declarations of a module, by the number of what they declare.
class Declarations {
 public:
  explicit Declarations(std::span<const uint32_t> code) {
    for (size_t at = kHeader; at < code.size();) {
      const size_t n = code[at] >> 16;
      if (n == 0 || n > code.size() - at || (code[at] & 0xffff) == kOpFunctionBegins) return;
      add(code.subspan(at, n));
      at += n;
    }
  }

  gpu::CodeFacts facts() const {
    gpu::CodeFacts out;
    out.group = group_;
    add_constants(out);
    if (const auto composite = workgroup(); composite.size() == 6)
      for (size_t i = 0; i < 3; i++) set_group(out, i, composite[i + 3]);
    for (const auto& [id, words] : made_) {
      if ((words[0] & 0xffff) != kOpVariable || words.size() < 4) continue;
      const Words* pointer = find(words[1], kOpTypePointer, 4);
      if (pointer == nullptr) continue;
      if (words[3] == kPushConstant) add_parameters(out, (*pointer)[3]);
      if (words[3] == kStorage) add_binding(out, id, (*pointer)[3]);
    }
    return out;
  }

 private:
  void add(std::span<const uint32_t> w) {
    const uint32_t op = w[0] & 0xffff;
    const size_t n = w.size();
    switch (op) {
      case kOpName:
        if (n >= 3) names_[w[1]] = name_at(w.subspan(2));
        break;
      case kOpMemberName:
        if (n >= 4) member_names_[{w[1], w[2]}] = name_at(w.subspan(3));
        break;
      case kOpExecutionMode:
        if (n >= 6 && w[2] == kModeLocalSize) group_ = {w[3], w[4], w[5]};
        break;
      case kOpDecorate:
        if (n >= 4) decorations_[{w[1], w[2]}] = w[3];
        break;
      case kOpMemberDecorate:
        if (n >= 5 && w[3] == kOffset) offsets_[{w[1], w[2]}] = w[4];
        break;
      case kOpTypeBool:
      case kOpTypeInt:
      case kOpTypeFloat:
      case kOpTypeVector:
      case kOpTypeArray:
      case kOpTypeRuntimeArray:
      case kOpTypeStruct:
      case kOpTypePointer:
        if (n >= 2) made_[w[1]] = Words(w.begin(), w.end());
        break;
      case kOpConstant:
      case kOpSpecConstantTrue:
      case kOpSpecConstantFalse:
      case kOpSpecConstant:
      case kOpSpecConstantComposite:
      case kOpVariable:
        if (n >= 3) made_[w[2]] = Words(w.begin(), w.end());
        break;
      default: break;
    }
  }
  const Words* find(uint32_t id, uint32_t op, size_t least) const {
    const auto it = made_.find(id);
    return it != made_.end() && (it->second[0] & 0xffff) == op && it->second.size() >= least ? &it->second : nullptr;
  }
  std::optional<uint32_t> decoration(uint32_t id, uint32_t of) const {
    const auto it = decorations_.find({id, of});
    return it == decorations_.end() ? std::nullopt : std::optional(it->second);
  }
  std::string name_of(uint32_t id) const {
    const auto it = names_.find(id);
    return it == names_.end() ? std::string() : it->second;
  }
  /// The type of a number, or of the elements of a vector.
  ir::DType scalar(uint32_t type, int depth = 0) const {
    if (find(type, kOpTypeBool, 2) != nullptr) return ir::DType::boolean;
    if (const Words* t = find(type, kOpTypeVector, 4); t != nullptr && depth < kDeepest)
      return scalar((*t)[2], depth + 1);
    if (const Words* t = find(type, kOpTypeFloat, 3)) return (*t)[2] == 16 ? ir::DType::fp16 : ir::DType::fp32;
    const Words* t = find(type, kOpTypeInt, 4);
    if (t == nullptr) return ir::DType::none;
    const bool is_signed = (*t)[3] != 0;
    switch ((*t)[2]) {
      case 8: return is_signed ? ir::DType::int8 : ir::DType::uint8;
      case 16: return is_signed ? ir::DType::int16 : ir::DType::uint16;
      case 32: return is_signed ? ir::DType::int32 : ir::DType::uint32;
      default: return ir::DType::none;
    }
  }
  /// The composite that is the size of a workgroup; empty: there is none.
  Words workgroup() const {
    for (const auto& [id, words] : made_)
      if ((words[0] & 0xffff) == kOpSpecConstantComposite && decoration(id, kBuiltIn) == kWorkgroupSize) return words;
    return {};
  }
  void set_group(gpu::CodeFacts& out, size_t i, uint32_t id) const {
    if (const auto number = decoration(id, kSpecId)) out.group_constants[i] = static_cast<int>(*number);
    if (const Words* c = find(id, kOpConstant, 4)) out.group[i] = (*c)[3];
  }
  void add_constants(gpu::CodeFacts& out) const {
    for (const auto& [id, words] : made_) {
      const uint32_t op = words[0] & 0xffff;
      if (op != kOpSpecConstant && op != kOpSpecConstantTrue && op != kOpSpecConstantFalse) continue;
      const auto number = decoration(id, kSpecId);
      if (!number) continue;
      gpu::CodeFacts::Number c;
      c.name = name_of(id);
      c.type = scalar(words[1]);
      c.at = *number;
      c.value = op == kOpSpecConstant ? (words.size() > 3 ? words[3] : 0) : op == kOpSpecConstantTrue;
      out.constants.push_back(std::move(c));
    }
    // The size of a workgroup has no name in its source.
    if (const Words composite = workgroup(); composite.size() == 6)
      for (size_t i = 0; i < 3; i++)
        if (const auto number = decoration(composite[i + 3], kSpecId))
          for (gpu::CodeFacts::Number& c : out.constants)
            if (c.at == *number && c.name.empty()) c.name = std::string("local_size_") + "xyz"[i];
    std::sort(out.constants.begin(), out.constants.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  }
  void add_parameters(gpu::CodeFacts& out, uint32_t type) const {
    const Words* fields = find(type, kOpTypeStruct, 2);
    if (fields == nullptr) return;
    for (uint32_t i = 0; i + 2 < fields->size(); i++) {
      gpu::CodeFacts::Number p;
      if (const auto it = member_names_.find({type, i}); it != member_names_.end()) p.name = it->second;
      const auto offset = offsets_.find({type, i});
      if (offset == offsets_.end()) continue;
      p.at = offset->second;
      measure(p, (*fields)[i + 2]);
      if (p.type != ir::DType::none) out.parameters.push_back(std::move(p));
    }
  }
  /// The type and the number of the elements. Arrays of arrays are counted as one.
  void measure(gpu::CodeFacts::Number& p, uint32_t type, int depth = 0) const {
    const Words* array = find(type, kOpTypeArray, 4);
    if (array == nullptr) {
      p.type = scalar(type);
      if (const Words* v = find(type, kOpTypeVector, 4)) p.count *= (*v)[3];
    } else if (depth < kDeepest) {
      measure(p, (*array)[2], depth + 1);
      if (const Words* n = find((*array)[3], kOpConstant, 4)) p.count *= std::min((*n)[3], kMostArray);
    }
    p.count = std::min(p.count, kMostArray);
  }
  void add_binding(gpu::CodeFacts& out, uint32_t variable, uint32_t type) const {
    const auto at = decoration(variable, kBindingOf);
    const Words* block = find(type, kOpTypeStruct, 3);
    if (!at || *at >= gpu::kMostBindings || block == nullptr) return;
    const Words* array = find((*block)[2], kOpTypeRuntimeArray, 3);
    if (array == nullptr) return;
    out.bindings.resize(std::max<size_t>(out.bindings.size(), *at + 1));
    gpu::CodeFacts::Binding& b = out.bindings[*at];
    // A shader may see the same buffer as single numbers and in fours.
    const bool is_vector = find((*array)[2], kOpTypeVector, 4) != nullptr;
    if (!b.name.empty() && is_vector) return;
    const auto member = member_names_.find({type, 0});
    b.name = member != member_names_.end() ? member->second : name_of(type);
    b.element = scalar((*array)[2]);
  }

  std::map<uint32_t, Words> made_;  ///< types, constants and variables
  std::map<uint32_t, std::string> names_;
  std::map<std::pair<uint32_t, uint32_t>, std::string> member_names_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> decorations_, offsets_;
  std::array<uint32_t, 3> group_{};
};

}  // namespace

gpu::CodeFacts facts_of_spirv(std::span<const uint32_t> code) { return Declarations(code).facts(); }

}  // namespace moka::devices::vulkan
