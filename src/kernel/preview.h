#pragma once

#include <memory>
#include <string>

#include "kernel/kernel.h"

namespace moka::kernel {

/// A device that stands for hardware which is not there: rules say what that would run, and the host's devices compute
/// it with its precision.
class Preview : public Device {
 public:
  /// The same with more rules, computed by `hosts`, which are asked in order. `rules`: text. Errors: malformed, with
  /// the line.
  virtual Result<std::unique_ptr<Device>> with(std::vector<const Device*> hosts, std::string_view rules) const = 0;
};

}  // namespace moka::kernel
