#pragma once

#include <memory>
#include <string>

#include "kernel/kernel.h"

namespace moka::kernel {

/// A device that simulates absent hardware. Rules say what that hardware would run, and the host's devices compute it
/// with the hardware's precision.
class Preview : public Device {
 public:
  /// A copy of the device with additional rules, given as text. `hosts` compute its operations and are asked in order.
  /// Errors: malformed, with the line.
  virtual Result<std::unique_ptr<Device>> with(std::vector<const Device*> hosts, std::string_view rules) const = 0;
};

}  // namespace moka::kernel
