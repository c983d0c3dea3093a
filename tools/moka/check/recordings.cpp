// SPDX-License-Identifier: Apache-2.0
#include "check/recordings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "check/verify.h"
#include "io/table.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

using io::Align;
using io::Shrink;
using Preview = PlacedOperation::Preview;
using Verdict = PlacedOperation::Verdict;

constexpr size_t kShownPlaces = 20;

const char* name_of(ComputeUnits units) {
  switch (units) {
    case ComputeUnits::cpu_only: return "cpuOnly";
    case ComputeUnits::cpu_and_gpu: return "cpuAndGPU";
    case ComputeUnits::cpu_and_neural_engine: return "cpuAndNeuralEngine";
    default: return "all";
  }
}

const char* name_of(Preview preview) {
  switch (preview) {
    case Preview::right: return "right";
    case Preview::wrongly_taken: return "wronglyTaken";
    case Preview::wrongly_refused: return "wronglyRefused";
    case Preview::wrongly_doubted: return "wronglyDoubted";
    case Preview::wrongly_trusted: return "wronglyTrusted";
    default: return "none";
  }
}

std::string sentence_of(Preview preview, const std::string& unit) {
  switch (preview) {
    case Preview::wrongly_taken: return "the preview takes it, Core ML does not support it";
    case Preview::wrongly_refused: return "the preview refuses it, Core ML supports it";
    case Preview::wrongly_doubted: return fmt::format("the preview doubts it, Core ML prefers {}", unit);
    case Preview::wrongly_trusted: return "the preview takes it, Core ML prefers another unit";
    default: return {};
  }
}

std::string count(size_t n, std::string_view word) { return plural(static_cast<int64_t>(n), word); }

std::string head(const DeviceRecording& recording, const RecordedSetting& setting) {
  return fact("recording", fmt::format("{}, {}", recording.device_text(), name_of(setting.units)));
}

std::string seconds_or_dash(double seconds) { return seconds > 0 ? format_seconds(seconds) : "-"; }

}  // namespace

const RecordedSetting& recorded_plan(const DeviceRecording& recording, const std::string& path, ComputeUnits units,
                                     ComputeUnits otherwise) {
  const RecordedSetting* found = recording.find(units);
  if (found == nullptr || found->operations.empty()) {
    const RecordedSetting* other = recording.find(otherwise);
    if (other != nullptr && !other->operations.empty()) found = other;
  }
  if (found == nullptr) throw UsageError(fmt::format("{}: nothing was recorded with {}", path, name_of(units)));
  if (found->operations.empty())
    throw UsageError(fmt::format("{}: no plan was recorded with {}{}", path, name_of(units),
                                 found->plan_error.empty() ? "" : ": " + found->plan_error));
  return *found;
}

std::string placement_text(const Placement& placement, const DeviceRecording& recording, const RecordedSetting& setting,
                           bool all) {
  std::string out = "\n" + bold("the recorded placement") + "\n" + head(recording, setting);
  out += fact("same unit", count(placement.same, "operation"));
  out += fact("elsewhere", count(placement.elsewhere, "operation"));
  if (placement.unplanned > 0)
    out += fact("not planned", fmt::format("{}: views, what Moka folded, and what the model lacks",
                                           count(placement.unplanned, "operation")));
  std::vector<const PlacedOperation*> shown;
  for (const PlacedOperation& o : placement.operations)
    if (all || o.verdict == Verdict::elsewhere) shown.push_back(&o);
  if (shown.empty()) return out;
  const size_t most = all ? shown.size() : std::min(shown.size(), kShownPlaces);
  if (!all)
    std::stable_sort(shown.begin(), shown.end(), [](const auto* a, const auto* b) {
      return a->recorded.cost.value_or(0) > b->recorded.cost.value_or(0);
    });
  io::Table table({{"operation", Shrink::middle},
                   {"type", Shrink::middle},
                   {"Core ML"},
                   {"supported by", Shrink::end},
                   {"cost", Align::right},
                   {"Moka"}});
  for (size_t i = 0; i < most; ++i) {
    const PlacedOperation& o = *shown[i];
    table.add_row(
        {o.name, o.recorded.type, o.recorded.preferred, fmt::format("{}", fmt::join(o.recorded.supported, " ")),
         o.recorded.cost ? format_percent(*o.recorded.cost) : "", o.verdict == Verdict::unplanned ? "-" : o.unit});
  }
  out += "\n" + table_text(table);
  if (shown.size() > most)
    out += dim(fmt::format("the {} most expensive of {}; --all shows every one", most, shown.size())) + "\n";
  return out;
}

std::string preview_text(const Placement& placement, const DeviceRecording& recording, const RecordedSetting& setting,
                         const std::string& unit) {
  std::string out = "\n" + bold("the preview beside the recording") + "\n" + head(recording, setting);
  const size_t judged = placement.right + placement.wrong_support + placement.wrong_preference;
  out += fact("right", fmt::format("{} of {}", placement.right, count(judged, "operation")));
  if (placement.wrong_support > 0) out += fact("wrong support", count(placement.wrong_support, "operation"));
  if (placement.wrong_preference > 0) out += fact("wrong preference", count(placement.wrong_preference, "operation"));
  if (placement.operations.size() > judged)
    out += fact("not compared", count(placement.operations.size() - judged, "operation"));
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::vector<std::string>> groups;
  for (const PlacedOperation& o : placement.operations)
    if (const std::string what = sentence_of(o.preview, unit); !what.empty())
      groups[{what, o.rule, o.recorded.type, o.source}].push_back(o.name);
  if (groups.empty()) return out;
  io::Table table({{"operations", Align::right},
                   {"for example", Shrink::middle},
                   {"type", Shrink::middle},
                   {"wrong", Shrink::wrap},
                   {"rule", Shrink::middle},
                   {"source", Shrink::wrap}});
  for (const auto& [key, names] : groups) {
    const auto& [what, rule, type, source] = key;
    table.add_row(
        {format_count(static_cast<int64_t>(names.size())), names[0], type, what, rule.empty() ? "-" : rule, source});
  }
  return out + "\n" + table_text(table);
}

void add_placement(const Placement& placement, const DeviceRecording& recording, const RecordedSetting& setting,
                   Json& json) {
  Json& to = json["recording"] = {{"device", recording.device_text()},
                                  {"computeUnits", name_of(setting.units)},
                                  {"same", placement.same},
                                  {"elsewhere", placement.elsewhere},
                                  {"unplanned", placement.unplanned},
                                  {"previewRight", placement.right},
                                  {"previewWrongSupport", placement.wrong_support},
                                  {"previewWrongPreference", placement.wrong_preference},
                                  {"operations", Json::array()}};
  for (const PlacedOperation& o : placement.operations) {
    Json one{{"name", o.name},
             {"type", o.recorded.type},
             {"preferred", o.recorded.preferred},
             {"supported", o.recorded.supported}};
    if (o.recorded.cost) one["cost"] = *o.recorded.cost;
    if (o.verdict != Verdict::unplanned) one["unit"] = o.unit;
    if (o.preview != Preview::none) one["preview"] = name_of(o.preview);
    if (!o.rule.empty()) one["rule"] = o.rule;
    if (!o.reason.empty()) one["reason"] = o.reason;
    to["operations"].push_back(std::move(one));
  }
}

std::string comparison_text(const RecordingComparison& comparison, const DeviceRecording& first,
                            const DeviceRecording& second) {
  std::string out = fact("first", first.device_text()) + fact("second", second.device_text());
  io::Table outputs(
      {{"units"}, {"output", Shrink::middle}, {"signal to noise", Align::right}, {"largest error", Align::right}});
  io::Table times({{"units"},
                   {"load", Align::right},
                   {"", Align::right},
                   {"prediction", Align::right},
                   {"", Align::right},
                   {"moved", Align::right}});
  io::Table moved({{"units"}, {"operation", Shrink::middle}, {"type", Shrink::middle}, {"first"}, {"second"}});
  size_t shown = 0, all = 0;
  for (const RecordingComparison::Setting& s : comparison.settings) {
    for (const OutputError& e : s.outputs)
      outputs.add_row({name_of(s.units), e.name, e.has_numbers() ? decibels(e) : agreement(e),
                       e.has_numbers() ? format_number(e.absolute) : ""});
    times.add_row({name_of(s.units), seconds_or_dash(s.first_load), seconds_or_dash(s.second_load),
                   seconds_or_dash(s.first_prediction), seconds_or_dash(s.second_prediction),
                   fmt::format("{} of {}", s.moved.size(), s.operations)});
    for (const RecordingComparison::Moved& m : s.moved)
      if (++all; shown < kShownPlaces) {
        ++shown;
        moved.add_row(
            {name_of(s.units), m.name, m.type, m.first.empty() ? "-" : m.first, m.second.empty() ? "-" : m.second});
      }
  }
  out += "\n" + table_text(outputs) + "\n" + table_text(times);
  if (shown > 0) out += "\n" + table_text(moved);
  if (all > shown) out += dim(fmt::format("and {} more; --json lists them", all - shown)) + "\n";
  if (!comparison.remarks.empty() || !comparison.failures.empty()) out += "\n";
  for (const std::string& remark : comparison.remarks) out += fact("remark", remark);
  for (const std::string& failure : comparison.failures) out += fact("differs", failure);
  return out;
}

Json to_json(const RecordingComparison& comparison, const DeviceRecording& first, const DeviceRecording& second) {
  Json out{{"same", comparison.same()},
           {"first", first.device_text()},
           {"second", second.device_text()},
           {"settings", Json::array()}};
  for (const RecordingComparison::Setting& s : comparison.settings) {
    Json one{{"computeUnits", name_of(s.units)},
             {"outputs", Json::array()},
             {"operations", s.operations},
             {"moved", Json::array()},
             {"loadSeconds", {s.first_load, s.second_load}},
             {"predictionSeconds", {s.first_prediction, s.second_prediction}}};
    for (const OutputError& e : s.outputs) one["outputs"].push_back(to_json(e));
    for (const RecordingComparison::Moved& m : s.moved)
      one["moved"].push_back({{"name", m.name}, {"type", m.type}, {"first", m.first}, {"second", m.second}});
    out["settings"].push_back(std::move(one));
  }
  out["remarks"] = comparison.remarks;
  out["failures"] = comparison.failures;
  return out;
}

}  // namespace moka::cli
