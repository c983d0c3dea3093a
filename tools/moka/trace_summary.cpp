// SPDX-License-Identifier: Apache-2.0
#include "trace_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "io/table.h"
#include "print.h"

namespace moka::cli {
namespace {

using io::Align;
using io::Shrink;

std::string value_of(const TraceGroup& g, std::string_view by) {
  if (by == "name") return g.name;
  if (by == "model") return g.model.empty() ? g.process : g.model;
  if (by == "device") return g.device.empty() ? g.kind : g.device;
  if (by == "kernel") return g.kernel.empty() ? g.kind : g.kernel;
  return g.kind;
}

/// Sums of groups that `by` does not tell apart, most time first.
std::vector<TraceGroup> merged(const std::vector<TraceGroup>& groups, const std::string& lane, std::string_view by) {
  std::map<std::pair<std::string, std::string>, TraceGroup> rows;
  for (const TraceGroup& g : groups) {
    if (g.lane != lane) continue;
    // Slices that contain operations, or that overlap the host, would count time twice.
    if (by != "kind" && by != "name" && (g.kind == "stretch" || g.kind == "region" || g.kind == "wait")) continue;
    TraceGroup& row = rows[{value_of(g, by), lane == "Data" ? g.reason : std::string()}];
    if (row.count == 0) {
      row = g;
      continue;
    }
    row.count += g.count;
    row.total += g.total;
    row.bytes += g.bytes;
    row.minimum = std::min(row.minimum, g.minimum);
    row.maximum = std::max(row.maximum, g.maximum);
    if (row.model != g.model) row.model = "several";
  }
  std::vector<TraceGroup> out;
  for (auto& [key, row] : rows) out.push_back(std::move(row));
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.total > b.total; });
  return out;
}

std::string lane_text(const TraceSummary& summary, const std::string& lane, std::string_view by) {
  const bool is_data = lane == "Data";
  std::vector<io::Table::Column> columns{{lane, Shrink::middle},    {"count", Align::right},
                                         {"total", Align::right},   {"minimum", Align::right},
                                         {"average", Align::right}, {"maximum", Align::right}};
  if (is_data) {
    columns.emplace_back("bytes", Align::right);
    columns.emplace_back("reason", Shrink::wrap);
  } else if (by != "model") {
    columns.emplace_back("model", Shrink::drop);
  }
  io::Table table(std::move(columns));
  for (const TraceGroup& g : merged(summary.groups, lane, by)) {
    std::vector<std::string> cells{value_of(g, by),           format_count(g.count),       format_seconds(g.total),
                                   format_seconds(g.minimum), format_seconds(g.average()), format_seconds(g.maximum)};
    if (is_data) {
      cells.push_back(format_bytes(static_cast<double>(g.bytes)));
      cells.push_back(g.reason);
    } else if (by != "model") {
      cells.push_back(g.model);
    }
    table.add_row(std::move(cells));
  }
  return table.empty() ? std::string() : table_text(table) + "\n";
}

}  // namespace

std::string summary_text(const TraceSummary& summary, std::string_view by) {
  std::string out;
  for (const char* lane : {"Activity", "Data", "Compute", "GPU"}) out += lane_text(summary, lane, by);
  if (!summary.counters.empty()) {
    io::Table table({{"counter", Shrink::middle},
                     {"samples", Align::right},
                     {"minimum", Align::right},
                     {"mean", Align::right},
                     {"maximum", Align::right},
                     {"process", Shrink::drop}});
    for (const TraceCounter& c : summary.counters) {
      const auto shown = [&](double v) { return c.is_bytes ? format_bytes(v) : format_number(v); };
      table.add_row({c.name, format_count(c.samples), shown(c.minimum), shown(c.mean), shown(c.maximum), c.process});
    }
    out += table_text(table) + "\n";
  }
  std::set<std::string> models;
  for (const TraceGroup& g : summary.groups)
    if (!g.model.empty()) models.insert(g.model);
  out += fact("traced", fmt::format("{}, {}", format_seconds(summary.seconds),
                                    plural(static_cast<int64_t>(models.size()), "model")));
  if (std::none_of(summary.groups.begin(), summary.groups.end(), [](const auto& g) { return g.lane == "Data"; }))
    out += fact("data", "nothing was converted or copied");
  if (summary.unfinished > 0)
    out += fact("unfinished", plural(summary.unfinished, "slice") + " without an end: the program was stopped");
  return out;
}

Json summary_json(const TraceSummary& summary) {
  Json json{{"seconds", summary.seconds}, {"unfinished", summary.unfinished}};
  json["groups"] = Json::array();
  for (const TraceGroup& g : summary.groups)
    json["groups"].push_back({{"lane", g.lane},
                              {"process", g.process},
                              {"model", g.model},
                              {"name", g.name},
                              {"kind", g.kind},
                              {"device", g.device},
                              {"kernel", g.kernel},
                              {"reason", g.reason},
                              {"count", g.count},
                              {"total", g.total},
                              {"minimum", g.minimum},
                              {"average", g.average()},
                              {"maximum", g.maximum},
                              {"bytes", g.bytes}});
  json["counters"] = Json::array();
  for (const TraceCounter& c : summary.counters)
    json["counters"].push_back({{"name", c.name},
                                {"process", c.process},
                                {"unit", c.is_bytes ? "bytes" : "count"},
                                {"samples", c.samples},
                                {"minimum", c.minimum},
                                {"mean", c.mean},
                                {"maximum", c.maximum}});
  return json;
}

}  // namespace moka::cli
