// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace moka::cli {

/// The user's command or values are wrong (exit code 2). One line that says what is wrong, and what was expected and
/// given.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Exit codes of programs.
enum ExitCode { kFine = 0, kNo = 1, kWrongUse = 2, kBadFile = 3, kInterrupted = 130 };

}  // namespace moka::cli
