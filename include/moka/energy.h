// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "moka/error.h"

namespace moka {

/// The energy that a part of the machine took.
struct EnergyPart {
  std::string name;  ///< "package-0", "dram of package-0", or the name of a GPU
  double joules = 0;
};

/// The energy of a stretch of time, for all work of the machine in it.
struct MOKA_EXPORT Energy {
  std::vector<EnergyPart> parts;     ///< of which none contains another one
  std::vector<std::string> missing;  ///< what is not measured, with the reason
  double joules() const;             ///< the sum of the parts
};

/// Counts the energy of the machine from its construction on: that of the processor by the kernel's powercap interface
/// (RAPL of Intel and AMD), where this process may read it, and that of NVIDIA's GPUs by NVML, where it is installed.
/// Idle power and other programs count, too. The counters of a processor change about once in a millisecond, so
/// measure for a second or longer.
class MOKA_EXPORT EnergyMeter {
 public:
  /// Reads all counters. MOKA_POWERCAP in the environment replaces the folder /sys/class/powercap.
  EnergyMeter();
  EnergyMeter(EnergyMeter&&) noexcept;
  EnergyMeter& operator=(EnergyMeter&&) noexcept;
  ~EnergyMeter();
  /// Reads counters that may wrap around, if the last time is long ago. Costs a reading of the clock otherwise. Call it
  /// at least once a minute.
  void poll();
  /// What was taken since the construction.
  Energy taken();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace moka
