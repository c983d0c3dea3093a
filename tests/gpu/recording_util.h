// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "devices/gpu/gpu_device.h"

namespace moka::gpu_test {

/// A backend without an API. It runs nothing: it writes down what kernels dispatch.
///
///     upload a[0:24]                                     where the host writes the first input
///     softmax_f32<1 1>(a[0:24] b[0:24]*) {0 0 6} 1x1x1   code, constants, buffers, parameters, workgroups
///     wait copy(b[0:24] c[0:24]*)                        uses what commands since the last wait write
///     download c[0:24]
///
/// Buffers have letters in the order in which they appear. [begin:end) are bytes, `*`: it is written, `_`: it is bound
/// but not read. Constants and parameters are words, written as floats where their bits are those of a normal one.
class RecordingDevice final : public devices::gpu::GpuDevice {
 public:
  /// `unified`: the host sees the device's memory.
  explicit RecordingDevice(devices::gpu::Features features, bool unified = true);
  ~RecordingDevice() override;

  std::string_view name() const override { return "recording"; }
  std::string description() const override { return "writes down what kernels dispatch"; }
  int rank() const override { return 10; }
  bool is_there() const override { return true; }
  const devices::gpu::Features& features() const override { return features_; }
  const devices::gpu::Code* find_code(std::string_view name) const override;
  /// Code that an application supplies is a name.
  std::span<const std::string_view> shader_kinds() const override;
  Result<const devices::gpu::Code*> compile(const ir::RegisteredShader::Code& code, int bindings) const override;
  const kernel::Memory* memory() const override { return memory_.get(); }
  Result<std::shared_ptr<kernel::Buffer>> allocate_staging(size_t bytes) const override;
  Result<std::unique_ptr<kernel::Queue>> open_queue() const override;

  /// The regions that were compiled since the last call, one behind the other.
  std::string take_text() const;
  void add(const std::string& region) const;

 private:
  devices::gpu::Features features_;
  std::unique_ptr<kernel::Memory> memory_;
  mutable std::mutex mutex_;
  mutable std::string text_;
};

/// A card with a memory of its own.
devices::gpu::Features card();
/// A card whose shared memory is ordinary memory.
devices::gpu::Features card_without_tiles();

/// What the device records of a program with the function `main`, whose inputs are `inputs`: the text of its regions.
std::string recorded(const RecordingDevice& device, const std::string& inputs, const std::string& body,
                     const std::string& outputs);

}  // namespace moka::gpu_test
