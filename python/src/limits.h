// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>

namespace moka::python {

/// What ends predictions and loading early.
class Cancellation {
 public:
  void cancel() { source_.request_stop(); }
  bool is_cancelled() const { return source_.stop_requested(); }
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
};

/// What ends one call early.
struct Limits {
  /// A cancellation or nullptr, and a time of Python's monotonic clock, which is the steady clock.
  Limits(const Cancellation* cancellation, std::optional<double> seconds) {
    using Clock = std::chrono::steady_clock;
    if (cancellation != nullptr) stop = cancellation->token();
    if (seconds)
      deadline =
          Clock::time_point(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*seconds)));
  }
  template <class Options>
  void set(Options& options) const {
    options.stop = stop;
    options.deadline = deadline;
  }

  std::stop_token stop;
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

}  // namespace moka::python
