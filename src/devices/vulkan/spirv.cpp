// SPDX-License-Identifier: Apache-2.0
#include "devices/vulkan/spirv.h"

#include <cstring>
#include <deque>
#include <map>
#include <mutex>

namespace moka::devices::vulkan {

namespace {

// Numbers of the SPIR-V specification, version 1.3.
constexpr uint32_t kMagic = 0x07230203, kHeaderWords = 5;
constexpr uint32_t kEntryPoint = 15, kExecutionMode = 16, kCapability = 17, kFunction = 54, kVariable = 59,
                   kDecorate = 71;
constexpr uint32_t kGLCompute = 5, kLocalSize = 17;
constexpr uint32_t kDecorationBinding = 33, kDecorationDescriptorSet = 34;
constexpr uint32_t kUniformConstant = 0, kUniform = 2, kStorageBuffer = 12;

bool is_allowed(uint32_t capability, const Features& f) {
  switch (capability) {
    case 0:                                 // Matrix
    case 1:                                 // Shader
    case 61: return true;                   // GroupNonUniform
    case 9: return f.half;                  // Float16
    case 39: return f.int8;                 // Int8
    case 63: return f.subgroup_arithmetic;  // GroupNonUniformArithmetic
    case 4433: return f.half_storage;       // StorageBuffer16BitAccess
    case 4448: return f.byte_storage;       // StorageBuffer8BitAccess
    default: return false;
  }
}

/// The text that begins with a word; nothing behind `words` is read.
std::string text_at(std::span<const uint32_t> words) {
  const auto* bytes = reinterpret_cast<const char*>(words.data());
  return std::string(bytes, strnlen(bytes, words.size_bytes()));
}

/// The resources that a module declares.
struct Resources {
  std::map<uint32_t, uint32_t> bindings, sets;
  std::vector<uint32_t> variables;  ///< storage buffers
  bool has_main = false;
  std::string refusal;
};

void read(std::span<const uint32_t> words, const Features& f, Resources& r) {
  const uint32_t op = words[0] & 0xffff;
  const size_t n = words.size();
  if (op == kCapability && n >= 2 && !is_allowed(words[1], f)) {
    r.refusal = cat("a shader with SPIR-V's capability ", words[1], ", which is not switched on");
  } else if (op == kEntryPoint && n >= 4) {
    if (words[1] != kGLCompute)
      r.refusal = "a shader that is not a compute shader";
    else
      r.has_main |= text_at(words.subspan(3)) == "main";
  } else if (op == kExecutionMode && n >= 6 && words[2] == kLocalSize) {
    const uint64_t invocations = uint64_t{words[3]} * words[4] * words[5];
    if (words[3] > f.max_invocations || words[4] > f.max_invocations || invocations > f.max_invocations)
      r.refusal = cat("a workgroup of ", words[3], " x ", words[4], " x ", words[5],
                      " invocations, above maxComputeWorkGroupInvocations");
  } else if (op == kDecorate && n >= 4) {
    if (words[2] == kDecorationBinding) r.bindings[words[1]] = words[3];
    if (words[2] == kDecorationDescriptorSet) r.sets[words[1]] = words[3];
  } else if (op == kVariable && n >= 4) {
    if (words[3] == kStorageBuffer || words[3] == kUniform) r.variables.push_back(words[2]);
    if (words[3] == kUniformConstant) r.refusal = "a shader with images or samplers";
  }
}

}  // namespace

std::string refusal_of_spirv(std::span<const uint32_t> code, int bindings, const Features& features) {
  if (code.size() < kHeaderWords || code[0] != kMagic) return "a shader that is not SPIR-V";
  if (code[1] > 0x00010300) return cat("a shader of SPIR-V ", code[1] >> 16, ".", code[1] >> 8 & 0xff, ", above 1.3");
  Resources r;
  for (size_t at = kHeaderWords; at < code.size();) {
    const size_t n = code[at] >> 16;
    if (n == 0 || n > code.size() - at) return "a shader whose SPIR-V is cut off";
    // Everything that is looked for stands before the functions.
    if ((code[at] & 0xffff) == kFunction) break;
    read(code.subspan(at, n), features, r);
    if (!r.refusal.empty()) return r.refusal;
    at += n;
  }
  if (!r.has_main) return "a shader without an entry point \"main\"";
  for (const uint32_t v : r.variables) {
    const auto set = r.sets.find(v), binding = r.bindings.find(v);
    if (set == r.sets.end() || binding == r.bindings.end()) return "a shader with a buffer that has no binding";
    if (set->second != 0 || binding->second >= static_cast<uint32_t>(bindings))
      return cat("a shader with binding ", binding->second, " of set ", set->second, "; there are ", bindings,
                 " buffers of set 0");
  }
  return {};
}

Result<std::vector<uint32_t>> spirv_of(std::string_view bytes) {
  if (bytes.size() % 4 != 0) return fail(ErrorCode::malformed, "a shader whose SPIR-V is cut off");
  std::vector<uint32_t> words(bytes.size() / 4);
  if (!words.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

const Shader& lasting_shader(std::span<const uint32_t> code, int bindings) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::pair<std::vector<uint32_t>, int>, std::unique_ptr<Shader>>;
  static auto& names = *new std::deque<std::string>;
  const std::lock_guard lock(mutex);
  const auto [it, is_new] = all.try_emplace({std::vector<uint32_t>(code.begin(), code.end()), bindings});
  if (is_new) {
    names.push_back(cat("registered ", names.size()));
    it->second = std::make_unique<Shader>(Shader{{names.back(), bindings, false}, it->first.first});
  }
  return *it->second;
}

}  // namespace moka::devices::vulkan
