// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/json_depth.h"
#include "report/field.h"
#include "report/json.h"
#include "report/measure.h"

namespace moka {

namespace reporting {

namespace {

constexpr int kDeepest = 32;

template <class Enum>
Enum choice(const Field& field, std::initializer_list<Enum> all) {
  const std::string text = field.text();
  for (const Enum one : all)
    if (name_of(one) == text) return one;
  field.bad("a word that this version knows", "'" + text.substr(0, 40) + "'");
}

void read(const Field& from, TimeStatistics& to) {
  to.samples = from.at("samples").numbers();
  if (to.samples.empty()) from.at("samples").bad("samples", "none");
  to.count = from.whole_or<size_t>("count", to.samples.size());
  to.median = from.at("median").number();
  to.mean = from.number_or("mean", to.median);
  to.p90 = from.number_or("p90", to.median);
  to.p99 = from.number_or("p99", to.median);
  to.minimum = from.number_or("minimum", to.median);
  to.maximum = from.number_or("maximum", to.median);
}

void read(const Field& from, ReportMemory& to) {
  to.weight_bytes = from.at("weightBytes").whole<uint64_t>();
  to.packed_bytes = from.at("packedBytes").whole<uint64_t>();
  to.arena_bytes = from.at("arenaBytes").whole<uint64_t>();
  to.peak_bytes = from.at("peakBytes").whole<uint64_t>();
  to.unshared_bytes = from.whole_or<uint64_t>("unsharedArenaBytes", 0);
  to.peak_after_load_bytes = from.whole_or<uint64_t>("peakAfterLoadBytes", 0);
  to.resident_before = from.whole_or<uint64_t>("residentBeforeBytes", 0);
  // Earlier versions measured in a process of its own.
  to.peak_is_of_setting = from.flag_or("peakIsOfSetting", true);
}

void read(const Field& from, ReportMachine& to) {
  to.from = from.text_or("from");
  const Field units = from.at("units");
  for (size_t i = 0; i < units.size(); i++) {
    const Field unit = units.item(i);
    UnitRates& u = to.units.emplace_back();
    u.device = unit.at("device").text();
    u.unit = unit.text_or("unit");
    u.description = unit.text_or("description");
    u.fp32 = unit.at("fp32").number();
    u.fp16 = unit.number_or("fp16", 0);
    u.bytes = unit.at("bytesPerSecond").number();
    u.date = unit.text_or("measured");
  }
}

void read(const Field& from, ReportCoverage& to) {
  to.error = from.text_or("error");
  if (!to.error.empty()) return;
  to.predictions = from.at("predictions").whole<int64_t>();
  to.prediction_seconds = from.at("predictionSeconds").number();
  to.operations_seconds = from.at("operationsSeconds").number();
  to.conversions_seconds = from.at("conversionsSeconds").number();
  to.fraction = from.at("fraction").number();
}

void read(const Field& from, ReportPlan& to) {
  to.prediction_seconds = from.at("predictionSeconds").number();
  to.operations_seconds = from.at("operationsSeconds").number();
  to.predictions = from.whole_or<int>("predictions", 0);
  to.operations_in_source = from.whole_or<size_t>("operationsInSource", 0);
  to.folded = from.whole_or<size_t>("folded", 0);
  to.complete = from.flag_or("complete", true);
  if (const auto coverage = from.find("coverage")) read(*coverage, to.coverage.emplace());
}

void read_bids(const Field& from, std::vector<UnitBid>& to) {
  for (size_t i = 0; i < from.size(); i++) {
    const Field bid = from.item(i);
    UnitBid& b = to.emplace_back();
    b.device = bid.at("device").text();
    b.unit = bid.text_or("unit");
    b.refusal = bid.text_or("refusal");
    b.seconds = bid.number_or("seconds", 0);
    b.remedy = bid.text_or("remedy");
    b.source = bid.text_or("source");
    b.rule = bid.text_or("rule");
    b.doubt = bid.text_or("doubt");
  }
}

void read_dispatches(const Field& from, std::vector<OperationDispatch>& to) {
  for (size_t i = 0; i < from.size(); i++) {
    const Field dispatch = from.item(i);
    OperationDispatch& d = to.emplace_back();
    d.code = dispatch.text_or("shader");
    if (const auto groups = dispatch.find("workgroups"))
      for (size_t k = 0; k < std::min(groups->size(), d.groups.size()); k++)
        d.groups[k] = groups->item(k).whole<uint32_t>();
    d.seconds = dispatch.number_or("seconds", -1);
    d.also = dispatch.texts_or("also");
  }
}

void read(const Field& from, ReportedOperation& to) {
  to.name = from.at("name").text();
  to.type = from.at("type").text();
  to.device = from.at("device").text();
  to.kernel = from.at("kernel").text();
  to.note = from.text_or("note");
  to.depth = from.whole_or<int>("depth", 0);
  to.fused = from.texts_or("fused");
  to.refusals = from.texts_or("refusals");
  to.outputs = from.texts_or("outputs");
  to.layout = from.text_or("layout");
  to.estimated_seconds = from.number_or("estimatedSeconds", 0);
  to.region = from.whole_or<int>("region", -1);
  to.bytes = from.whole_or<size_t>("bytes", 0);
  to.reason = from.text_or("reason");
  if (const auto units = from.find("units")) read_bids(*units, to.bids);
  to.chosen_by = from.text_or("chosenBy");
  to.shape = from.text_or("shape");
  to.kernel_by_rule = from.text_or("kernelByRule");
  if (const auto candidates = from.find("candidates"))
    for (auto& [kernel, seconds] : candidates->entries()) to.candidates.push_back({kernel, seconds});
  to.measured_seconds = from.number_or("measuredSeconds", -1);
  to.runs = from.whole_or<int64_t>("runs", 0);
  if (const auto dispatches = from.find("dispatches")) read_dispatches(*dispatches, to.dispatches);
  if (from.find("share")) to.share = from.at("share").number();
  to.contains = from.flag_or("contains", false);
  to.arithmetic = from.number_or("arithmetic", 0);
  to.bytes_moved = from.number_or("bytesMoved", 0);
  if (const auto roof = from.find("roof"))
    to.roof = OperationRoof{roof->at("fraction").number(), roof->at("bound").text() == "arithmetic"};
}

void read_options(const Field& from, MeasuredSetting& to) {
  using enum ComputeUnits;
  if (const auto units = from.find("computeUnits"))
    to.compute_units = choice(*units, {all, cpu_only, cpu_and_gpu, cpu_and_neural_engine});
  if (const auto precision = from.find("precision"))
    to.precision = choice(*precision, {Precision::at_least, Precision::exact});
  to.threads = from.whole_or<int>("threads", 0);
  to.device = from.text_or("device");
  to.function = from.text_or("function");
  to.batch = from.whole_or<int64_t>("batch", 1);
  to.shapes = from.texts_or("shapes");
}

Failure failure_of(const Field& from, const std::string& message) {
  using enum ErrorKind;
  const bool is_wrong_use = from.flag_or("wrongUse", false);
  if (const auto kind = from.find("errorKind"))
    return {choice(*kind, {invalid_argument, malformed, unsupported, not_found, io, out_of_budget, data, internal,
                           device_lost, cancelled, deadline_exceeded}),
            message};
  return {is_wrong_use ? invalid_argument : internal, message};
}

void read(const Field& from, MeasuredSetting& to) {
  to.name = from.at("name").text();
  if (const auto options = from.find("options")) read_options(*options, to);
  if (const auto error = from.find("error")) {
    to.failure = failure_of(from, error->text());
    return;
  }
  to.first = from.number_or("first", 0);
  read(from.at("steady"), to.steady);
  const Field load = from.at("load");
  read(load, to.load);
  if (const auto parts = load.find("parts")) {
    LoadTimes& t = to.load_times;
    for (const auto& [part, seconds] : {std::pair{"open", &t.open},
                                        {"import", &t.import},
                                        {"passes", &t.passes},
                                        {"plan", &t.plan},
                                        {"pack", &t.pack}})
      *seconds = parts->number_or(part, 0);
  }
  read(from.at("machine"), to.machine);
  read(from.at("memory"), to.memory);
  if (const auto energy = from.find("energy")) {
    to.energy.missing = energy->texts_or("missing");
    const Field parts = energy->at("parts");
    for (size_t i = 0; i < parts.size(); i++)
      to.energy.parts.push_back({parts.item(i).at("name").text(), parts.item(i).at("joules").number()});
  }
  read(from.at("plan"), to.plan);
  const Field operations = from.at("operations");
  for (size_t i = 0; i < operations.size(); i++) read(operations.item(i), to.operations.emplace_back());
  if (const auto remarks = from.find("remarks"))
    for (size_t i = 0; i < remarks->size(); i++) {
      const Field remark = remarks->item(i);
      to.remarks.push_back({remark.at("pass").text(), remark.at("text").text()});
    }
}

void read(const Field& from, Report& to) {
  to.version = from.text_or("moka");
  to.date = from.text_or("date");
  to.processors = from.whole_or<unsigned>("processors", 0);
  const Field model = from.at("model");
  to.model = {model.at("name").text(), model.text_or("path"), model.at("type").text(),
              model.at("specificationVersion").whole<int>(), model.at("bytes").whole<uint64_t>()};
  if (const auto compile = from.find("compile")) {
    to.compilation.emplace().error = compile->text_or("error");
    if (to.compilation->error.empty()) to.compilation->seconds = compile->at("seconds").number();
  }
  const Field settings = from.at("settings");
  for (size_t i = 0; i < settings.size(); i++) read(settings.item(i), to.settings.emplace_back());
}

[[noreturn]] void refuse(std::string_view what) {
  throw Exception(ErrorKind::malformed, cat("expected a report that 'moka report --save' wrote, got ", what));
}

}  // namespace
}  // namespace reporting

Report parse_report(std::string_view json) {
  using reporting::Json;
  if (json_nests_deeper(json, reporting::kDeepest)) reporting::refuse("lists nested too deep");
  const Json parsed = Json::parse(json.begin(), json.end(), nullptr, false);
  if (parsed.is_discarded() || !parsed.is_object() || parsed.value("format", Json()) != "moka-report")
    reporting::refuse("something else");
  if (parsed.value("version", Json()) != 1) reporting::refuse("one of another version");
  Report out;
  try {
    reporting::read(reporting::Field(parsed), out);
  } catch (const reporting::BadField& e) {
    reporting::refuse(e.what());
  }
  return out;
}

Report read_report(const std::filesystem::path& path) {
  const std::string text = reporting::file_text(path);
  try {
    return parse_report(text);
  } catch (const Exception& e) {
    throw Exception(e.kind(), cat(path.string(), ": ", e.what()));
  }
}

void write_report(const std::filesystem::path& path, const Report& report, Overwrite overwrite) {
  const std::string text = to_json(report);
  write_file(path.string(), FileKind::report, std::as_bytes(std::span(text)), overwrite);
}

}  // namespace moka
