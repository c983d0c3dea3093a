// SPDX-License-Identifier: Apache-2.0
#include "trace/kept_events.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "trace/present.h"

namespace moka::trace {

namespace {

constexpr size_t kUsualBytes = size_t{256} << 20;

int64_t end_of(const Event& e) { return e.kind == Event::Kind::slice ? std::max(e.from, e.to) : e.from; }

}  // namespace

KeptEvents::KeptEvents(const Ring& ring)
    : most_(std::max<size_t>(1, (ring.bytes > 0 ? ring.bytes : kUsualBytes) / sizeof(Kept))),
      age_(ring.seconds > 0 ? static_cast<int64_t>(std::min(ring.seconds, 1e9) * 1e9) : 0) {}

const Origin* KeptEvents::owned(const Origin& from) {
  auto& all = origins_[from.thread];
  for (const auto& o : all)
    if (o->name == from.name) return o.get();
  return all.emplace_back(std::make_unique<Origin>(from)).get();
}

void KeptEvents::add(const Event& event, const Origin& from) {
  const Kept kept{event, owned(from)};
  if (is_presence(event)) return models_.push_back(kept);
  events_.push_back(kept);
  newest_ = std::max(newest_, end_of(event));
  while (events_.size() > most_ || (age_ > 0 && end_of(events_.front().event) < newest_ - age_)) {
    events_.pop_front();
    left_out_++;
  }
}

int64_t KeptEvents::first(int64_t otherwise) const {
  if (events_.empty()) return otherwise;
  int64_t out = INT64_MAX;
  for (const Kept& k : events_) out = std::min(out, k.event.from);
  return out;
}

void KeptEvents::encode(Encoder& to) const {
  const int64_t start = first(INT64_MAX);
  for (Kept k : models_) {
    if (start != INT64_MAX) k.event.from = k.event.to = std::max(k.event.from, start);
    to.add(k.event, *k.from);
  }
  for (const Kept& k : events_) to.add(k.event, *k.from);
}

namespace {

template <class N>
bool is_number(std::string_view text, N& to) {
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  return error == std::errc() && at == text.data() + text.size();
}

}  // namespace

Result<Ring> parse_ring(std::string_view size, std::string_view last) {
  Ring out;
  if (!size.empty()) {
    constexpr std::string_view kUnits = "KMG";
    std::string_view digits = size;
    int shift = 0;
    if (const size_t unit = kUnits.find(digits.back()); unit != std::string_view::npos) {
      shift = 10 * (static_cast<int>(unit) + 1);
      digits.remove_suffix(1);
    }
    uint64_t count = 0;
    if (!is_number(digits, count) || count == 0 || count > (uint64_t{1} << 40) >> shift)
      return fail(ErrorCode::invalid_argument, "ring: expected a size such as 64M, got '", size, "'");
    out.bytes = static_cast<size_t>(count << shift);
  }
  if (!last.empty() && (!is_number(last, out.seconds) || !std::isfinite(out.seconds) || out.seconds <= 0))
    return fail(ErrorCode::invalid_argument, "last: expected seconds above 0, got '", last, "'");
  return out;
}

}  // namespace moka::trace
