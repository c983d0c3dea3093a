// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ir/tensor.h"
#include "kernel/memory.h"

namespace moka::runtime {

/// The content of one state between predictions: in host memory, or in the memory of the device that
/// computed it last. It moves when the host or another device needs it.
class StateValue {
 public:
  explicit StateValue(ir::Tensor host) : host_(std::move(host)) {}

  ir::DType dtype() const { return host_.dtype(); }
  const ir::Shape& shape() const { return host_.shape(); }
  size_t bytes() const { return host_.bytes(); }
  /// The device that has the newest content; nullptr: the host.
  const kernel::Device* device() const { return is_host_current_ ? nullptr : device_; }

  /// In host memory. Errors: device_lost, when the content was lost with its device.
  Result<const ir::Tensor*> read();
  /// In host memory, to be changed there.
  Result<ir::Tensor*> write();
  /// In host memory, to be written as a whole.
  ir::Tensor& replace();
  /// In the memory of `device`, where a prediction is about to change it. Errors: out_of_budget, device_lost.
  Result<std::shared_ptr<kernel::Buffer>> on_device(const kernel::Device& device);
  /// The prediction that asked for `on_device` has ended.
  void computed() { is_host_current_ = false; }
  /// The prediction failed and may have changed the device's copy. If the host still has the content, that copy counts.
  /// Otherwise the device's copy stays, or with `lost` the content is gone.
  void failed(bool lost);

 private:
  ir::Tensor host_;
  const kernel::Device* device_ = nullptr;
  std::shared_ptr<kernel::Buffer> buffer_;
  bool is_host_current_ = true, is_device_current_ = false;
};

}  // namespace moka::runtime
