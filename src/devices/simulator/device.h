#pragma once

#include "kernel/kernel.h"

namespace moka::devices::simulator {

/// A device with a memory of its own, made of reference kernels: it shows whether plans keep to docs/compute-units.md.
/// Its buffers start as NaN and have no address that the host knows. Every queue works in a thread of its own after
/// random delays, so submissions of several queues end in any order. Some values lie in blocks of channels. The device
/// is used only when it is named.
const kernel::Device& device();

/// What tests make the device do.
struct Faults {
  int lost_after = -1;           ///< submissions until it is lost; -1: never
  size_t most_bytes = SIZE_MAX;  ///< of all its buffers together
  bool holds = false;            ///< submissions start and do not end until this is false again
};
/// From now on, for all queues. A device that was lost works again.
void set_faults(const Faults& faults);
/// How many submissions are in flight, over all queues.
int count_running();
/// Whether the host sees the device's memory: uploads and downloads are the values themselves. At first what the
/// environment variable MOKA_SIMULATOR_UNIFIED says. For submissions that are compiled from now on.
void set_unified(bool unified);

}  // namespace moka::devices::simulator
