// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "kernel/memory.h"

namespace moka::devices::simulator {

class SimulatedBuffer final : public kernel::Buffer {
 public:
  explicit SimulatedBuffer(size_t bytes);
  /// Over memory of the host.
  SimulatedBuffer(std::shared_ptr<std::byte> host, size_t bytes) : Buffer(bytes), data_(std::move(host)) {}
  ~SimulatedBuffer() override;
  /// Called on the device's own thread.
  std::byte* data() const { return data_.get(); }

 private:
  std::shared_ptr<std::byte> data_;
  bool is_counted_ = false;
};

/// The bytes of a view.
std::byte* data_of(const kernel::BufferView& v);

/// Records work in order.
class SimulatedRecorder final : public kernel::Recorder {
 public:
  std::vector<std::function<Status()>> work;
};

const kernel::Memory& memory();
std::unique_ptr<kernel::Queue> open_queue();

}  // namespace moka::devices::simulator
