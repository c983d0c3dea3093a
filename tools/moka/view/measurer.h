// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "json.h"
#include "options.h"

namespace moka::cli {

/// A process that measures reports for a server. A process with threads must not fork and go on, so this one is forked
/// while there are none, and forks again for each report. It ends with the object, or with the thread that makes the
/// object, also if a signal ends that one.
class Measurer {
 public:
  /// Call in the main thread before the process has others. Throws IoError.
  explicit Measurer(LoadOptions load);
  ~Measurer();
  Measurer(const Measurer&) = delete;
  Measurer& operator=(const Measurer&) = delete;

  /// One setting of `moka report` for a function of the model. One call at a time. Throws IoError when the process has
  /// ended.
  Json report(const std::string& function);

 private:
  [[noreturn]] void serve();

  LoadOptions load_;
  int end_ = -1;
  int process_ = -1;
};

}  // namespace moka::cli
