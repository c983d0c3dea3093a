// SPDX-License-Identifier: Apache-2.0
#include "trace/encode.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <protozero/pbf_writer.hpp>

#include "trace/perfetto.h"

namespace moka::trace {

using protozero::pbf_writer;

namespace {

constexpr std::string_view kLaneNames[] = {"Activity", "Data", "Compute", "GPU"};
struct CounterName {
  std::string_view name;
  uint32_t unit;
};
constexpr CounterName kCounterNames[] = {
    {"Memory of the process", perfetto::kUnitBytes},     {"Threads in use", perfetto::kUnitCount},
    {"Predictions running", perfetto::kUnitCount},       {"Predictions waiting", perfetto::kUnitCount},
    {"Copied inputs and outputs", perfetto::kUnitBytes}, {"Events left out", perfetto::kUnitCount}};

uint64_t mixed(uint64_t h, uint64_t v) {
  h ^= v;
  h *= 0x9e3779b97f4a7c15;
  return h ^ (h >> 29);
}

/// "thread 4711, worker".
std::string described_thread(const Origin& from) {
  return cat("thread ", from.thread, from.name.empty() ? "" : ", ", from.name);
}

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> out;
  for (std::string part; std::getline(file, part, '\0') && out.size() < 64;) out.push_back(part);
  return out;
}

}  // namespace

Encoder::Encoder(int64_t start, int64_t epoch)
    : start_(start),
      epoch_(epoch),
      sequence_(static_cast<uint32_t>(mixed(static_cast<uint64_t>(getpid()), static_cast<uint64_t>(start))) | 1) {
  std::string content;
  pbf_writer w(content);
  w.add_uint64(perfetto::kTimestamp, static_cast<uint64_t>(start_ + epoch_));
  w.add_uint32(perfetto::kSequenceId, sequence_);
  w.add_uint32(perfetto::kSequenceFlags, perfetto::kStateCleared);
  w.add_bool(perfetto::kFirstOnSequence, true);
  packet(content);
  process_track();
}

void Encoder::packet(std::string_view content) {
  pbf_writer(out_).add_message(perfetto::kPacket, content.data(), content.size());
}

uint64_t Encoder::uuid(std::string_view kind, uint64_t a, uint64_t b, uint64_t c) const {
  uint64_t h = mixed(sequence_, static_cast<uint64_t>(getpid()));
  for (const char k : kind) h = mixed(h, static_cast<uint8_t>(k));
  h = mixed(mixed(mixed(h, a), b), c);
  return h == 0 ? 1 : h;
}

namespace {

/// A packet with the descriptor of a track, which `fill` completes.
template <class Fill>
std::string described(uint32_t sequence, int64_t at, uint64_t uuid, const Fill& fill) {
  std::string content;
  pbf_writer w(content);
  w.add_uint64(perfetto::kTimestamp, static_cast<uint64_t>(at));
  w.add_uint32(perfetto::kSequenceId, sequence);
  pbf_writer track(w, perfetto::kTrackDescriptor);
  track.add_uint64(perfetto::kUuid, uuid);
  fill(track);
  track.commit();
  return content;
}

}  // namespace

uint64_t Encoder::process_track() {
  if (process_ != 0) return process_;
  process_ = uuid("process", 0);
  packet(described(sequence_, start_ + epoch_, process_, [](pbf_writer& track) {
    track.add_uint32(perfetto::kChildOrdering, perfetto::kExplicit);
    pbf_writer process(track, perfetto::kProcess);
    process.add_int32(perfetto::kPid, getpid());
    const auto words = command_line();
    for (const std::string& word : words) process.add_string(perfetto::kCommandLine, word);
    if (!words.empty()) process.add_string(perfetto::kProcessName, words[0].substr(words[0].rfind('/') + 1));
  }));
  return process_;
}

uint64_t Encoder::model_track(ModelId model) {
  if (model == 0) return process_track();
  uint64_t& id = models_[model];
  if (id != 0) return id;
  id = uuid("model", model);
  packet(described(sequence_, start_ + epoch_, id, [&](pbf_writer& track) {
    track.add_uint64(perfetto::kParent, process_);
    track.add_string(perfetto::kTrackName, model_name(model));
    track.add_uint32(perfetto::kChildOrdering, perfetto::kExplicit);
    track.add_int32(perfetto::kRank, static_cast<int32_t>(model));
  }));
  return id;
}

uint64_t Encoder::lane_track(ModelId model, uint8_t lane, const Origin& from, DeviceId device) {
  Open& open = lanes_[{model, {uint32_t{lane} << 16 | device, from.thread}}];
  if (open.uuid != 0) return open.uuid;
  const uint64_t parent = model_track(model);
  open.uuid = uuid("lane", model, uint64_t{lane} << 16 | device, static_cast<uint64_t>(from.thread));
  packet(described(sequence_, start_ + epoch_, open.uuid, [&](pbf_writer& track) {
    track.add_uint64(perfetto::kParent, parent);
    track.add_string(perfetto::kTrackName, std::string(kLaneNames[lane]));
    track.add_int32(perfetto::kRank, lane);
    track.add_string(perfetto::kDescription, described_thread(from));
  }));
  return open.uuid;
}

uint64_t Encoder::counter_track(Counter counter) {
  uint64_t& id = counters_[counter];
  if (id != 0) return id;
  const CounterName& named = kCounterNames[static_cast<size_t>(counter)];
  id = uuid("counter", static_cast<uint64_t>(counter));
  packet(described(sequence_, start_ + epoch_, id, [&](pbf_writer& track) {
    track.add_uint64(perfetto::kParent, process_track());
    track.add_string(perfetto::kTrackName, std::string(named.name));
    track.add_int32(perfetto::kRank, 1'000'000 + static_cast<int32_t>(counter));
    pbf_writer(track, perfetto::kTrackCounter).add_uint32(perfetto::kUnit, named.unit);
  }));
  return id;
}

uint64_t Encoder::intern(Names& names, uint32_t field, const std::string& text) {
  const auto [it, is_new] = names.ids.try_emplace(text, names.ids.size() + 1);
  if (is_new) {
    pbf_writer data(interned_);
    pbf_writer entry(data, field);
    entry.add_uint64(perfetto::kId, it->second);
    entry.add_string(perfetto::kText, text);
  }
  return it->second;
}

const Encoder::Encoded& Encoder::encoded(const Label& label) {
  const auto [it, is_new] = labels_.try_emplace(&label);
  Encoded& e = it->second;
  if (!is_new) return e;
  e.name = intern(names_, perfetto::kNames, label.name);
  e.kind = intern(kinds_, perfetto::kCategories, label.kind);
  pbf_writer event(e.annotations);
  for (const auto& [name, text] : label.texts) {
    const uint64_t name_id = intern(argument_names_, perfetto::kAnnotationNames, name);
    const uint64_t text_id = intern(argument_texts_, perfetto::kAnnotationTexts, text);
    pbf_writer annotation(event, perfetto::kAnnotation);
    annotation.add_uint64(perfetto::kAnnotationName, name_id);
    annotation.add_uint64(perfetto::kTextId, text_id);
  }
  for (const auto& [name, number] : label.numbers) {
    const uint64_t name_id = intern(argument_names_, perfetto::kAnnotationNames, name);
    pbf_writer annotation(event, perfetto::kAnnotation);
    annotation.add_uint64(perfetto::kAnnotationName, name_id);
    annotation.add_int64(perfetto::kInteger, number);
  }
  return e;
}

void Encoder::slice_begin(int64_t at, uint64_t track, const Label& label) {
  const Encoded& e = encoded(label);
  std::string content;
  pbf_writer w(content);
  w.add_uint64(perfetto::kTimestamp, static_cast<uint64_t>(at + epoch_));
  w.add_uint32(perfetto::kSequenceId, sequence_);
  w.add_uint32(perfetto::kSequenceFlags, perfetto::kNeedsState);
  if (!interned_.empty()) w.add_message(perfetto::kInternedData, std::exchange(interned_, {}));
  std::string event;
  {
    pbf_writer fields(event);
    fields.add_uint32(perfetto::kType, perfetto::kBegin);
    fields.add_uint64(perfetto::kTrack, track);
    fields.add_uint64(perfetto::kEventName, e.name);
    fields.add_uint64(perfetto::kCategory, e.kind);
  }
  w.add_message(perfetto::kTrackEvent, event += e.annotations);
  packet(content);
}

void Encoder::slice_end(int64_t at, uint64_t track) {
  std::string content;
  pbf_writer w(content);
  w.add_uint64(perfetto::kTimestamp, static_cast<uint64_t>(at + epoch_));
  w.add_uint32(perfetto::kSequenceId, sequence_);
  {
    pbf_writer event(w, perfetto::kTrackEvent);
    event.add_uint32(perfetto::kType, perfetto::kEnd);
    event.add_uint64(perfetto::kTrack, track);
  }
  packet(content);
}

void Encoder::sample(Counter counter, int64_t at, int64_t value) {
  const uint64_t track = counter_track(counter);
  std::string content;
  pbf_writer w(content);
  w.add_uint64(perfetto::kTimestamp, static_cast<uint64_t>(at + epoch_));
  w.add_uint32(perfetto::kSequenceId, sequence_);
  {
    pbf_writer event(w, perfetto::kTrackEvent);
    event.add_uint32(perfetto::kType, perfetto::kCounter);
    event.add_uint64(perfetto::kTrack, track);
    event.add_int64(perfetto::kCounterValue, value);
  }
  packet(content);
}

void Encoder::add(const Event& event, const Origin& from) {
  if (event.from < start_) return;
  if (event.kind == Event::Kind::counter) return sample(static_cast<Counter>(event.lane), event.from, event.to);
  const uint64_t track = lane_track(event.model, event.lane, from, event.device);
  Open& open = lanes_[{event.model, {uint32_t{event.lane} << 16 | event.device, from.thread}}];
  switch (event.kind) {
    case Event::Kind::begin:
      slice_begin(event.from, track, *event.label);
      open.depth++;
      break;
    case Event::Kind::end:
      if (open.depth == 0) return;  // it began before the trace
      slice_end(event.from, track);
      open.depth--;
      break;
    case Event::Kind::slice:
      slice_begin(event.from, track, *event.label);
      slice_end(event.to, track);
      break;
    case Event::Kind::counter: break;
  }
}

void Encoder::finish(int64_t at) {
  for (auto& [key, open] : lanes_)
    for (; open.depth > 0; open.depth--) slice_end(at, open.uuid);
}

}  // namespace moka::trace
