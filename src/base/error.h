// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace moka {

/// Kinds of failure. The public API maps each to an exception type or status code of the same name.
enum class ErrorCode {
  invalid_argument,   ///< the caller's value, name, shape or type does not fit
  malformed,          ///< the bytes of a model contradict themselves or their format
  unsupported,        ///< valid, but Moka cannot do it; the message names the feature
  not_found,          ///< a file, function, feature or weight that does not exist
  io,                 ///< the operating system reported a failure
  out_of_budget,      ///< would exceed the memory budget of the load options
  data,               ///< a value in a prediction violates a rule of the operation
  internal,           ///< a bug in Moka
  device_lost,        ///< a device failed during a computation
  cancelled,          ///< the caller asked to stop
  deadline_exceeded,  ///< it was not done at the time that the caller gave
};

std::string_view to_string(ErrorCode code);

/// A failure: a sentence that says what went wrong where, with the expected and the actual value, and the context that
/// callers added.
class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message);

  ErrorCode code() const { return rep_->code; }
  /// "outer: inner: message", outermost context first.
  std::string to_string() const;
  const std::string& message() const { return rep_->message; }
  /// Name of the device that failed; "": none did.
  const std::string& device() const { return rep_->device; }
  /// Adds an outer context, e.g. "operation 'conv_3'".
  Error&& in(std::string_view place) &&;
  /// Says which device failed, unless a device is named already.
  Error&& of_device(std::string_view name) &&;

 private:
  struct Rep {
    ErrorCode code;
    std::string message;
    std::string context;
    std::string device;
  };
  std::unique_ptr<Rep> rep_;
};

/// A value or an Error. Success costs no allocation.
template <class T = void>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}
  template <class U>
  requires(std::is_convertible_v<U&&, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
           !std::is_same_v<std::remove_cvref_t<U>, Error> && !std::is_same_v<std::remove_cvref_t<U>, Result>)
      Result(U&& value)
      : v_(std::in_place_index<0>, std::forward<U>(value)) {}
  Result(Error error) : v_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return v_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(v_); }
  const T& value() const& { return std::get<0>(v_); }
  T&& value() && { return std::get<0>(std::move(v_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  Error& error() & { return std::get<1>(v_); }
  const Error& error() const& { return std::get<1>(v_); }
  Error&& error() && { return std::get<1>(std::move(v_)); }

 private:
  std::variant<T, Error> v_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  Result() = default;
  Result(Error error) : e_(std::make_unique<Error>(std::move(error))) {}

  bool ok() const { return e_ == nullptr; }
  explicit operator bool() const { return ok(); }
  void value() const {}
  Error& error() & { return *e_; }
  const Error& error() const& { return *e_; }
  Error&& error() && { return std::move(*e_); }

 private:
  std::unique_ptr<Error> e_;
};

using Status = Result<void>;

/// Concatenates the printable form of its arguments: strings, numbers, and anything with an
/// `append_to(std::string&, const T&)` found by argument-dependent lookup.
void append_to(std::string& out, std::string_view v);
void append_to(std::string& out, const char* v);
void append_to(std::string& out, const std::string& v);
void append_to(std::string& out, char v);
void append_to(std::string& out, bool v);
void append_to(std::string& out, int v);
void append_to(std::string& out, unsigned v);
void append_to(std::string& out, long v);
void append_to(std::string& out, unsigned long v);
void append_to(std::string& out, long long v);
void append_to(std::string& out, unsigned long long v);
void append_to(std::string& out, double v);

template <class... Args>
std::string cat(const Args&... args) {
  std::string out;
  (append_to(out, args), ...);
  return out;
}

/// `fail(ErrorCode::malformed, "weight file: ", path, " ends at byte ", n)`.
template <class... Args>
Error fail(ErrorCode code, const Args&... args) {
  return Error(code, cat(args...));
}

}  // namespace moka

/// Evaluates to the value of a Result, or returns its Error from the enclosing function.
#define MOKA_TRY(...)                                               \
  ({                                                                \
    auto moka_result_ = (__VA_ARGS__);                              \
    if (!moka_result_.ok()) return std::move(moka_result_).error(); \
    std::move(moka_result_).value();                                \
  })

/// As MOKA_TRY, and adds an outer context to the Error: `MOKA_TRY_IN(read(x), cat("weight '", n, "'"))`.
#define MOKA_TRY_IN(expr, place)                                                         \
  ({                                                                                     \
    auto moka_result_ = (expr);                                                          \
    if (!moka_result_.ok()) return std::move(std::move(moka_result_).error()).in(place); \
    std::move(moka_result_).value();                                                     \
  })
