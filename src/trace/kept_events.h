// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "trace/encode.h"

namespace moka::trace {

/// What a long recording holds in memory: its newest events, and all that say which models were there when it began.
/// Encoding starts with what is kept, so the interned texts and the tracks of a file are always complete.
class KeptEvents {
 public:
  /// Without a limit in bytes, 256 MiB.
  explicit KeptEvents(const Ring& ring);
  void add(const Event& event, const Origin& from);
  /// How many were too old or too many.
  uint64_t left_out() const { return left_out_; }
  /// The time of the oldest event; `otherwise` where there is none.
  int64_t first(int64_t otherwise) const;
  void encode(Encoder& to) const;

 private:
  struct Kept {
    Event event;
    const Origin* from;
  };
  const Origin* owned(const Origin& from);

  const size_t most_;
  const int64_t age_;  ///< nanoseconds; 0: any
  std::deque<Kept> events_;
  std::vector<Kept> models_;
  std::map<int64_t, std::vector<std::unique_ptr<const Origin>>> origins_;  ///< by thread; names differ
  int64_t newest_ = 0;
  uint64_t left_out_ = 0;
};

/// "64M" is 64 MiB; "4096" are bytes. `last`: seconds. Empty texts set no limit. Error invalid_argument.
Result<Ring> parse_ring(std::string_view size, std::string_view last);

}  // namespace moka::trace
