#pragma once

#include <string>

namespace moka::kernel {

/// A device derives from this class if machines with another `Device::identity()` can use its packed weights, too. The
/// weights then serve all machines with the same `packing()`.
class Packing {
 public:
  virtual ~Packing() = default;
  /// Everything that packed weights depend on besides kernels and keys: instruction sets, versions of libraries.
  virtual std::string packing() const = 0;
};

}  // namespace moka::kernel
