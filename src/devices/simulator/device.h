#pragma once

#include "kernel/kernel.h"

namespace moka::devices::simulator {

/// A device with its own memory, made of reference kernels. It tests whether plans follow docs/compute-units.md. Its
/// buffers start as NaN, and the host does not know their addresses. Every queue works in its own thread after random
/// delays, so submissions of several queues finish in any order. Some values are stored in blocks of channels. The
/// device is used only when it is named.
const kernel::Device& device();

/// Settings for tests.
struct Faults {
  int lost_after = -1;           ///< number of submissions after which it is lost; -1: never
  size_t most_bytes = SIZE_MAX;  ///< limit for all its buffers together
  bool holds = false;            ///< submissions start but do not finish until this is false again
};
/// Applies the settings from now on, for all queues. A lost device works again.
void set_faults(const Faults& faults);
/// The minimum duration of a submission. The device runs one submission at a time and sleeps once it has computed. 0:
/// no minimum. The environment variable MOKA_SIMULATOR_MS sets the initial value in milliseconds.
void set_least_seconds(double seconds);
/// Number of submissions in flight, over all queues.
int count_running();
/// Whether the host shares the device's memory, so that uploads and downloads are the values themselves. The
/// environment variable MOKA_SIMULATOR_UNIFIED sets the initial value. Applies to submissions that are compiled from
/// now on.
void set_unified(bool unified);

}  // namespace moka::devices::simulator
