// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "trace/record.h"

namespace moka::trace {

/// Encodes events as packets of one sequence of a Perfetto trace. A file may hold several traces, one after the other.
class Encoder {
 public:
  /// `start`: earlier events are dropped. `epoch`: the time of the trace's clock, in nanoseconds, at which the steady
  /// clock was zero.
  Encoder(int64_t start, int64_t epoch);
  void add(const Event& event, const Origin& from);
  void sample(Counter counter, int64_t at, int64_t value);
  /// Ends all open events.
  void finish(int64_t at);
  /// Returns the packets that were encoded since the last call.
  std::string take() { return std::exchange(out_, {}); }

 private:
  struct Open {
    uint64_t uuid = 0;
    int depth = 0;
  };
  struct Encoded {
    uint64_t name = 0, kind = 0;
    std::string annotations;  ///< fields of a TrackEvent
  };
  struct Names {
    std::unordered_map<std::string, uint64_t> ids;
  };

  uint64_t uuid(std::string_view kind, uint64_t a, uint64_t b = 0, uint64_t c = 0) const;
  uint64_t process_track();
  uint64_t model_track(ModelId model);
  uint64_t lane_track(ModelId model, uint8_t lane, const Origin& from, DeviceId device);
  uint64_t counter_track(Counter counter);
  uint64_t intern(Names& names, uint32_t field, const std::string& text);
  const Encoded& encoded(const Label& label);
  void packet(std::string_view content);
  void slice_begin(int64_t at, uint64_t track, const Label& label);
  void slice_end(int64_t at, uint64_t track);

  const int64_t start_, epoch_;
  const uint32_t sequence_;
  std::string out_;
  std::string interned_;  ///< InternedData that the next packet carries
  std::map<std::pair<ModelId, std::pair<uint32_t, int64_t>>, Open> lanes_;
  std::map<ModelId, uint64_t> models_;
  std::map<Counter, uint64_t> counters_;
  uint64_t process_ = 0;
  Names names_, kinds_, argument_names_, argument_texts_;
  std::unordered_map<const Label*, Encoded> labels_;
};

}  // namespace moka::trace
