// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "boundary/errors.h"
#include "boundary/path.h"
#include "concluding/conclude.h"

namespace moka {

namespace concluding {

// src/concluding/page.html, which the build embeds.
extern const unsigned char page_bytes[];
extern const unsigned long page_size;

namespace {

using PageJson = nlohmann::ordered_json;

constexpr size_t kMostSlices = 40000;  ///< of the whole page; short ones are drawn as one where there are more
constexpr size_t kMostShownOnPage = 24;

PageJson event_json(const TraceEvent& e) {
  PageJson details = PageJson::object();
  for (const auto& [name, value] : e.details) details[name] = value;
  return {{"process", e.process}, {"model", e.model}, {"lane", e.lane},       {"thread", e.thread}, {"name", e.name},
          {"kind", e.kind},       {"start", e.start}, {"seconds", e.seconds}, {"details", details}};
}

PageJson conclusions_json(const TraceConclusions& all) {
  PageJson out{{"format", "moka-trace-conclusions"}, {"version", 1},         {"seconds", all.seconds},
               {"predictions", all.predictions},     {"models", all.models}, {"leftOut", all.left_out}};
  out["conclusions"] = PageJson::array();
  for (const TraceConclusion& c : all.conclusions) {
    PageJson one{{"rule", c.rule},     {"process", c.process}, {"model", c.model},     {"text", c.text},
                 {"remedy", c.remedy}, {"count", c.count},     {"seconds", c.seconds}, {"share", c.share}};
    one["events"] = PageJson::array();
    for (const TraceEvent& e : c.events) one["events"].push_back(event_json(e));
    out["conclusions"].push_back(std::move(one));
  }
  return out;
}

/// The lanes of the page: for each track its slices as [start, length, depth, name], in microseconds, and the names.
class Lanes {
 public:
  explicit Lanes(const Concluded& all) : all_(all) {}

  void add_to(PageJson& page) {
    for (const Event& e : all_.subject.events)
      if (e.track != nullptr && e.is_finished())
        rows_[{e.of, e.track->name, e.track->thread, e.kind() == "region"}].push_back(&e);
    std::vector<double> lengths;
    for (const Event& e : all_.subject.events) lengths.push_back(e.seconds() * 1e6);
    if (lengths.size() > kMostSlices) {
      const auto at = lengths.end() - static_cast<std::ptrdiff_t>(kMostSlices);
      std::nth_element(lengths.begin(), at, lengths.end());
      shortest_ = std::max(*at, 1e-3);
    }
    for (const Conclusion& c : all_.conclusions)
      for (const Event* e : chosen_events(c, kMostShownOnPage)) shown_.insert({e, 0});
    PageJson lanes = PageJson::array();
    for (auto& [row, events] : rows_) {
      std::stable_sort(events.begin(), events.end(),
                       [](const Event* a, const Event* b) { return a->slice->from < b->slice->from; });
      lanes.push_back(lane(events));
    }
    page["lanes"] = std::move(lanes);
    page["names"] = names_;
    page["merged"] = shortest_ > 0;
    for (size_t i = 0; i < all_.conclusions.size(); i++) {
      PageJson ids = PageJson::array();
      for (const Event* e : chosen_events(all_.conclusions[i], kMostShownOnPage)) ids.push_back(shown_[e]);
      page["conclusions"][i]["marks"] = std::move(ids);
    }
  }

 private:
  int name_id(const std::string& name) {
    const auto [it, is_new] = ids_.try_emplace(name, static_cast<int>(ids_.size()));
    if (is_new) names_.push_back(name);
    return it->second;
  }
  double micros(int64_t ns) const { return static_cast<double>(ns) / 1e3; }

  PageJson lane(const Events& events) {
    const Event& one = *events.front();
    PageJson out{{"process", one.process},
                 {"model", all_.subject.models[one.of].name},
                 {"lane", one.track->name},
                 {"thread", one.track->thread}};
    PageJson slices = PageJson::array();
    double gathered_from = 0, gathered_to = -1;
    int gathered = 0;
    const auto finish_gathered = [&] {
      if (gathered > 0)
        slices.push_back({gathered_from, gathered_to - gathered_from, 0, name_id(cat(gathered, " short events"))});
      gathered = 0;
    };
    for (const Event* e : events) {
      const double from = micros(e->slice->from - all_.subject.first), to = micros(e->slice->to - all_.subject.first);
      const auto mark = shown_.find(e);
      if (mark == shown_.end() && to - from < shortest_) {
        if (gathered > 0 && from - gathered_to > shortest_) finish_gathered();
        if (gathered++ == 0) gathered_from = from;
        gathered_to = std::max(gathered_to, to);
        continue;
      }
      if (mark != shown_.end()) mark->second = ++marks_;
      PageJson slice{from, to - from, e->slice->depth,
                     name_id(e->kind() == e->name() ? e->name() : cat(e->name(), " (", e->kind(), ")"))};
      if (mark != shown_.end()) slice.push_back(marks_);
      slices.push_back(std::move(slice));
    }
    finish_gathered();
    out["slices"] = std::move(slices);
    return out;
  }

  const Concluded& all_;
  /// By model, lane, thread, and whether a device computed beside the host. Loads of one file share a row.
  std::map<std::tuple<size_t, std::string, std::string, bool>, Events> rows_;
  std::map<std::string, int> ids_;
  std::vector<std::string> names_;
  std::map<const Event*, int> shown_;  ///< to the number that the page finds the event by
  int marks_ = 0;
  double shortest_ = 0;  ///< microseconds
};

std::string json_text(const PageJson& json, int indent) {
  return json.dump(indent, ' ', false, PageJson::error_handler_t::replace);
}

}  // namespace

}  // namespace concluding

std::string to_json(const TraceConclusions& conclusions) {
  return concluding::json_text(concluding::conclusions_json(conclusions), 2) + "\n";
}

std::string conclusions_page(const std::filesystem::path& trace, const ConclusionOptions& options) {
  using namespace concluding;
  const std::string& path = boundary::native(trace);
  const auto all = boundary::unwrap(concluded(path, options));
  PageJson content = conclusions_json(to_public(*all));
  content["trace"] = path.substr(path.rfind('/') + 1);
  Lanes(*all).add_to(content);
  std::string page(reinterpret_cast<const char*>(page_bytes), page_size);
  // A text from the trace must not end the HTML element that holds the JSON. These characters only occur in strings.
  std::string data;
  for (const char c : json_text(content, -1)) {
    if (c == '<')
      data += "\\u003c";
    else if (c == '&')
      data += "\\u0026";
    else
      data += c;
  }
  constexpr std::string_view kMark = "/*TRACE*/";
  return page.replace(page.find(kMark), kMark.size(), data);
}

}  // namespace moka
