#include "devices/vulkan/device.h"

#include <glob.h>

#include "devices/vulkan/kernels/families.h"
#include "devices/vulkan/pipelines.h"
#include "kernel/device.h"

namespace moka::devices::vulkan {

namespace {

struct Found {
  std::string description;
  bool is_processor = false;
  std::vector<KernelDef> kernels;
};

/// The GPU that was found. The first call looks for it, because loading drivers takes time and memory.
const Found& found() {
  static const auto* f = [] {
    auto* made = new Found;
    auto features = Context::probe();
    if (!features.ok()) {
      made->description = cat("no GPU: ", features.error().message());
      return made;
    }
    made->description = features->name;
    if (!features->half_storage) made->description += ", without float16";
    made->is_processor = features->is_processor;
    for (auto family :
         {attention_kernels(), concat_kernels(), conv_kernels(),       conv_transpose_kernels(), elementwise_kernels(),
          fill_kernels(),      gather_kernels(), host_kernels(),       matmul_kernels(),         movement_kernels(),
          norm_kernels(),      order_kernels(),  pad_kernels(),        pool_kernels(),           quantize_kernels(),
          recurrent_kernels(), reduce_kernels(), registered_kernels(), resize_kernels(),         sample_kernels()})
      made->kernels.insert(made->kernels.end(), family.begin(), family.end());
    return made;
  }();
  return *f;
}

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

class Vulkan final : public kernel::Device {
 public:
  std::string_view name() const override { return "vulkan"; }
  std::string description() const override {
    return cat(found().description, found().is_processor ? ", a software driver" : "");
  }
  std::string identity() const override { return found().description; }
  kernel::ComputeUnit unit() const override { return kernel::ComputeUnit::gpu; }
  int rank() const override { return 50; }
  std::string named_only() const override {
    if (!has_node()) return "no GPU under /dev";
    if (found().kernels.empty()) return found().description;
    return software();
  }
  std::string software() const override {
    return found().is_processor ? cat(found().description, " is a software driver, which computes on the CPU") : "";
  }
  std::span<const KernelDef> kernels() const override { return found().kernels; }
  const kernel::Memory* memory() const override { return &memory_; }
  Result<std::unique_ptr<kernel::Queue>> open_queue() const override {
    return std::unique_ptr<kernel::Queue>(std::make_unique<VulkanQueue>(MOKA_TRY(Context::get())));
  }
  Match convert(ir::DType dtype, const ir::Shape& shape, Layout from, Layout to) const override {
    return match_conversion(dtype, shape, from, to);
  }
  Match unpack(kernel::PlaneOrder order, const ir::Type& planes) const override { return match_unpack(order, planes); }
  Status read_code(const std::string& folder) const override {
    if (found().kernels.empty()) return {};
    return MOKA_TRY(Context::get())->pipelines().read_folder(folder);
  }
  Status write_code(const std::string& folder) const override {
    if (found().kernels.empty()) return {};
    return MOKA_TRY(Context::get())->pipelines().write_folder(folder);
  }
  bool may_join(const kernel::KernelChoice& first, const kernel::KernelChoice& reader) const override {
    return first.kernel == "vulkan.conv.direct" && reader.kernel == "vulkan.conv";
  }
  bool applies(const ir::Epilogue& e) const override { return function_of(e).has_value(); }

 private:
  VulkanMemory memory_;
};

}  // namespace

const kernel::Device& device() {
  static const Vulkan d;
  return d;
}

std::vector<const kernel::Device*> devices() { return {&device()}; }

}  // namespace moka::devices::vulkan
