// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trace/trace.h"

namespace moka::trace {

/// That values moved between the caller's memory and the session's, and why. It begins when it is made.
class DataCopy {
 public:
  DataCopy() : start_(is_on() ? now() : -1) {}
  bool is_recorded() const { return start_ >= 0; }
  /// It ends now. `kind`: "convert" or "copy".
  void record(std::string_view name, std::string_view kind, size_t bytes, std::string_view reason) const {
    slice(Lane::data, label(name, kind, {{"bytes", bytes}, {"reason", reason}}), start_, now());
    count(Counter::copied, static_cast<int64_t>(bytes));
  }

 private:
  int64_t start_;
};

}  // namespace moka::trace
