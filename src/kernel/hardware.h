#pragma once

#include <string>

namespace moka::kernel {

/// A device beside the CPU that is hardware, on some machines at least. The compute units "all" ask no others.
class Hardware {
 public:
  virtual ~Hardware() = default;
  /// Why "all" leave it out on this machine unless it is named, e.g. "no GPU under /dev"; empty: they ask it. Loads no
  /// driver where there is nothing to drive.
  virtual std::string named_only() const = 0;
};

}  // namespace moka::kernel
