#pragma once

#include <string>

#include "base/error.h"

namespace moka::kernel {

/// Implemented by devices that compile kernels at run time and can save the compiled code. Thread-safe.
class CodeCache {
 public:
  virtual ~CodeCache() = default;
  /// Loads code that earlier processes compiled, once per folder. Ignores a file that is damaged or from another
  /// driver.
  virtual Status read_code(const std::string& folder) const = 0;
  /// Saves the code compiled since the last read or write. Error io.
  virtual Status write_code(const std::string& folder) const = 0;
};

}  // namespace moka::kernel
