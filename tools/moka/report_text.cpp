// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "energy.h"
#include "io/table.h"
#include "print.h"
#include "report.h"
#include "text.h"

namespace moka::cli {
namespace {

using io::Align;
using io::Shrink;

constexpr size_t kShownRows = 20;

/// A row for each figure, a column for each setting.
std::string figures_text(const Report& report) {
  std::vector<io::Table::Column> columns{{"", Align::left}};
  for (const MeasuredSetting& s : report.settings) columns.emplace_back(s.name, Align::right);
  io::Table table(std::move(columns));
  const auto add = [&](const char* name, const auto& value) {
    std::vector<std::string> cells{name};
    for (const MeasuredSetting& s : report.settings) cells.push_back(s.failure ? std::string() : value(s));
    table.add_row(std::move(cells));
  };
  add("load", [](const MeasuredSetting& s) { return format_seconds(s.load.median); });
  add("first prediction", [](const MeasuredSetting& s) { return format_seconds(s.first); });
  table.add_rule();
  for (const auto& [name, figure] : {std::pair{"prediction, median", &TimeStatistics::median},
                                     {"mean", &TimeStatistics::mean},
                                     {"p90", &TimeStatistics::p90},
                                     {"p99", &TimeStatistics::p99},
                                     {"minimum", &TimeStatistics::minimum}})
    add(name, [figure = figure](const MeasuredSetting& s) { return format_seconds(s.steady.*figure); });
  add("a second", [](const MeasuredSetting& s) {
    return format_number(static_cast<double>(s.batch) / std::max(s.steady.mean, 1e-12));
  });
  // A recording of a device has no memory.
  if (std::all_of(report.settings.begin(), report.settings.end(),
                  [](const auto& s) { return s.memory.peak_bytes == 0; }))
    return table_text(table) + "\n";
  table.add_rule();
  for (const auto& [name, bytes] : {std::pair{"weights", &ReportMemory::weight_bytes},
                                    {"packed for kernels", &ReportMemory::packed_bytes},
                                    {"values", &ReportMemory::arena_bytes},
                                    {"peak of the process", &ReportMemory::peak_bytes}})
    add(name, [bytes = bytes](const MeasuredSetting& s) { return format_bytes(static_cast<double>(s.memory.*bytes)); });
  table.add_rule();
  add("energy", [](const MeasuredSetting& s) { return s.energy.parts.empty() ? "-" : format_energy(s.energy); });
  std::string out = table_text(table) + "\n";
  for (const MeasuredSetting& s : report.settings)
    if (!s.energy.missing.empty())
      return out + fmt::format("energy not available: {}\n\n", fmt::join(s.energy.missing, "; "));
  return out;
}

std::string others(const ReportedOperation& operation) {
  std::string out;
  for (const UnitBid& b : operation.bids)
    if (!b.refusal.empty()) out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", b.device, b.refusal);
  return out;
}

std::string row_text(const ReportedOperation& o) {
  std::string out = o.name + ' ' + o.type + ' ' + o.device + ' ' + o.kernel + ' ' + o.note + ' ' + others(o);
  for (const std::string& f : o.fused) out += ' ' + f;
  return out;
}

/// The rows of the operations that `filter` matches: the slowest, or all in order.
std::vector<size_t> shown_rows(const std::vector<ReportedOperation>& operations, bool all, size_t found,
                               std::vector<size_t> rows) {
  if (all || found <= kShownRows) return rows;
  const auto time = [&](size_t i) {
    return operations[i].contains ? 0 : std::max(0.0, operations[i].measured_seconds);
  };
  std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) { return time(a) > time(b); });
  rows.resize(kShownRows);
  return rows;
}

std::string roofs_text(const MeasuredSetting& setting) {
  const auto runs = [&](const std::string& device) {
    return std::any_of(setting.operations.begin(), setting.operations.end(),
                       [&](const ReportedOperation& o) { return o.device == device; });
  };
  std::string out;
  for (const UnitRates& u : setting.machine.units)
    if (u.fp32 > 0 && runs(u.device))
      out += fact("roof", fmt::format("{}: {} GF/s in float32, {} GB/s of memory ({}, measured {})", u.device,
                                      format_number(u.fp32 / 1e9), format_number(u.bytes / 1e9), setting.machine.from,
                                      u.date.empty() ? "?" : u.date));
  return out;
}

std::string sums_text(const ReportPlan& plan) {
  if (plan.prediction_seconds < 0) return {};
  std::string out =
      fact("sum", fmt::format("{} of operations in a prediction of {}", format_seconds(plan.operations_seconds),
                              format_seconds(std::max(0.0, plan.prediction_seconds))));
  if (plan.coverage && plan.coverage->error.empty()) {
    const ReportCoverage& c = *plan.coverage;
    out += fact("covered", fmt::format("{} of {} predictions: {} each in operations, {} in conversions, of {}",
                                       format_percent(c.fraction), c.predictions, format_seconds(c.operations_seconds),
                                       format_seconds(c.conversions_seconds), format_seconds(c.prediction_seconds)));
  }
  return out;
}

std::string operations_text(const MeasuredSetting& setting, const std::string& filter, bool all) {
  const std::vector<ReportedOperation>& operations = setting.operations;
  std::vector<size_t> found;
  for (size_t i = 0; i < operations.size(); i++)
    if (filter.empty() || row_text(operations[i]).find(filter) != std::string::npos) found.push_back(i);
  const std::vector<size_t> shown = shown_rows(operations, all, found.size(), found);
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
    const ReportedOperation& o = operations[i];
    const double seconds = std::max(0.0, o.measured_seconds);
    std::string name = o.name;
    if (!o.fused.empty()) name += fmt::format(" +{}", o.fused.size());
    table.add_row({std::to_string(i + 1), name, o.type, o.measured_seconds < 0 ? "" : format_seconds(seconds),
                   o.share ? format_percent(*o.share) : "",
                   o.arithmetic > 0 && seconds > 0 ? fmt::format("{:.1f}", o.arithmetic / seconds / 1e9) : "",
                   o.roof ? fmt::format("{:.0f}% {}", o.roof->fraction * 100, o.roof->is_arithmetic ? "ar" : "me") : "",
                   o.device, o.kernel, others(o)});
  }
  std::string out = "\n" + bold(setting.name) + "\n" + table_text(table);
  if (shown.size() < found.size())
    out += dim(fmt::format("the {} slowest of {}; --all shows every one in order", shown.size(),
                           plural(static_cast<int64_t>(found.size()), "operation"))) +
           "\n";
  return out + sums_text(setting.plan) + roofs_text(setting);
}

}  // namespace

std::string report_text(const Report& report, const std::string& filter, bool all) {
  const ReportModel& model = report.model;
  std::string out = bold(model.name);
  // A recording of a device does not say more.
  if (model.specification_version > 0)
    out += fmt::format("  {}, {}, specification {}", model.type, format_bytes(static_cast<double>(model.bytes)),
                       model.specification_version);
  out += "\n";
  if (const auto& c = report.compilation)
    out += fact("compile", c->error.empty() ? format_seconds(c->seconds) : "not possible: " + c->error);
  for (const MeasuredSetting& s : report.settings)
    if (s.failure) out += fact(s.name, s.failure->message);
  if (std::any_of(report.settings.begin(), report.settings.end(), [](const auto& s) { return !s.failure; }))
    out += "\n" + figures_text(report);
  for (const MeasuredSetting& s : report.settings)
    if (!s.failure) out += operations_text(s, filter, all);
  return out;
}

std::string comparison_text(const ReportComparison& comparison) {
  io::Table table({{"setting", Shrink::middle},
                   {"", Align::left},
                   {"before", Align::right},
                   {"after", Align::right},
                   {"change", Align::right},
                   {"noise", Align::right},
                   {"", Align::left}});
  using Verdict = ReportChange::Verdict;
  for (const ReportChange& c : comparison.changes) {
    const auto shown = [&](double value) { return c.unit == "s" ? format_seconds(value) : format_bytes(value); };
    table.add_row({c.setting, c.what, shown(c.before), shown(c.after), fmt::format("{:+.1f}%", c.change * 100),
                   format_percent(c.noise),
                   c.verdict == Verdict::same     ? ""
                   : c.verdict == Verdict::better ? "better"
                                                  : "worse"});
  }
  std::string out = table.empty() ? std::string() : table_text(table) + "\n";
  for (const std::string& remark : comparison.remarks) out += fact("remark", remark);
  const auto n = static_cast<int64_t>(comparison.regressions);
  return out + fact("result", n == 0 ? "nothing is worse beyond noise" : plural(n, "regression"));
}

}  // namespace moka::cli
