// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "moka/conclusions.h"
#include "trace/encode.h"

namespace moka::test {

/// Makes a trace event by event. Times are in microseconds.
class Tape {
 public:
  using Arguments = std::initializer_list<trace::Argument>;
  /// A model of this name, which loading `path` made when it began before the trace.
  trace::ModelId model(const std::string& name, const std::string& path = {}) {
    const trace::ModelId id = trace::add_model(name);
    if (!path.empty()) add(trace::Lane::activity, id, "loaded before", "loaded", 0, 0, {{"path", path}});
    return id;
  }
  void add(trace::Lane lane, trace::ModelId model, std::string_view name, std::string_view kind, double from, double to,
           Arguments arguments = {}, int64_t thread = 1) {
    slices_.push_back({lane, model, trace::label(name, kind, arguments), nanoseconds(from), nanoseconds(to), thread});
  }
  void activity(trace::ModelId model, std::string_view kind, double from, double to, Arguments arguments = {},
                int64_t thread = 1) {
    add(trace::Lane::activity, model, kind, kind, from, to, arguments, thread);
  }
  void data(trace::ModelId model, std::string_view name, std::string_view kind, double from, double to,
            std::string_view reason) {
    add(trace::Lane::data, model, name, kind, from, to, {{"bytes", 4000}, {"reason", reason}});
  }
  void operation(trace::ModelId model, std::string_view name, std::string_view type, double from, double to,
                 int threads = 1, std::string_view device = "cpu") {
    add(trace::Lane::compute, model, name, type, from, to,
        {{"device", device}, {"kernel", cat(device, ".", type)}, {"threads", threads}});
  }

  std::string bytes() const {
    struct Mark {
      int64_t at, length;
      bool ends;
      const Slice* of;
    };
    std::vector<Mark> marks;
    for (const Slice& s : slices_) {
      if (s.from == s.to) continue;
      marks.push_back({s.from, s.to - s.from, false, &s});
      marks.push_back({s.to, s.to - s.from, true, &s});
    }
    // What contains others begins first and ends last.
    std::stable_sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) {
      if (a.at != b.at) return a.at < b.at;
      if (a.ends != b.ends) return a.ends;
      return a.ends ? a.length < b.length : a.length > b.length;
    });
    trace::Encoder encoder(0, 0);
    const auto event = [](const Slice& s, trace::Event::Kind kind, int64_t at) {
      return trace::Event{at, at, s.label, s.model, 0, kind, static_cast<uint8_t>(s.lane)};
    };
    for (const Slice& s : slices_)
      if (s.from == s.to) encoder.add(event(s, trace::Event::Kind::slice, s.from), {s.thread, "t"});
    for (const Mark& m : marks)
      encoder.add(event(*m.of, m.ends ? trace::Event::Kind::end : trace::Event::Kind::begin, m.at),
                  {m.of->thread, "t"});
    encoder.finish(0);
    return encoder.take();
  }

  /// What the rules of this name conclude; all rules where it is empty.
  TraceConclusions concluded(const std::string& rule = {}, const std::string& own_rules = {}) const {
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("moka_tape_" + std::to_string(getpid()));
    std::ofstream(path, std::ios::binary) << bytes();
    ConclusionOptions options;
    if (!rule.empty()) options.only = {rule};
    const std::filesystem::path own = path.string() + ".json";
    if (!own_rules.empty()) {
      std::ofstream(own) << own_rules;
      options.rules = own;
    }
    TraceConclusions out;
    try {
      out = conclude_trace(path, options);
      page_ = conclusions_page(path, options);
    } catch (...) {
      std::filesystem::remove(path);
      std::filesystem::remove(own);
      throw;
    }
    std::filesystem::remove(path);
    std::filesystem::remove(own);
    return out;
  }
  /// The texts of what a rule concludes.
  std::vector<std::string> texts(const std::string& rule) const {
    std::vector<std::string> out;
    for (const TraceConclusion& c : concluded(rule).conclusions) {
      EXPECT_EQ(c.rule, rule);
      EXPECT_FALSE(c.remedy.empty());
      EXPECT_FALSE(c.events.empty());
      EXPECT_EQ(c.text.back() != '.', true) << c.text;
      out.push_back(c.text);
    }
    return out;
  }
  const std::string& page() const { return page_; }

 private:
  struct Slice {
    trace::Lane lane;
    trace::ModelId model;
    const trace::Label* label;
    int64_t from, to, thread;
  };
  static int64_t nanoseconds(double microseconds) { return static_cast<int64_t>(microseconds * 1e3); }
  std::vector<Slice> slices_;
  mutable std::string page_;
};

using Texts = std::vector<std::string>;

}  // namespace moka::test
