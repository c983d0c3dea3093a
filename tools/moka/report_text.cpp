// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "io/file.h"
#include "io/io_error.h"
#include "io/table.h"
#include "print.h"
#include "report.h"
#include "text.h"

namespace moka::cli {
namespace {

using io::Align;
using io::Shrink;

constexpr size_t kShownRows = 20;

std::string seconds_of(const Json& json, const char* key) {
  return json.contains(key) ? format_seconds(json.at(key).get<double>()) : std::string();
}

/// A row for each figure, a column for each setting.
std::string figures_text(const Json& report) {
  std::vector<io::Table::Column> columns{{"", Align::left}};
  for (const Json& s : report.at("settings")) columns.emplace_back(s.at("name").get<std::string>(), Align::right);
  io::Table table(std::move(columns));
  const auto add = [&](const char* name, const auto& value) {
    std::vector<std::string> cells{name};
    for (const Json& s : report.at("settings")) cells.push_back(s.contains("error") ? std::string() : value(s));
    table.add_row(std::move(cells));
  };
  add("load", [](const Json& s) { return seconds_of(s.at("load"), "median"); });
  add("first prediction", [](const Json& s) { return seconds_of(s, "first"); });
  table.add_rule();
  for (const auto& [name, key] : {std::pair{"prediction, median", "median"},
                                  {"mean", "mean"},
                                  {"p90", "p90"},
                                  {"p99", "p99"},
                                  {"minimum", "minimum"}})
    add(name, [key = key](const Json& s) { return seconds_of(s.at("steady"), key); });
  add("a second", [](const Json& s) {
    const auto batch = s.at("options").value("batch", int64_t{1});
    return format_number(static_cast<double>(batch) / std::max(s.at("steady").at("mean").get<double>(), 1e-12));
  });
  table.add_rule();
  for (const auto& [name, key] : {std::pair{"weights", "weightBytes"},
                                  {"packed for kernels", "packedBytes"},
                                  {"values", "arenaBytes"},
                                  {"peak of the process", "peakBytes"}})
    add(name, [key = key](const Json& s) { return format_bytes(s.at("memory").at(key).get<double>()); });
  return table_text(table) + "\n";
}

std::string others(const Json& operation) {
  std::string out;
  if (!operation.contains("units")) return out;
  for (const Json& u : operation.at("units"))
    if (u.contains("refusal"))
      out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", u.at("device").get<std::string>(),
                         u.at("refusal").get<std::string>());
  return out;
}

std::string row_text(const Json& o) {
  std::string out = o.at("name").get<std::string>() + ' ' + o.at("type").get<std::string>() + ' ' +
                    o.at("device").get<std::string>() + ' ' + o.at("kernel").get<std::string>() + ' ' +
                    o.at("note").get<std::string>() + ' ' + others(o);
  for (const Json& f : o.at("fused")) out += ' ' + f.get<std::string>();
  return out;
}

std::string operations_text(const Json& setting, const std::string& filter, bool all) {
  const Json& operations = setting.at("operations");
  std::vector<size_t> shown;
  for (size_t i = 0; i < operations.size(); i++)
    if (filter.empty() || row_text(operations[i]).find(filter) != std::string::npos) shown.push_back(i);
  const size_t found = shown.size();
  const auto time = [&](size_t i) {
    return operations[i].contains("contains") ? 0 : std::max(0.0, operations[i].value("measuredSeconds", 0.0));
  };
  if (!all && shown.size() > kShownRows) {
    std::stable_sort(shown.begin(), shown.end(), [&](size_t a, size_t b) { return time(a) > time(b); });
    shown.resize(kShownRows);
  }
  io::Table table({{"#", Align::right},
                   {"operation", Shrink::middle},
                   {"type", Shrink::middle},
                   {"time", Align::right},
                   {"share", Align::right},
                   {"GF/s", Align::right},
                   {"roof", Align::right},
                   {"device", Align::left},
                   {"kernel", Shrink::end},
                   {"others refuse", Shrink::drop}});
  for (const size_t i : shown) {
    const Json& o = operations[i];
    const double seconds = std::max(0.0, o.value("measuredSeconds", 0.0)), arithmetic = o.value("arithmetic", 0.0);
    std::string name = o.at("name").get<std::string>();
    if (!o.at("fused").empty()) name += fmt::format(" +{}", o.at("fused").size());
    table.add_row({std::to_string(i + 1), name, o.at("type").get<std::string>(), format_seconds(seconds),
                   o.contains("share") ? format_percent(o.at("share").get<double>()) : "",
                   arithmetic > 0 && seconds > 0 ? fmt::format("{:.1f}", arithmetic / seconds / 1e9) : "",
                   o.contains("roof") ? fmt::format("{:.0f}% {}", o.at("roof").at("fraction").get<double>() * 100,
                                                    o.at("roof").at("bound") == "arithmetic" ? "ar" : "me")
                                      : "",
                   o.at("device").get<std::string>(), o.at("kernel").get<std::string>(), others(o)});
  }
  std::string out = "\n" + bold(setting.at("name").get<std::string>()) + "\n" + table_text(table);
  if (shown.size() < found)
    out += dim(fmt::format("the {} slowest of {}; --all shows every one in order", shown.size(),
                           plural(static_cast<int64_t>(found), "operation"))) +
           "\n";
  const Json& plan = setting.at("plan");
  out += fact("sum", fmt::format("{} of operations in a prediction of {}",
                                 format_seconds(plan.at("operationsSeconds").get<double>()),
                                 format_seconds(std::max(0.0, plan.at("predictionSeconds").get<double>()))));
  if (const Json c = plan.value("coverage", Json::object()); c.contains("fraction"))
    out +=
        fact("covered", fmt::format("{} of {} predictions: {} each in operations, {} in conversions, of {}",
                                    format_percent(c.at("fraction").get<double>()), c.at("predictions").get<int64_t>(),
                                    format_seconds(c.at("operationsSeconds").get<double>()),
                                    format_seconds(c.at("conversionsSeconds").get<double>()),
                                    format_seconds(c.at("predictionSeconds").get<double>())));
  const Json& machine = setting.at("machine");
  const auto runs = [&](const Json& device) {
    return std::any_of(operations.begin(), operations.end(), [&](const Json& o) { return o.at("device") == device; });
  };
  for (const Json& u : machine.at("units"))
    if (u.at("fp32").get<double>() > 0 && runs(u.at("device")))
      out +=
          fact("roof", fmt::format("{}: {} GF/s in float32, {} GB/s of memory ({}, measured {})",
                                   u.at("device").get<std::string>(), format_number(u.at("fp32").get<double>() / 1e9),
                                   format_number(u.at("bytesPerSecond").get<double>() / 1e9),
                                   machine.at("from").get<std::string>(), u.value("measured", std::string("?"))));
  return out;
}

}  // namespace

std::string report_text(const Json& report, const std::string& filter, bool all) {
  const Json& model = report.at("model");
  std::string out =
      bold(model.at("name").get<std::string>()) +
      fmt::format("  {}, {}, specification {}\n", model.at("type").get<std::string>(),
                  format_bytes(model.at("bytes").get<double>()), model.at("specificationVersion").get<int>());
  if (report.contains("compile"))
    out += fact("compile", report.at("compile").contains("seconds")
                               ? format_seconds(report.at("compile").at("seconds").get<double>())
                               : "not possible: " + report.at("compile").at("error").get<std::string>());
  for (const Json& s : report.at("settings"))
    if (s.contains("error")) out += fact(s.at("name").get<std::string>(), s.at("error").get<std::string>());
  if (std::any_of(report.at("settings").begin(), report.at("settings").end(),
                  [](const auto& s) { return !s.contains("error"); }))
    out += "\n" + figures_text(report);
  for (const Json& s : report.at("settings"))
    if (!s.contains("error")) out += operations_text(s, filter, all);
  return out;
}

Json read_report(const std::string& path) {
  const Json json = Json::parse(io::read_text(path), nullptr, false);
  const auto bad = [&](std::string_view what) {
    throw io::IoError(fmt::format("{}: expected a report that 'moka report --save' wrote, got {}", path, what));
  };
  if (json.is_discarded() || !json.is_object() || json.value("format", Json()) != "moka-report") bad("something else");
  if (json.value("version", Json()) != 1) bad("one of another version");
  try {
    // Every field that some output format reads must be present and of its type.
    for (const Json& s : json.at("settings"))
      for (const char* part : {"load", "steady"})
        if (!s.contains("error") && s.at(part).at("samples").get<std::vector<double>>().empty())
          bad("one without samples");
    (void)report_text(json, {}, true);
    (void)compared(json, json, 0);
  } catch (const nlohmann::json::exception& e) {
    bad(e.what());
  }
  return json;
}

}  // namespace moka::cli
