// SPDX-License-Identifier: Apache-2.0
#include "devices/vulkan/device.h"

#include <glob.h>

#include "devices/vulkan/pipelines.h"
#include "devices/vulkan/queue.h"
#include "devices/vulkan/reflection.h"
#include "devices/vulkan/spirv.h"

namespace moka::devices::vulkan {

namespace {

/// A card, or why there is none.
struct Found {
  std::string description;
  Features features;
  bool is_there = false;

  explicit Found(size_t card) {
    auto of = Context::probe(card);
    if (!of.ok()) {
      description = cat("no GPU: ", of.error().message());
      return;
    }
    features = std::move(*of);
    is_there = true;
    description = cat(features.name, features.half_storage ? "" : ", without float16");
  }
};

/// Whether the system may have a GPU. Only looks at file names, because loading drivers takes time and memory.
bool has_node() {
  static const bool has = [] {
    glob_t names{};
    for (const char* pattern :
         {"/dev/dri/renderD*", "/dev/nvidia[0-9]*", "/dev/dxg", "/dev/kgsl-3d0", "/dev/mali[0-9]*"})
      if (glob(pattern, GLOB_NOSORT, nullptr, &names) == 0) {
        globfree(&names);
        return true;
      }
    return false;
  }();
  return has;
}

class Vulkan final : public gpu::GpuDevice {
 public:
  explicit Vulkan(size_t card)
      : GpuDevice("vulkan"), card_(card), name_(card == 0 ? "vulkan" : cat("vulkan", card)), memory_(card) {}
  std::string_view name() const override { return name_; }
  std::string description() const override {
    return cat(found().description, found().features.is_processor ? ", a software driver" : "");
  }
  std::string identity() const override { return found().is_there ? found().features.identity : found().description; }
  int rank() const override { return card_ == 0 ? 50 : -1; }
  std::string named_only() const override {
    if (!has_node()) return "no GPU under /dev";
    if (!is_there()) return found().description;
    return software();
  }
  std::string software() const override {
    return features().is_processor ? cat(found().description, " is a software driver, which computes on the CPU") : "";
  }
  std::vector<const kernel::Device*> others() const override {
    return card_ == 0 ? other_cards() : std::vector<const kernel::Device*>();
  }
  bool is_there() const override { return found().is_there; }
  const gpu::Features& features() const override { return found().features; }
  const gpu::Code* find_code(std::string_view name) const override { return find_shader(name); }
  gpu::CodeFacts facts_of(const gpu::Code& code) const override {
    return facts_of_spirv(static_cast<const Shader&>(code).code);
  }
  std::span<const std::string_view> shader_kinds() const override {
    static constexpr std::string_view kinds[] = {"spirv", "glsl"};
    return kinds;
  }
  Result<const gpu::Code*> compile(const ir::RegisteredShader::Code& code, int bindings) const override {
    const std::vector<uint32_t> words =
        code.kind == "glsl" ? *MOKA_TRY(compile_glsl(code.bytes)) : MOKA_TRY(spirv_of(code.bytes));
    if (std::string why = refusal_of_spirv(words, bindings, found().features); !why.empty())
      return fail(ErrorCode::unsupported, std::move(why));
    return &lasting_shader(words, bindings);
  }
  const kernel::Memory* memory() const override { return &memory_; }
  Result<std::shared_ptr<kernel::Buffer>> allocate_staging(size_t bytes) const override {
    return std::shared_ptr<kernel::Buffer>(
        MOKA_TRY(VulkanBuffer::make(MOKA_TRY(Context::get(card_)), bytes, VulkanBuffer::Use::staging)));
  }
  Result<std::unique_ptr<kernel::Queue>> open_queue() const override {
    return std::unique_ptr<kernel::Queue>(std::make_unique<VulkanQueue>(MOKA_TRY(Context::get(card_)), *this));
  }
  Status read_code(const std::string& folder) const override {
    if (!is_there()) return {};
    return MOKA_TRY(Context::get(card_))->pipelines().read_folder(folder);
  }
  Status write_code(const std::string& folder) const override {
    if (!is_there()) return {};
    return MOKA_TRY(Context::get(card_))->pipelines().write_folder(folder);
  }

 private:
  /// The cards but the best one.
  static std::vector<const kernel::Device*> other_cards() {
    static const auto& all = *new std::vector<const kernel::Device*>([] {
      std::vector<const kernel::Device*> made;
      for (size_t card = 1; card < Context::count(); card++) made.push_back(new Vulkan(card));
      return made;
    }());
    return all;
  }
  /// The first call looks for the card, because loading drivers takes time and memory.
  const Found& found() const {
    std::call_once(once_, [&] { found_.emplace(card_); });
    return *found_;
  }

  const size_t card_;
  const std::string name_;
  VulkanMemory memory_;
  mutable std::once_flag once_;
  mutable std::optional<Found> found_;
};

}  // namespace

const gpu::GpuDevice& device() {
  // Kernels of models that live until the process ends refer to its features.
  static const auto& d = *new Vulkan(0);
  return d;
}

std::vector<const kernel::Device*> devices() { return {&device()}; }

}  // namespace moka::devices::vulkan
