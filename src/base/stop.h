// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>

#include "base/error.h"

namespace moka {

/// What ends work before it is done: a request of the caller, or a time.
class Stop {
 public:
  using Clock = std::chrono::steady_clock;

  Stop() = default;
  Stop(std::stop_token token, std::optional<Clock::time_point> deadline)
      : token_(std::move(token)), deadline_(deadline) {}

  /// False: check never fails.
  bool is_possible() const { return token_.stop_possible() || deadline_.has_value(); }
  /// Takes nanoseconds. Errors: cancelled, deadline_exceeded.
  Status check() const {
    if (token_.stop_requested()) return fail(ErrorCode::cancelled, "cancelled by the caller");
    if (deadline_ && Clock::now() >= *deadline_) return fail(ErrorCode::deadline_exceeded, "the deadline has passed");
    return {};
  }

 private:
  std::stop_token token_;
  std::optional<Clock::time_point> deadline_;
};

/// The check of a stop that may be null.
inline Status check(const Stop* stop) { return stop == nullptr ? Status() : stop->check(); }

}  // namespace moka
