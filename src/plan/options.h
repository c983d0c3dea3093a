// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/rates.h"
#include "plan/choices.h"
#include "plan/constants.h"

namespace moka::plan {

/// Bytes of the plans that the caches of one model keep.
struct KeptPlans {
  size_t limit = SIZE_MAX;
  std::atomic<size_t> bytes{0};
};

/// Options that the plans of one model share.
struct PlanOptions {
  std::vector<const kernel::Device*> devices;  ///< in order of preference; the last one is `reference`
  int threads = 1;
  bool reuse_buffers = true;  ///< false: values never share memory; for debugging
  size_t cached_shapes = 8;   ///< plans kept per block; the least recently used is dropped first
  /// When the plans exceed its limit, each block keeps only its most recent plan. nullptr: no limit.
  std::shared_ptr<KeptPlans> kept;
  std::shared_ptr<MemoryBudget> budget;
  std::shared_ptr<ConstantPool> constants;
  std::shared_ptr<KernelChoices> choices;  ///< nullptr: the kernels' rules decide
  /// The device that an operation is pinned to; nullptr: its cost decides. Optional.
  std::function<const kernel::Device*(const ir::Op&)> pinned_device;
  bool observed = false;                       ///< results on devices are also copied to the host
  std::shared_ptr<const kernel::Rates> rates;  ///< nullptr: the conservative table
  /// Kernels with KernelDef::low_memory run what they can.
  bool low_memory = false;
  /// A function's plan leaves what it can of its kernels' preparation to later runs (plan/late.h).
  bool prepare_late = false;
  /// Plans keep what their kernels need to be prepared again (plan::renew).
  bool renewable = false;
  bool strict = false;  ///< error when a device refuses an operation that is pinned to it
  /// States whose first reader runs on a device stay in its memory: Frame::set_state gives their buffers.
  bool states_on_devices = false;
  /// The planes of an input that is an image; nullopt: it is not an image. Optional.
  std::function<std::optional<kernel::PlaneOrder>(const ir::Value&)> image_planes;
  /// Room for packed frames of cameras, in bytes, in place of an image on a device that takes them; 0: none are given.
  size_t frame_bytes = 0;
};

}  // namespace moka::plan
