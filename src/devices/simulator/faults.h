// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace moka::devices::simulator {

/// Settings for tests.
struct Faults {
  int lost_after = -1;           ///< number of submissions after which it is lost; -1: never
  size_t most_bytes = SIZE_MAX;  ///< limit for all its buffers together
  bool holds = false;            ///< while true, submissions start but do not finish
};
/// Applies the settings from now on, for all queues. A lost device works again.
void set_faults(const Faults& faults);
/// The minimum duration of a submission. The device runs one submission at a time and sleeps once it has computed. 0:
/// no minimum. The environment variable MOKA_SIMULATOR_MS sets the initial value in milliseconds.
void set_least_seconds(double seconds);
/// Number of submissions in flight, over all queues.
int count_running();
/// Whether the host and the device share memory, so that uploads and downloads copy nothing. The environment variable
/// MOKA_SIMULATOR_UNIFIED sets the initial value. Applies to submissions that are compiled from now on.
void set_unified(bool unified);

}  // namespace moka::devices::simulator
