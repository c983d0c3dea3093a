#pragma once

#include <stdexcept>

namespace moka::cli {

/// The person's command or values don't fit: exit code 2. One line that names what, expected and got.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a program ends with.
enum ExitCode { kFine = 0, kNo = 1, kWrongUse = 2, kBadFile = 3 };

}  // namespace moka::cli
