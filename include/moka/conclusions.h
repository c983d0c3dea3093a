// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "moka/output.h"

/// What a trace tells about the program that it was taken of: loads that repeat, conversions of each call, waits.
/// docs/seeing.md lists the rules.
namespace moka {

/// An event that shows a conclusion.
struct TraceEvent {
  std::string process, model, lane;  ///< model: its track's name; empty: the process
  std::string thread;                ///< "thread 4711, worker"; empty: the trace does not say
  std::string name, kind;
  double start = 0;    ///< seconds since the first event of the trace
  double seconds = 0;  ///< how long it took
  std::vector<std::pair<std::string, std::string>> details;
};

struct TraceConclusion {
  std::string rule;                ///< "loaded-repeatedly"
  std::string process, model;      ///< empty: several, or none
  std::string text;                ///< "loaded 373 times for 374 predictions: keep the model"
  std::string remedy;              ///< how
  int64_t count = 0;               ///< of the events that the conclusion is drawn from
  double seconds = 0;              ///< that these events take, on all threads
  double share = 0;                ///< of the time that the trace covers; above 1 where several threads take it
  std::vector<TraceEvent> events;  ///< some of them, the first and the longest among these
};

struct TraceConclusions {
  double seconds = 0;                        ///< from the first event to the last
  int64_t predictions = 0, models = 0;       ///< models: different files
  int64_t left_out = 0;                      ///< events that a full ring or a slow writer left out
  std::vector<TraceConclusion> conclusions;  ///< the most expensive first
};

struct TraceRule {
  std::string name, summary, remedy;
};
/// All rules of the library, by name.
MOKA_EXPORT std::vector<TraceRule> trace_rules();

struct ConclusionOptions {
  std::vector<std::string> only, ignore;  ///< names of rules; empty `only`: all
  /// A file of further rules (docs/seeing.md#your-own-rules); empty: none.
  std::filesystem::path rules;
};

/// Reads a trace that Moka wrote and draws conclusions. Throws not_found, io, malformed (the trace or the file of
/// rules), invalid_argument (a rule that does not exist).
MOKA_EXPORT TraceConclusions conclude_trace(const std::filesystem::path& trace, const ConclusionOptions& options = {});

/// The schema is in docs/seeing.md.
MOKA_EXPORT std::string to_json(const TraceConclusions& conclusions);

/// A page of one file: the conclusions, and the lanes with the events that show them. Throws what conclude_trace
/// throws.
MOKA_EXPORT std::string conclusions_page(const std::filesystem::path& trace, const ConclusionOptions& options = {});

}  // namespace moka
