// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "base/stop.h"

namespace moka {

/// Looks after work that takes long, such as loading: it may be stopped, and reports how far it is. The work of a
/// thread finds it by itself.
///
///     const Watch watch(stop, progress);
///     const Watch::Scope scope(&watch);
///     ... MOKA_TRY(Watch::at("passes", i, count)); ...
class Watch {
 public:
  using Progress = std::function<void(std::string_view stage, size_t done, size_t total)>;
  explicit Watch(Stop stop, Progress progress = {}) : stop_(std::move(stop)), progress_(std::move(progress)) {}
  Watch(const Watch&) = delete;

  /// The calling thread's work has done `done` of `total` parts of this stage. Reports the first and the last part of a
  /// stage, and others not more often than every few milliseconds. Errors: those of the stop.
  static Status at(std::string_view stage, size_t done, size_t total);
  /// The watch of the calling thread; null: there is none.
  static const Watch* current();
  const Stop& stop() const { return stop_; }

  /// Sets the watch of the calling thread; null leaves the one that it has.
  class Scope {
   public:
    explicit Scope(const Watch* watch);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    const Watch* const before_;
  };

 private:
  void report(std::string_view stage, size_t done, size_t total) const;

  const Stop stop_;
  const Progress progress_;
  mutable Stop::Clock::time_point next_{};
  mutable std::string_view stage_;
};

}  // namespace moka
