// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/gpu/code.h"
#include "devices/gpu/features.h"
#include "ir/registered.h"
#include "kernel/device.h"
#include "kernel/memory.h"

/// What GPUs have in common, whatever the API by which they are used:
///
///     GpuDevice        a card; which kernel runs an operation (kernels/)
///     CommandRecorder  a region as dispatches and copies (recorder.h)
///     record_region    where the host writes and reads its values (region.h)
///
/// A backend has a folder of its own. It derives from GpuDevice, has the code of each dispatch by its name, and runs
/// the commands of a region.
namespace moka::devices::gpu {

class GpuDevice : public kernel::Device {
 public:
  /// `api`: what the names of kernels begin with, "vulkan" for "vulkan.conv".
  explicit GpuDevice(std::string_view api) : api_(api) {}

  /// What the card can do, which never changes. Loads the driver.
  virtual const Features& features() const = 0;
  /// The code that kernels of this folder dispatch by name: numbers.inc has its constants. nullptr: there is none.
  virtual const Code* find_code(std::string_view name) const = 0;
  /// What the code says of its constants, parameters and bindings. The default knows nothing.
  virtual CodeFacts facts_of(const Code&) const { return {}; }
  /// The kinds of code that applications may supply: "spirv". Static storage.
  virtual std::span<const std::string_view> shader_kinds() const = 0;
  /// Code of one of these kinds, with that many buffers. It lives as long as the process. Errors: unsupported and
  /// malformed, as a noun phrase that says why the device cannot run it; io.
  virtual Result<const Code*> compile(const ir::RegisteredShader::Code& code, int bindings) const = 0;
  /// Host memory that the device copies from and to. Memory::host_address tells where it is.
  virtual Result<std::shared_ptr<kernel::Buffer>> allocate_staging(size_t bytes) const = 0;
  /// Whether there is a card. Loads the driver.
  virtual bool is_there() const = 0;

  kernel::ComputeUnit unit() const override { return kernel::ComputeUnit::gpu; }
  /// Those of this folder; none without a card.
  std::span<const kernel::KernelDef> kernels() const override;
  kernel::Match convert(ir::DType dtype, const ir::Shape& shape, kernel::Layout from, kernel::Layout to) const override;
  kernel::Match unpack(kernel::PlaneOrder order, const ir::Type& planes) const override;
  bool takes_frames() const override { return is_there() && features().takes_frames; }
  bool applies(const ir::Epilogue& epilogue) const override;
  bool may_join(const kernel::KernelChoice& first, const kernel::KernelChoice& reader) const override;

  /// "vulkan.conv" for "conv". Static storage.
  std::string_view kernel_name(std::string_view stem) const;

 private:
  std::string_view api_;
};

}  // namespace moka::devices::gpu
