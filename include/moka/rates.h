#pragma once

#include <string>
#include <vector>

#include "moka/error.h"

namespace moka {

/// What a unit of this machine does in a second, by which the planner compares units. Zero: not measured.
struct UnitRates {
  std::string device, unit, description;  ///< "vulkan", "gpu", the hardware
  double fp32 = 0, fp16 = 0;              ///< operations a second in large products, a multiply-add counted as two
  double bytes = 0;                       ///< a second that elementwise operations read and write
  double launch = 0;                      ///< seconds of one submission; zero for units in host memory
  double transfer = 0;                    ///< seconds of a transfer of nothing
  double transfer_bytes = 0;              ///< a second that transfers move; zero for units in host memory
};

struct MachineRates {
  std::string file;              ///< that keeps them; empty: none
  std::vector<UnitRates> units;  ///< the host's first
  std::vector<std::string> remarks;
};

/// Measures the CPU and each GPU that has a driver, and keeps the rates in the file that `file` stands for
/// (ModelConfiguration::rates) for plans that share `threads` threads (0: one for each core). Takes about a second for
/// each unit. Throws io: the file cannot be written.
MOKA_EXPORT MachineRates measure_rates(const std::string& file = {}, int threads = 0);
/// What the file has for this machine; units that it lacks have zeros.
MOKA_EXPORT MachineRates read_rates(const std::string& file = {}, int threads = 0);

}  // namespace moka
