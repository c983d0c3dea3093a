// SPDX-License-Identifier: Apache-2.0
#include "concluding/subject.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

namespace moka::concluding {

std::string_view Event::text(const char* argument) const {
  const auto it = slice->texts.find(argument);
  return it != slice->texts.end() ? std::string_view(it->second) : std::string_view();
}

int64_t Event::number(const char* argument) const {
  const auto it = slice->numbers.find(argument);
  return it != slice->numbers.end() ? it->second : 0;
}

bool Event::is_inside(std::string_view kind) const {
  for (const Event* e = parent; e != nullptr; e = e->parent)
    if (e->kind() == kind) return true;
  return false;
}

namespace {

constexpr int kMostTracksAbove = 8;  // a damaged file may contain a cycle

/// "net.mlmodel" for "net.mlmodel (2)".
std::string without_number(const std::string& name) {
  const size_t at = name.rfind(" (");
  if (at == std::string::npos || !name.ends_with(')') || at + 3 >= name.size()) return name;
  const auto is_digit = [](unsigned char c) { return c >= '0' && c <= '9'; };
  return std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at) + 2, name.end() - 1, is_digit) ? name.substr(0, at)
                                                                                                   : name;
}

class Builder {
 public:
  explicit Builder(const trace::Contents& contents) : contents_(contents) { out_.contents = &contents; }

  Subject build() {
    out_.first = INT64_MAX;
    out_.last = INT64_MIN;
    for (const trace::Slice& s : contents_.slices) add(s);
    for (const trace::Sample& s : contents_.samples) {
      seen(s.at);
      const trace::Track* t = track(s.track);
      if (t != nullptr && t->is_counter && t->name == "Events left out") out_.left_out += std::max<int64_t>(0, s.value);
    }
    if (out_.first > out_.last) out_.first = out_.last = 0;
    for (const Event& e : out_.events)
      if (e.model != nullptr && e.kind() != "predict")
        if (const auto path = e.text("path"); !path.empty() && paths_.try_emplace(e.model, path).second)
          known_[{std::string(e.process), without_number(e.model->name)}].insert(std::string(path));
    for (Event& e : out_.events) sort_in(e);
    std::vector<size_t> order(models_.size());
    for (auto& [key, found] : models_) {
      auto& [model, number] = found;
      order[number] = out_.models.size();
      for (Events* all :
           {&model.activity, &model.data, &model.compute, &model.loads, &model.predictions, &model.operations})
        std::stable_sort(all->begin(), all->end(),
                         [](const Event* a, const Event* b) { return a->slice->from < b->slice->from; });
      out_.models.push_back(std::move(model));
    }
    for (Event& e : out_.events) e.of = order[e.of];
    return std::move(out_);
  }

 private:
  const trace::Track* track(uint64_t id) const {
    const auto it = contents_.tracks.find(id);
    return it != contents_.tracks.end() ? &it->second : nullptr;
  }
  void seen(int64_t at) {
    out_.first = std::min(out_.first, at);
    out_.last = std::max(out_.last, at);
  }
  void add(const trace::Slice& s) {
    seen(s.from);
    if (s.to >= s.from) seen(s.to);
    Event& e = out_.events.emplace_back();
    e.slice = &s;
    e.track = track(s.track);
    std::vector<const Event*>& around = around_[s.track];
    around.resize(std::min(around.size(), static_cast<size_t>(std::max(0, s.depth))));
    if (!around.empty()) e.parent = around.back();
    around.push_back(&e);
    if (e.track == nullptr) return;
    const trace::Track* above = track(e.track->parent);
    if (above != nullptr && !above->is_process) e.model = above;
    for (int i = 0; above != nullptr && i < kMostTracksAbove; i++, above = track(above->parent))
      if (above->is_process) e.process = above->process;
  }
  /// That of a load that the trace lacks is the path of the others of that name, if these have one.
  std::string path_of(const Event& e, const std::string& name) const {
    if (const auto it = paths_.find(e.model); it != paths_.end()) return it->second;
    const auto others = known_.find({std::string(e.process), name});
    return others != known_.end() && others->second.size() == 1 ? *others->second.begin() : std::string();
  }
  void sort_in(Event& e) {
    std::string name, path;
    if (e.model != nullptr) {
      name = without_number(e.model->name);
      path = path_of(e, name);
    }
    const Model fresh{std::string(e.process), name, path, {}, {}, {}, {}, {}, {}};
    auto& [m, number] = models_.try_emplace({fresh.process, {path, name}}, fresh, models_.size()).first->second;
    e.of = number;
    if (e.track == nullptr) return;
    if (e.track->name == "Activity") m.activity.push_back(&e);
    if (e.track->name == "Data") m.data.push_back(&e);
    if (e.track->name == "Compute") m.compute.push_back(&e);
    if (!e.is_finished()) return;
    if (e.kind() == "load") m.loads.push_back(&e);
    if (e.kind() == "predict") m.predictions.push_back(&e);
    if (e.track->name == "Compute" && !e.text("kernel").empty()) m.operations.push_back(&e);
  }

  const trace::Contents& contents_;
  Subject out_;
  std::map<uint64_t, std::vector<const Event*>> around_;
  std::map<const trace::Track*, std::string> paths_;
  std::map<std::pair<std::string, std::string>, std::set<std::string>> known_;  ///< paths by process and name
  std::map<std::pair<std::string, std::pair<std::string, std::string>>, std::pair<Model, size_t>> models_;
};

}  // namespace

Subject subject_of(const trace::Contents& contents) { return Builder(contents).build(); }

double seconds_of(const Events& events) {
  double sum = 0;
  for (const Event* e : events) sum += e->seconds();
  return sum;
}

Events filtered(const Events& events, const std::function<bool(const Event&)>& f) {
  Events out;
  for (const Event* e : events)
    if (e->is_finished() && f(*e)) out.push_back(e);
  return out;
}

Events of_kind(const Events& events, std::string_view kind) {
  return filtered(events, [&](const Event& e) { return e.kind() == kind; });
}

std::map<std::string, Events> grouped(const Events& events, const std::function<std::string(const Event&)>& f) {
  std::map<std::string, Events> out;
  for (const Event* e : events) out[f(*e)].push_back(e);
  return out;
}

const Event* prediction_around(const Model& model, const Event& event) {
  const auto& all = model.predictions;
  auto it = std::upper_bound(all.begin(), all.end(), event.slice->from,
                             [](int64_t at, const Event* p) { return at < p->slice->from; });
  // Predictions of other threads may have begun later and contain the event as well.
  for (int looked = 0; it != all.begin() && looked < 64; looked++) {
    const Event* p = *--it;
    if (p->slice->to >= event.slice->to && p->track->thread == event.track->thread) return p;
  }
  return nullptr;
}

bool is_before_computing(const Model& model, const Event& event) {
  const Event* around = prediction_around(model, event);
  if (around == nullptr) return false;
  const auto& all = model.compute;
  auto it = std::lower_bound(all.begin(), all.end(), event.slice->from,
                             [](const Event* e, int64_t at) { return e->slice->from < at; });
  for (; it != all.end() && (*it)->slice->from < around->slice->to; ++it)
    if ((*it)->track->thread == event.track->thread) return true;
  return false;
}

std::string percent(double fraction) {
  char out[32];
  std::snprintf(out, sizeof out, fraction < 0.01 ? "%.1f%%" : "%.0f%%", 100 * fraction);
  return out;
}

std::string duration(double seconds) {
  char out[32];
  const auto shown = [&](double value, const char* unit) {
    std::snprintf(out, sizeof out, value < 9.95 ? "%.1f %s" : "%.0f %s", value, unit);
    return std::string(out);
  };
  if (seconds >= 1) return shown(seconds, "s");
  return seconds >= 1e-3 ? shown(seconds * 1e3, "ms") : shown(seconds * 1e6, "µs");
}

std::string times(int64_t count) { return count == 1 ? "once" : count == 2 ? "twice" : cat(count, " times"); }

std::string element_name(std::string_view type) {
  if (type.starts_with("fp")) return cat("float", type.substr(2));
  if (type.starts_with("bf")) return cat("bfloat", type.substr(2));
  return std::string(type);
}

std::string quoted(const std::vector<std::string>& names) {
  constexpr size_t kMost = 3;
  const size_t shown = names.size() > kMost ? kMost - 1 : names.size();
  std::string out;
  for (size_t i = 0; i < shown; i++)
    out += cat(i == 0 ? "" : i + 1 == shown && shown == names.size() ? " and " : ", ", "'", names[i], "'");
  if (shown < names.size()) out += cat(" and ", names.size() - shown, " more");
  return out;
}

std::string counted(int64_t count, std::string_view word) { return cat(count, " ", word, count == 1 ? "" : "s"); }

}  // namespace moka::concluding
