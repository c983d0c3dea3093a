// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "command.h"
#include "io/table.h"
#include "moka/conclusions.h"
#include "moka/trace.h"
#include "print.h"
#include "text.h"
#include "trace_options.h"
#include "trace_summary.h"

namespace moka::cli {

ConclusionOptions conclusion_options(const TraceOptions& options) {
  return {options.only, options.ignore, options.rules};
}

namespace {

std::string owner_of(const TraceConclusion& c) {
  std::string out = c.model;
  if (!c.process.empty()) out += (out.empty() ? "" : ", ") + c.process;
  return out;
}

std::string shown_event(const TraceEvent& e) {
  std::string out = fmt::format("{} at {}, {}", e.kind == e.name ? e.name : fmt::format("{} ({})", e.name, e.kind),
                                format_seconds(e.start), format_seconds(e.seconds));
  if (!e.lane.empty()) out += fmt::format(", lane {}{}", e.lane, e.model.empty() ? "" : " of " + e.model);
  if (!e.thread.empty()) out += ", " + e.thread;
  return out;
}

/// The longest of the events that are shown.
const TraceEvent* longest(const TraceConclusion& c) {
  const TraceEvent* out = nullptr;
  for (const TraceEvent& e : c.events)
    if (out == nullptr || e.seconds > out->seconds) out = &e;
  return out;
}

}  // namespace

std::string conclusions_text(const TraceConclusions& conclusions) {
  std::string out;
  for (const TraceConclusion& c : conclusions.conclusions) {
    out += paragraph(bold(c.text));
    out += paragraph(fmt::format("{}: {}, {} of the time; {}", c.rule, format_seconds(c.seconds),
                                 format_percent(c.share), owner_of(c)),
                     2);
    if (const TraceEvent* e = longest(c))
      out += paragraph(fmt::format("{}: {}", c.count > 1 ? "the longest" : "shown by", shown_event(*e)), 2);
    if (!c.remedy.empty()) out += paragraph(c.remedy, 2);
    out += "\n";
  }
  if (conclusions.left_out > 0)
    out += paragraph(fmt::format("{} {} left out: the ring was full or the writer too slow.",
                                 plural(conclusions.left_out, "event"), conclusions.left_out == 1 ? "was" : "were"));
  return out;
}

int summarize(const TraceOptions& options, const std::string& trace) {
  const TraceSummary summary = summarize_trace(trace);
  const TraceConclusions conclusions = conclude_trace(trace, conclusion_options(options));
  if (options.json) {
    Json json = summary_json(summary);
    const Json all = Json::parse(to_json(conclusions));
    json["leftOut"] = all["leftOut"];
    json["conclusions"] = all["conclusions"];
    print(rendered(json));
    return kFine;
  }
  const std::string text = conclusions_text(conclusions);
  print(summary_text(summary, options.by) + (text.empty() ? "" : "\n" + text));
  return kFine;
}

int conclude(const TraceOptions& options, const Outputs& outputs, const std::string& trace) {
  const ConclusionOptions chosen = conclusion_options(options);
  if (!options.out.empty()) {
    outputs.write(options.out, FileKind::page, conclusions_page(trace, chosen));
    if (!options.json) return kFine;
  }
  const TraceConclusions conclusions = conclude_trace(trace, chosen);
  if (options.json) {
    print(to_json(conclusions));
    return kFine;
  }
  const std::string text = conclusions_text(conclusions);
  print(text.empty() ? "No rule found anything that the program could save.\n" : text);
  return kFine;
}

int list_trace_rules(const TraceOptions& options) {
  const std::vector<TraceRule> rules = trace_rules();
  if (options.json) {
    Json json = Json::array();
    for (const TraceRule& r : rules) json.push_back({{"name", r.name}, {"summary", r.summary}, {"remedy", r.remedy}});
    print(rendered(json));
    return kFine;
  }
  io::Table table({{"rule", io::Align::left}, {"concludes when", io::Shrink::wrap}});
  for (const TraceRule& r : rules) table.add_row({r.name, r.summary});
  print(table_text(table));
  return kFine;
}

}  // namespace moka::cli
