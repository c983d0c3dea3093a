// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trace/read.h"

/// A trace as rules look at it.
namespace moka::concluding {

struct Event {
  const trace::Slice* slice = nullptr;
  const Event* parent = nullptr;  ///< the slice around it on its track
  const trace::Track* track = nullptr;
  const trace::Track* model = nullptr;  ///< whose lane it is on; nullptr: the process
  std::string_view process;
  size_t of = 0;  ///< index of Subject::models

  const std::string& name() const { return slice->name; }
  const std::string& kind() const { return slice->kind; }
  std::string_view text(const char* argument) const;
  int64_t number(const char* argument) const;  ///< 0: it has none of that name
  bool is_finished() const { return slice->to >= slice->from; }
  double seconds() const { return is_finished() ? static_cast<double>(slice->to - slice->from) * 1e-9 : 0; }
  /// Whether an event of that kind is around it.
  bool is_inside(std::string_view kind) const;
};
using Events = std::vector<const Event*>;

/// All that a process did with one model file: events in the order of their beginning. A file that was loaded several
/// times has a track for each load.
struct Model {
  std::string process, name, path;  ///< all empty but `process`: what no model has
  Events activity, data, compute;
  Events loads, predictions;  ///< that have ended
  Events operations;          ///< that a kernel computed, without what contains others
};

struct Subject {
  const trace::Contents* contents = nullptr;
  int64_t first = 0, last = 0;  ///< nanoseconds
  int64_t left_out = 0;
  std::deque<Event> events;
  std::vector<Model> models;

  double seconds() const { return static_cast<double>(last - first) * 1e-9; }
};

Subject subject_of(const trace::Contents& contents);

// Helpers of rules.

double seconds_of(const Events& events);
Events filtered(const Events& events, const std::function<bool(const Event&)>& f);
Events of_kind(const Events& events, std::string_view kind);
/// By what f returns, in the order of the texts.
std::map<std::string, Events> grouped(const Events& events, const std::function<std::string(const Event&)>& f);
/// The prediction of `model` in which an event of another lane lies; nullptr: none.
const Event* prediction_around(const Model& model, const Event& event);
/// Whether the event precedes what its prediction computes, so that it is about an input.
bool is_before_computing(const Model& model, const Event& event);

// Texts.

/// "62%", "0.4%".
std::string percent(double fraction);
/// "1.2 s", "340 ms", "12 us".
std::string duration(double seconds);
std::string times(int64_t count);  ///< "once", "twice", "3 times"
/// "float16" for "fp16"; others unchanged.
std::string element_name(std::string_view type);
/// "'x'", "'x' and 'y'", "'x', 'y' and 3 more".
std::string quoted(const std::vector<std::string>& names);
std::string counted(int64_t count, std::string_view word);  ///< "1 prediction", "2 predictions"

}  // namespace moka::concluding
