#pragma once

#include <string>

namespace moka::kernel {

/// A device for hardware other than the CPU. Compute units include it only where the machine has that hardware.
class Hardware {
 public:
  virtual ~Hardware() = default;
  /// Why the compute unit "all" skips this device on this machine, e.g. "no GPU under /dev"; empty: "all" includes it.
  /// Loads no driver if there is no hardware.
  virtual std::string named_only() const = 0;
  /// "pixels is a software driver, which computes on the CPU" if the machine has no better one; otherwise empty. No
  /// compute unit includes such a device, and plans that name it count it to the CPU. Loads the driver.
  virtual std::string software() const = 0;
};

}  // namespace moka::kernel
