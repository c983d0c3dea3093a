// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <thread>

#include "trace/encode.h"
#include "trace/perfetto.h"
#include "trace/read.h"

/// Perfetto's own messages read these traces in tests/python/test_trace.py. Here: threads, cuts and damage.
namespace moka::trace {
namespace {

std::string encoded(int64_t start, const std::vector<Event>& events) {
  Encoder encoder(start, 1000);
  Log log;
  log.thread = 7;
  for (const Event& e : events) encoder.add(e, log);
  encoder.finish(start + 100);
  return encoder.take();
}

Result<Contents> read_text(const std::string& bytes) { return read(std::as_bytes(std::span(bytes))); }

std::vector<Event> three() {
  const Label* outer = label("outer", "group");
  const Label* inner = label("inner", "conv", {{"kernel", "k"}, {"bytes", 12}});
  const auto lane = static_cast<uint8_t>(Lane::compute);
  return {{10, 0, outer, 0, 0, Event::Kind::begin, lane},
          {20, 30, inner, 0, 0, Event::Kind::slice, lane},
          {30, 35, inner, 0, 0, Event::Kind::slice, lane},
          {40, 0, nullptr, 0, 0, Event::Kind::end, lane}};
}

TEST(Trace, SlicesNestAndKeepTimesAndArguments) {
  const auto contents = read_text(encoded(5, three()));
  ASSERT_TRUE(contents.ok());
  ASSERT_EQ(contents->slices.size(), 3u);
  const Slice &outer = contents->slices[0], &inner = contents->slices[1];
  EXPECT_EQ(outer.name, "outer");
  EXPECT_EQ(outer.depth, 0);
  EXPECT_EQ(outer.from, 1010);
  EXPECT_EQ(outer.to, 1040);
  EXPECT_EQ(inner.kind, "conv");
  EXPECT_EQ(inner.depth, 1);
  EXPECT_EQ(inner.to - inner.from, 10);
  EXPECT_EQ(inner.texts.at("kernel"), "k");
  EXPECT_EQ(inner.numbers.at("bytes"), 12);
  EXPECT_EQ(contents->slices[2].texts, inner.texts);
  EXPECT_EQ(contents->tracks.at(outer.track).name, "Compute");
}

TEST(Trace, OneFileHoldsTheTracesOfSeveralProcesses) {
  const auto contents = read_text(encoded(5, three()) + encoded(6, three()));
  ASSERT_TRUE(contents.ok());
  EXPECT_EQ(contents->slices.size(), 6u);
  EXPECT_NE(contents->slices[0].track, contents->slices[3].track);
}

TEST(Trace, WhatBeganEarlierIsLeftOutAndWhatIsOpenEnds) {
  auto events = three();
  const auto later = read_text(encoded(25, events));  // the first two began before
  ASSERT_TRUE(later.ok());
  ASSERT_EQ(later->slices.size(), 1u);
  events.pop_back();
  const auto open = read_text(encoded(5, events));
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(open->slices[0].to, 1105);
}

TEST(Trace, EveryCutAndEveryDamagedByteIsAnAnswerOrAnError) {
  const std::string whole = encoded(5, three());
  size_t most = 0;
  for (size_t n = 0; n <= whole.size(); n++) {
    const auto part = read_text(whole.substr(0, n));
    if (part.ok()) {
      EXPECT_GE(part->slices.size(), most);
      most = part->slices.size();
    } else {
      EXPECT_EQ(part.error().code(), ErrorCode::malformed);
    }
  }
  EXPECT_EQ(most, 3u);
  for (size_t i = 0; i < whole.size(); i++)
    for (const int change : {1, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ change);
      const auto contents = read_text(damaged);
      if (!contents.ok()) {
        EXPECT_EQ(contents.error().code(), ErrorCode::malformed);
      }
    }
  EXPECT_FALSE(read_text("").ok());
  EXPECT_FALSE(read_text("{\"traceEvents\": []}").ok());
}

TEST(Trace, ALogPassesEventsInOrderWhileItIsRead) {
  constexpr int64_t kEvents = 200000;
  Log log;
  std::thread writer([&] {
    for (int64_t i = 0; i < kEvents; i++) log.push({i});
  });
  int64_t next = 0, lost = 0;
  const auto take = [&](const Event& e) {
    EXPECT_GE(e.from, next);
    lost += e.from - next;
    next = e.from + 1;
  };
  while (next + static_cast<int64_t>(log.dropped()) < kEvents && lost <= kEvents) {
    log.drain(take);
    if (next == kEvents) break;
  }
  writer.join();
  log.drain(take);
  EXPECT_EQ(next - lost + static_cast<int64_t>(log.dropped()), kEvents);
}

TEST(Trace, LabelsOfOneContentAreOne) {
  EXPECT_EQ(label("a", "b", {{"c", 1}}), label("a", "b", {{"c", 1}}));
  EXPECT_NE(label("a", "b", {{"c", 1}}), label("a", "b", {{"c", 2}}));
  EXPECT_NE(label("a", "b", {{"c", "1"}}), label("a", "b", {{"c", 1}}));
  const Label* other = nullptr;
  std::thread([&] { other = label("a", "b", {{"c", 1}}); }).join();
  EXPECT_EQ(other, label("a", "b", {{"c", 1}}));
}

TEST(Trace, ModelsOfOneNameGetNumbers) {
  const ModelId first = add_model("net.mlmodel"), second = add_model("net.mlmodel");
  EXPECT_NE(first, second);
  EXPECT_EQ(model_name(first), "net.mlmodel");
  EXPECT_EQ(model_name(second), "net.mlmodel (2)");
}

}  // namespace
}  // namespace moka::trace
