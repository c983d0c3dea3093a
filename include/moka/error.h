// SPDX-License-Identifier: Apache-2.0
#pragma once

#if __cplusplus < 202002L
#error "Moka's C++ interface needs C++20: -std=c++20. moka/moka.h is for older standards and for C."
#endif

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#if defined(__GNUC__)
#define MOKA_EXPORT __attribute__((visibility("default")))
#else
#define MOKA_EXPORT
#endif

namespace moka {

/// Kinds of failure; docs/errors.md describes each.
enum class ErrorKind {
  invalid_argument = 1,    ///< a value, name, shape or type given by the caller does not fit the model
  malformed = 2,           ///< the bytes of a model or file contradict themselves or their format
  unsupported = 3,         ///< valid model, but Moka cannot run it; the message names the feature
  not_found = 4,           ///< a file, function, feature or weight that does not exist
  io = 5,                  ///< the operating system reported a failure
  out_of_budget = 6,       ///< would exceed a limit such as memory_budget, or memory ran out
  data = 7,                ///< a value in a prediction violates a rule of an operation
  internal = 8,            ///< a bug in Moka
  device_lost = 9,         ///< a device failed during a computation
  cancelled = 10,          ///< the caller asked to stop
  deadline_exceeded = 11,  ///< it was not done at the time that the caller gave
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

/// A failure where there is no exception.
struct Failure {
  ErrorKind kind = ErrorKind::internal;
  std::string message;
};

/// A value, or why there is none.
template <class T>
class Expected {
 public:
  Expected(T value) : value_(std::in_place_index<0>, std::move(value)) {}
  Expected(Failure failure) : value_(std::in_place_index<1>, std::move(failure)) {}
  bool has_value() const noexcept { return value_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  /// Precondition: has_value().
  T& operator*() { return *std::get_if<0>(&value_); }
  const T& operator*() const { return *std::get_if<0>(&value_); }
  T* operator->() { return std::get_if<0>(&value_); }
  const T* operator->() const { return std::get_if<0>(&value_); }
  /// Precondition: not has_value().
  const Failure& error() const { return *std::get_if<1>(&value_); }
  /// Throws Exception where there is no value.
  T& value() {
    if (!has_value()) throw Exception(error().kind, error().message);
    return **this;
  }

 private:
  std::variant<T, Failure> value_;
};

}  // namespace moka
