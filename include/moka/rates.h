// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "moka/error.h"

namespace moka {

/// Speed of one unit of this machine. The planner compares units by it. Zero: not measured.
struct UnitRates {
  std::string device, unit, description;  ///< "vulkan", "gpu" ("cpu" for a software driver), name of the hardware
  /// floating-point operations per second in large matrix products; a multiply-add counts as two
  double fp32 = 0, fp16 = 0;
  double bytes = 0;           ///< bytes per second that elementwise operations read and write in memory, beyond caches
  double launch = 0;          ///< seconds of one submission; zero for units in host memory
  double transfer = 0;        ///< seconds of an empty transfer
  double transfer_bytes = 0;  ///< bytes per second of transfers; zero for units in host memory
  std::string date{};         ///< when they were measured, UTC: "2026-11-24T12:00:00Z"; empty: not measured
  bool disturbed = false;     ///< other work took processors meanwhile; measure again when the machine is idle
};

struct MachineRates {
  std::string file;              ///< file that keeps the rates; empty: none
  std::vector<UnitRates> units;  ///< the host first
  std::vector<std::string> remarks;
};

/// Measures the CPU and each GPU, and saves the rates to `file` (as in ModelConfiguration::rates). `device`: measures
/// the CPU and this device, which may be a driver that computes on the CPU; such drivers are not GPUs. Rates that other
/// work disturbed replace no others; a remark tells. The rates apply to plans that use `threads` threads (0: one per
/// core). Takes a second or two per unit. Only this function measures them: loading a model reads the file, and
/// estimates what it lacks. Throws io when the file cannot be written, not_found for an unknown device.
MOKA_EXPORT MachineRates measure_rates(const std::string& file = {}, int threads = 0, const std::string& device = {});
/// The rates in the file for this machine. Units that are not in the file have zeros.
MOKA_EXPORT MachineRates read_rates(const std::string& file = {}, int threads = 0, const std::string& device = {});

}  // namespace moka
