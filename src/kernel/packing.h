#pragma once

#include <string>

namespace moka::kernel {

/// A device whose packed weights serve other machines too: it also is one of these. The packed weights of every other
/// device serve machines of the same `Device::identity()`.
class Packing {
 public:
  virtual ~Packing() = default;
  /// What packed weights depend on besides the kernels' sources and keys: instruction sets, versions of libraries.
  virtual std::string packing() const = 0;
};

}  // namespace moka::kernel
