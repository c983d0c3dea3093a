// SPDX-License-Identifier: Apache-2.0
#include "moka/trace.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <tuple>

#include "api/internal.h"
#include "boundary/path.h"
#include "trace/live.h"
#include "trace/read.h"

namespace moka {

namespace {
void check_ring(const TraceRing& ring) {
  if (!(ring.seconds >= 0) || std::isinf(ring.seconds))
    throw Exception(ErrorKind::invalid_argument, cat("ring: expected seconds from 0 on, got ", ring.seconds));
}
}  // namespace

Trace::Trace(const std::filesystem::path& path, Overwrite overwrite, const TraceRing& ring)
    : path_((check_ring(ring), api::unwrap(trace::start(boundary::native(path), overwrite == Overwrite::any,
                                                        {ring.bytes, ring.seconds})))) {}
Trace::Trace(Trace&& other) noexcept : path_(std::move(other.path_)), is_open_(std::exchange(other.is_open_, false)) {}

Trace::~Trace() {
  if (!is_open_) return;
  try {
    stop();
  } catch (const std::exception& e) {
    api::warn(e.what());
  }
}

void Trace::stop() {
  if (std::exchange(is_open_, false)) api::unwrap(trace::stop());
}

std::string allow_tracing(const std::filesystem::path& where) {
  return api::unwrap(trace::allow(boundary::native(where)));
}

TraceSpan::TraceSpan(std::string_view name, int64_t bytes, std::string_view reason) : is_on_(trace::is_on()) {
  if (!is_on_) return;
  const trace::Label* label = bytes > 0 ? trace::label(name, name, {{"bytes", bytes}, {"reason", reason}})
                                        : trace::label(name, name, {{"reason", reason}});
  trace::begin(trace::Lane::data, label, trace::now());
}

TraceSpan::~TraceSpan() {
  if (is_on_) trace::end(trace::Lane::data, trace::now());
}

namespace {

std::string text_of(const trace::Slice& s, const char* name) {
  const auto it = s.texts.find(name);
  return it != s.texts.end() ? it->second : std::string();
}

/// The names of the tracks above a track.
class Owners {
 public:
  explicit Owners(const std::map<uint64_t, trace::Track>& tracks) : tracks_(tracks) {}
  std::string process(uint64_t track) const {
    const trace::Track* t = find(track);
    for (int hops = 0; t != nullptr && hops < kMostLevels; t = find(t->parent), hops++)
      if (t->is_process) return t->process;
    return {};
  }
  std::string model(uint64_t track) const {
    const trace::Track* lane = find(track);
    const trace::Track* t = lane == nullptr ? nullptr : find(lane->parent);
    return t == nullptr || t->is_process ? std::string() : t->name;
  }

 private:
  const trace::Track* find(uint64_t track) const {
    const auto it = tracks_.find(track);
    return it != tracks_.end() ? &it->second : nullptr;
  }
  static constexpr int kMostLevels = 8;  // a limit, because a damaged file may contain a cycle
  const std::map<uint64_t, trace::Track>& tracks_;
};

}  // namespace

TraceSummary summarize_trace(const std::filesystem::path& trace) {
  const trace::Contents contents = api::unwrap(trace::read_file(boundary::native(trace)));

  TraceSummary out;
  const Owners owners(contents.tracks);
  int64_t first = INT64_MAX, last = INT64_MIN;
  const auto seen = [&](int64_t at) {
    first = std::min(first, at);
    last = std::max(last, at);
  };
  using Key = std::tuple<uint64_t, std::string, std::string, std::string, std::string, std::string>;
  std::map<Key, TraceGroup> groups;
  for (const trace::Slice& s : contents.slices) {
    seen(s.from);
    if (s.to < s.from) {
      out.unfinished++;
      continue;
    }
    seen(s.to);
    const std::string device = s.kind == "stretch" || s.kind == "region" ? s.name : text_of(s, "device");
    const auto found = contents.tracks.find(s.track);
    const uint64_t parent = found != contents.tracks.end() ? found->second.parent : 0;
    const std::string lane = found != contents.tracks.end() ? found->second.name : std::string();
    TraceGroup& g = groups[{parent, lane, s.name, s.kind, device + '\n' + text_of(s, "kernel"), text_of(s, "reason")}];
    const double seconds = static_cast<double>(s.to - s.from) * 1e-9;
    if (g.count++ == 0) {
      g.lane = lane;
      g.model = owners.model(s.track);
      g.process = owners.process(s.track);
      g.name = s.name;
      g.kind = s.kind;
      g.device = device;
      g.kernel = text_of(s, "kernel");
      g.reason = text_of(s, "reason");
      g.minimum = seconds;
    }
    g.total += seconds;
    g.minimum = std::min(g.minimum, seconds);
    g.maximum = std::max(g.maximum, seconds);
    if (const auto it = s.numbers.find("bytes"); it != s.numbers.end())
      if (__builtin_add_overflow(g.bytes, it->second, &g.bytes)) g.bytes = INT64_MAX;
  }
  for (auto& [key, g] : groups) out.groups.push_back(std::move(g));
  std::stable_sort(out.groups.begin(), out.groups.end(), [](const TraceGroup& a, const TraceGroup& b) {
    return a.lane != b.lane ? a.lane < b.lane : a.total > b.total;
  });
  std::map<uint64_t, TraceCounter> counters;
  for (const trace::Sample& s : contents.samples) {
    seen(s.at);
    const auto it = contents.tracks.find(s.track);
    if (it == contents.tracks.end()) continue;
    TraceCounter& c = counters[s.track];
    const auto value = static_cast<double>(s.value);
    if (c.samples++ == 0) {
      c.name = it->second.name;
      c.process = owners.process(s.track);
      c.is_bytes = it->second.is_bytes;
      c.minimum = c.maximum = value;
    }
    c.minimum = std::min(c.minimum, value);
    c.maximum = std::max(c.maximum, value);
    c.mean += (value - c.mean) / static_cast<double>(c.samples);
  }
  for (auto& [track, c] : counters) out.counters.push_back(std::move(c));
  if (first < last) out.seconds = static_cast<double>(last - first) * 1e-9;
  return out;
}

}  // namespace moka
