// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/rates.h"

namespace moka::runtime {

/// The rates of one machine for a number of threads, and their file.
class RatesFile {
 public:
  /// Reads the file; an empty path is none. A file that cannot be used becomes a remark. `build`: of the kernels.
  RatesFile(std::string path, std::span<const kernel::Device* const> devices, std::string build, int threads);

  /// nullptr: the file does not have the device.
  const KnownUnit* find(const kernel::Device& d) const;
  /// Measures again. A disturbed measurement replaces no other one. Returns whether it was disturbed.
  Result<bool> measure(const kernel::Device& d, Waited waited);
  /// The file holds rounded numbers. Rounding here makes this load plan with the same numbers as later loads.
  Status save();
  const std::string& remark() const { return remark_; }

 private:
  Status read(Result<std::string> text);

  std::string path_, remark_;
  std::vector<const kernel::Device*> hosts_;
  RatesMachine machine_;
  std::vector<KnownUnit> known_;
};

}  // namespace moka::runtime
