#pragma once

#include <stdexcept>
#include <string>

#if defined(__GNUC__)
#define MOKA_EXPORT __attribute__((visibility("default")))
#else
#define MOKA_EXPORT
#endif

namespace moka {

/// Kinds of failure; docs/errors.md describes each.
enum class ErrorKind {
  invalid_argument = 1,  ///< a value, name, shape or type given by the caller does not fit the model
  malformed = 2,         ///< the model's bytes contradict themselves or their format
  unsupported = 3,       ///< valid model, but Moka cannot run it; the message names the feature
  not_found = 4,         ///< a file, function, feature or weight that does not exist
  io = 5,                ///< the operating system reported a failure
  out_of_budget = 6,     ///< would exceed ModelConfiguration::memory_budget, or memory ran out
  data = 7,              ///< a value in a prediction violates a rule of an operation
  internal = 8,          ///< a bug in Moka
  device_lost = 9,       ///< a device failed during a computation
};

/// The exception that Moka throws. what() says what went wrong and where, and what was expected and found.
class MOKA_EXPORT Exception : public std::runtime_error {
 public:
  Exception(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ~Exception() override;
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace moka
