#pragma once

#include <string>

#include "base/error.h"

namespace moka::kernel {

/// What a device does that compiles its kernels while running and can keep the result: it also is one of these.
/// Thread-safe.
class CodeCache {
 public:
  virtual ~CodeCache() = default;
  /// Adds what earlier processes have compiled, once for each folder. A file that is damaged or of another driver is as
  /// if it were not there.
  virtual Status read_code(const std::string& folder) const = 0;
  /// Writes what was compiled since it was read or written. Error io.
  virtual Status write_code(const std::string& folder) const = 0;
};

}  // namespace moka::kernel
