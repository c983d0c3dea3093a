// SPDX-License-Identifier: Apache-2.0
#include "report/json.h"

#include <algorithm>

#include "report/measure.h"

namespace moka {

namespace reporting {

namespace {

void render(const Json& json, size_t indent, std::string& out) {
  const auto is_plain = [](const Json& j) { return !j.is_structured() || j.empty(); };
  if (is_plain(json)) {
    out += dumped(json);
    return;
  }
  if (json.is_array() && std::all_of(json.begin(), json.end(), is_plain)) {
    for (size_t i = 0; i < json.size(); i++) out += (i ? ", " : "[") + dumped(json[i]);
    out += ']';
    return;
  }
  const std::string inner(indent + 2, ' ');
  bool first = true;
  out += json.is_object() ? '{' : '[';
  for (auto item = json.begin(); item != json.end(); ++item) {
    out += (first ? "\n" : ",\n") + inner;
    first = false;
    if (json.is_object()) out += dumped(item.key()) + ": ";
    render(*item, indent + 2, out);
  }
  out += '\n' + std::string(indent, ' ') + (json.is_object() ? '}' : ']');
}

Json json_of(const TimeStatistics& t) {
  return {{"count", t.count}, {"mean", t.mean},       {"median", t.median},   {"p90", t.p90},
          {"p99", t.p99},     {"minimum", t.minimum}, {"maximum", t.maximum}, {"samples", t.samples}};
}

Json json_of(const ReportMemory& m) {
  Json out{{"weightBytes", m.weight_bytes}, {"packedBytes", m.packed_bytes},
           {"arenaBytes", m.arena_bytes},   {"unsharedArenaBytes", m.unshared_bytes},
           {"peakBytes", m.peak_bytes},     {"peakAfterLoadBytes", m.peak_after_load_bytes}};
  if (m.resident_before > 0) out["residentBeforeBytes"] = m.resident_before;
  out["peakIsOfSetting"] = m.peak_is_of_setting;
  return out;
}

Json json_of(const ReportMachine& machine) {
  Json units = Json::array();
  for (const UnitRates& u : machine.units)
    units.push_back({{"device", u.device},
                     {"unit", u.unit},
                     {"description", u.description},
                     {"fp32", u.fp32},
                     {"fp16", u.fp16},
                     {"bytesPerSecond", u.bytes},
                     {"measured", u.date}});
  return {{"units", std::move(units)}, {"from", machine.from}};
}

Json json_of(const ReportCoverage& c) {
  if (!c.error.empty()) return {{"error", c.error}};
  return {{"predictions", c.predictions},
          {"predictionSeconds", c.prediction_seconds},
          {"operationsSeconds", c.operations_seconds},
          {"conversionsSeconds", c.conversions_seconds},
          {"fraction", c.fraction}};
}

Json json_of(const ReportPlan& p) {
  Json out{{"predictionSeconds", p.prediction_seconds},
           {"operationsSeconds", p.operations_seconds},
           {"predictions", p.predictions},
           {"operationsInSource", p.operations_in_source},
           {"folded", p.folded},
           {"complete", p.complete}};
  if (p.coverage) out["coverage"] = json_of(*p.coverage);
  return out;
}

Json json_of(const UnitBid& b) {
  Json out{{"device", b.device}, {"unit", b.unit}};
  if (b.refusal.empty())
    out["seconds"] = b.seconds;
  else
    out["refusal"] = b.refusal;
  if (!b.remedy.empty()) out["remedy"] = b.remedy;
  if (!b.source.empty()) out["source"] = b.source;
  if (!b.rule.empty()) out["rule"] = b.rule;
  if (!b.doubt.empty()) out["doubt"] = b.doubt;
  return out;
}

Json json_of(const OperationDispatch& d) {
  Json out{{"shader", d.code}, {"workgroups", d.groups}};
  if (d.seconds >= 0) out["seconds"] = d.seconds;
  if (!d.also.empty()) out["also"] = d.also;
  return out;
}

Json json_of(const PlannedOperation& operation) {
  Json out{{"name", operation.name},
           {"type", operation.type},
           {"device", operation.device},
           {"kernel", operation.kernel},
           {"note", operation.note},
           {"depth", operation.depth},
           {"fused", operation.fused},
           {"refusals", operation.refusals},
           {"outputs", operation.outputs},
           {"layout", operation.layout},
           {"estimatedSeconds", operation.estimated_seconds}};
  if (operation.region >= 0) out["region"] = operation.region;
  if (operation.type == "transfer") {
    out["bytes"] = operation.bytes;
    out["reason"] = operation.reason;
  }
  if (!operation.bids.empty()) out["units"] = Json::array();
  for (const UnitBid& b : operation.bids) out["units"].push_back(json_of(b));
  if (!operation.chosen_by.empty()) out["chosenBy"] = operation.chosen_by;
  if (!operation.shape.empty()) {
    out["shape"] = operation.shape;
    out["kernelByRule"] = operation.kernel_by_rule;
    out["candidates"] = Json::object();
    for (const KernelTime& t : operation.candidates) out["candidates"][t.kernel] = t.seconds;
  }
  if (operation.measured_seconds >= 0) {
    out["measuredSeconds"] = operation.measured_seconds;
    out["runs"] = operation.runs;
  }
  if (!operation.dispatches.empty()) out["dispatches"] = Json::array();
  for (const OperationDispatch& d : operation.dispatches) out["dispatches"].push_back(json_of(d));
  return out;
}

Json json_of(const ReportedOperation& o) {
  Json out = json_of(static_cast<const PlannedOperation&>(o));
  if (o.share) out["share"] = *o.share;
  if (o.contains) out["contains"] = true;
  if (o.bytes_moved > 0) {
    out["arithmetic"] = o.arithmetic;
    out["bytesMoved"] = o.bytes_moved;
  }
  if (o.roof)
    out["roof"] = {{"fraction", o.roof->fraction}, {"bound", o.roof->is_arithmetic ? "arithmetic" : "memory"}};
  return out;
}

Json json_of(const Energy& e) {
  Json out{{"parts", Json::array()}, {"missing", e.missing}};
  if (!e.parts.empty()) out["joules"] = e.joules();
  for (const EnergyPart& p : e.parts) out["parts"].push_back({{"name", p.name}, {"joules", p.joules}});
  return out;
}

Json json_of(const MeasuredSetting& s) {
  Json out{{"name", s.name},
           {"options",
            {{"computeUnits", name_of(s.compute_units)},
             {"threads", s.threads},
             {"precision", name_of(s.precision)},
             {"device", s.device},
             {"function", s.function},
             {"batch", s.batch},
             {"shapes", s.shapes}}}};
  if (s.failure) {
    out["error"] = s.failure->message;
    out["errorKind"] = name_of(s.failure->kind);
    out["wrongUse"] = s.failure->kind == ErrorKind::invalid_argument;
    return out;
  }
  out["first"] = s.first;
  out["steady"] = json_of(s.steady);
  out["load"] = json_of(s.load);
  const LoadTimes& t = s.load_times;
  out["load"]["parts"] = {
      {"open", t.open}, {"import", t.import}, {"passes", t.passes}, {"plan", t.plan}, {"pack", t.pack}};
  out["machine"] = json_of(s.machine);
  out["memory"] = json_of(s.memory);
  if (!s.energy.parts.empty() || !s.energy.missing.empty()) out["energy"] = json_of(s.energy);
  out["plan"] = json_of(s.plan);
  out["operations"] = Json::array();
  for (const ReportedOperation& o : s.operations) out["operations"].push_back(json_of(o));
  out["remarks"] = Json::array();
  for (const PassRemark& r : s.remarks) out["remarks"].push_back({{"pass", r.pass}, {"text", r.text}});
  return out;
}

}  // namespace

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string rendered(const Json& json) {
  std::string out;
  render(json, 0, out);
  return out + '\n';
}

std::string_view name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_argument: return "invalid_argument";
    case ErrorKind::malformed: return "malformed";
    case ErrorKind::unsupported: return "unsupported";
    case ErrorKind::not_found: return "not_found";
    case ErrorKind::io: return "io";
    case ErrorKind::out_of_budget: return "out_of_budget";
    case ErrorKind::data: return "data";
    case ErrorKind::internal: return "internal";
    case ErrorKind::device_lost: return "device_lost";
    case ErrorKind::cancelled: return "cancelled";
    case ErrorKind::deadline_exceeded: return "deadline_exceeded";
  }
  return "internal";
}

Json report_json(const Report& report) {
  Json out{{"format", "moka-report"},
           {"version", 1},
           {"moka", report.version},
           {"date", report.date},
           {"processors", report.processors},
           {"model",
            {{"name", report.model.name},
             {"path", report.model.path.string()},
             {"type", report.model.type},
             {"specificationVersion", report.model.specification_version},
             {"bytes", report.model.bytes}}}};
  if (const auto& c = report.compilation)
    out["compile"] = c->error.empty() ? Json{{"seconds", c->seconds}} : Json{{"error", c->error}};
  out["settings"] = Json::array();
  for (const MeasuredSetting& s : report.settings) out["settings"].push_back(json_of(s));
  return out;
}

}  // namespace reporting

std::string to_json(const Report& report) { return reporting::rendered(reporting::report_json(report)); }

std::string operation_json(const PlannedOperation& operation) {
  return reporting::dumped(reporting::json_of(operation));
}

std::string to_json(const ReportComparison& comparison) {
  using Verdict = ReportChange::Verdict;
  reporting::Json out{{"format", "moka-report-comparison"}, {"version", 1}, {"tolerance", comparison.tolerance}};
  out["changes"] = reporting::Json::array();
  out["remarks"] = comparison.remarks;
  for (const ReportChange& c : comparison.changes)
    out["changes"].push_back({{"setting", c.setting},
                              {"what", c.what},
                              {"unit", c.unit},
                              {"before", c.before},
                              {"after", c.after},
                              {"change", c.change},
                              {"noise", c.noise},
                              {"verdict", c.verdict == Verdict::same     ? "same"
                                          : c.verdict == Verdict::better ? "better"
                                                                         : "worse"}});
  out["regressions"] = comparison.regressions;
  return reporting::rendered(out);
}

}  // namespace moka
