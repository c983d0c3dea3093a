#pragma once

#include <string>

namespace moka::kernel {

/// A device other than the CPU that is real hardware. The compute unit "all" includes only such devices and the CPU.
class Hardware {
 public:
  virtual ~Hardware() = default;
  /// Why the compute unit "all" skips this device on this machine, e.g. "no GPU under /dev"; empty: "all" includes it.
  /// Loads no driver if there is no hardware.
  virtual std::string named_only() const = 0;
};

}  // namespace moka::kernel
