// SPDX-License-Identifier: Apache-2.0
#include "runtime/state_value.h"

#include <algorithm>

#include "kernel/fault.h"

namespace moka::runtime {

Result<const ir::Tensor*> StateValue::read() {
  if (is_host_current_) return &host_;
  if (is_device_current_) {
    Status copied = device_->memory()->read(*buffer_, 0, host_.mutable_data(), host_.bytes());
    is_device_current_ = copied.ok() || copied.error().code() != ErrorCode::device_lost;
    if (is_device_current_) MOKA_TRY_ON(std::move(copied), *device_);
  }
  if (!is_device_current_)
    return fail(ErrorCode::device_lost, "its content was in the memory of ", kernel::place_of(*device_),
                ", which failed: write it again or make a new state");
  is_host_current_ = true;
  return &host_;
}

Result<ir::Tensor*> StateValue::write() {
  MOKA_TRY(read());
  return &replace();
}

ir::Tensor& StateValue::replace() {
  is_host_current_ = true;
  is_device_current_ = false;
  return host_;
}

Result<std::shared_ptr<kernel::Buffer>> StateValue::on_device(const kernel::Device& device) {
  if (device_ == &device && is_device_current_) return buffer_;
  MOKA_TRY(read());
  if (device_ != &device || buffer_ == nullptr) {
    is_device_current_ = false;
    buffer_ = MOKA_TRY_ON(device.memory()->allocate(std::max<size_t>(host_.bytes(), 1)), device);
    device_ = &device;
  }
  MOKA_TRY_ON(device.memory()->write(*buffer_, 0, host_.data(), host_.bytes()), device);
  is_device_current_ = true;
  return buffer_;
}

void StateValue::failed(bool lost) {
  if (!is_host_current_ && !lost) return;
  is_device_current_ = false;
  // Buffers of a lost device are of no more use.
  buffer_ = nullptr;
}

}  // namespace moka::runtime
