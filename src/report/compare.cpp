// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "report/statistics.h"

namespace moka {

namespace reporting {

namespace {

using Verdict = ReportChange::Verdict;

constexpr double kEnergyNoise = 0.05;  ///< the rest of the machine

/// A figure of one report and how far it strays while nothing changes.
struct Figure {
  double value = 0;
  double noise = 0;  ///< a fraction of `value`
};

/// The median of samples in the order of time. The machine drifts more slowly than predictions repeat, so the noise is
/// that between the medians of eight stretches, not that between neighbors.
Figure figure_of(const std::vector<double>& samples) {
  constexpr size_t kStretches = 8;
  Figure f{median(samples), 0};
  std::vector<double> parts;
  if (samples.size() < 2 * kStretches) {
    parts = samples;
  } else {
    const auto at = [&](size_t i) {
      return samples.begin() + static_cast<std::ptrdiff_t>(i * samples.size() / kStretches);
    };
    for (size_t i = 0; i < kStretches; i++) parts.push_back(median({at(i), at(i + 1)}));
  }
  const auto [least, most] = std::minmax_element(parts.begin(), parts.end());
  if (f.value > 0) f.noise = (*most - *least) / 2 / f.value;
  return f;
}

Figure p90_of(const TimeStatistics& steady) {
  return {steady.p90, figure_of(steady.samples).noise + (steady.p90 - steady.median) / std::max(steady.p90, 1e-12)};
}

class Comparison {
 public:
  explicit Comparison(ReportComparison& out) : out_(out) {}

  void figure(const std::string& setting, const char* name, const char* unit, Figure before, Figure after) {
    // Also false for what is not a number.
    if (!(before.value > 0 && after.value > 0)) return;
    const double change = after.value / before.value - 1, noise = before.noise + after.noise;
    const bool is_beyond = std::abs(change) > std::max(out_.tolerance, noise);
    const Verdict verdict = !is_beyond ? Verdict::same : change > 0 ? Verdict::worse : Verdict::better;
    out_.changes.push_back({setting, name, unit, before.value, after.value, change, noise, verdict});
    if (verdict == Verdict::worse) out_.regressions++;
  }
  void bytes(const std::string& setting, const char* name, uint64_t before, uint64_t after) {
    figure(setting, name, "B", {static_cast<double>(before), 0}, {static_cast<double>(after), 0});
  }
  void remark(std::string text) { out_.remarks.push_back(std::move(text)); }
  void regression(std::string text) {
    remark(std::move(text));
    out_.regressions++;
  }

 private:
  ReportComparison& out_;
};

/// Operations that moved to another device or kernel: where a change of time comes from.
void compare_operations(const MeasuredSetting& before, const MeasuredSetting& after, Comparison& to) {
  const auto place_of = [](const ReportedOperation& o) { return o.device + " " + o.kernel; };
  std::map<std::string_view, std::string> where;
  for (const ReportedOperation& o : before.operations)
    if (!o.kernel.empty()) where[o.name] = place_of(o);
  size_t moved = 0;
  std::string examples;
  for (const ReportedOperation& o : after.operations) {
    const auto at = where.find(o.name);
    if (o.kernel.empty() || at == where.end() || at->second == place_of(o)) continue;
    if (moved++ < 3)
      examples += cat(examples.empty() ? "" : ", ", "'", o.name, "' from ", at->second, " to ", place_of(o));
  }
  if (moved > 0)
    to.remark(cat(after.name, ": ", moved, moved == 1 ? " operation" : " operations", " run elsewhere: ", examples,
                  moved > 3 ? ", ..." : ""));
}

void compare_memory(const MeasuredSetting& before, const MeasuredSetting& after, Comparison& to) {
  const ReportMemory &a = before.memory, &b = after.memory;
  const bool is_known = a.resident_before > 0 && b.resident_before > 0;
  const auto above = [&](const ReportMemory& m) {
    return is_known ? m.peak_bytes - std::min(m.peak_bytes, m.resident_before) : m.peak_bytes;
  };
  to.bytes(after.name, "peak memory", above(a), above(b));
  to.bytes(after.name, "packed weights", a.packed_bytes, b.packed_bytes);
  to.bytes(after.name, "values", a.arena_bytes, b.arena_bytes);
}

std::string hardware(const MeasuredSetting& setting) {
  std::string out;
  for (const UnitRates& u : setting.machine.units) out += u.description + "; ";
  return out;
}

void compare_settings(const MeasuredSetting& before, const MeasuredSetting& after, Comparison& to) {
  const std::string& name = after.name;
  if (after.failure) {
    if (before.failure)
      to.remark(name + ": fails in both: " + after.failure->message);
    else
      to.regression(name + ": fails now: " + after.failure->message);
    return;
  }
  if (before.failure) {
    to.remark(name + ": works now; it failed: " + before.failure->message);
    return;
  }
  if (hardware(before) != hardware(after)) to.remark(name + ": the reports are from different machines");
  to.figure(name, "load", "s", figure_of(before.load.samples), figure_of(after.load.samples));
  to.figure(name, "prediction", "s", figure_of(before.steady.samples), figure_of(after.steady.samples));
  to.figure(name, "prediction, p90", "s", p90_of(before.steady), p90_of(after.steady));
  if (!before.energy.parts.empty() && !after.energy.parts.empty())
    to.figure(name, "energy", "J", {before.energy.joules(), kEnergyNoise}, {after.energy.joules(), kEnergyNoise});
  compare_memory(before, after, to);
  compare_operations(before, after, to);
}

const MeasuredSetting* find(const Report& report, const std::string& name) {
  for (const MeasuredSetting& s : report.settings)
    if (s.name == name) return &s;
  return nullptr;
}

void check_samples(const Report& report) {
  for (const MeasuredSetting& s : report.settings)
    if (!s.failure && (s.load.samples.empty() || s.steady.samples.empty()))
      throw Exception(ErrorKind::invalid_argument, cat("setting '", s.name, "': expected samples, got none"));
}

}  // namespace
}  // namespace reporting

ReportComparison compare_reports(const Report& before, const Report& after, double tolerance) {
  if (!(tolerance >= 0))
    throw Exception(ErrorKind::invalid_argument, cat("tolerance: expected a number of at least 0, got ", tolerance));
  reporting::check_samples(before);
  reporting::check_samples(after);
  ReportComparison out;
  out.tolerance = tolerance;
  reporting::Comparison to(out);
  if (before.model.name != after.model.name)
    to.remark(cat("the models have different names: ", before.model.name, " and ", after.model.name));
  size_t matched = 0;
  for (const MeasuredSetting& a : after.settings) {
    const MeasuredSetting* b = reporting::find(before, a.name);
    if (b == nullptr) {
      to.remark(a.name + ": only the new report has this setting");
      continue;
    }
    matched++;
    reporting::compare_settings(*b, a, to);
  }
  for (const MeasuredSetting& b : before.settings)
    if (reporting::find(after, b.name) == nullptr) to.remark(b.name + ": only the old report has this setting");
  if (matched == 0) {
    const auto names = [](const Report& r) {
      std::string out;
      for (const MeasuredSetting& s : r.settings) out += (out.empty() ? "" : ", ") + s.name;
      return out;
    };
    to.regression(cat("the reports have no setting in common: ", names(before), " and ", names(after)));
  }
  return out;
}

}  // namespace moka
