// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "moka/capture.h"
#include "report/json.h"

namespace moka {

namespace reporting {

namespace {

Json json_of(const std::vector<std::pair<std::string, std::string>>& facts) {
  Json out = Json::array();
  for (const auto& [name, value] : facts) out.push_back({{"name", name}, {"value", value}});
  return out;
}

Json json_of(const ValueSummary& s) {
  return {{"count", s.count},     {"nanCount", s.nan_count}, {"infiniteCount", s.infinite_count},
          {"minimum", s.minimum}, {"maximum", s.maximum},    {"mean", s.mean}};
}

Json json_of(const CapturedBuffer& b) {
  Json out = Json::object();
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) out[name] = text;
  };
  if (b.binding >= 0) out["binding"] = b.binding;
  add("name", b.name);
  add("value", b.value);
  add("role", b.role);
  add("type", b.type);
  add("layout", b.layout);
  add("form", b.form);
  add("element", b.element);
  out["written"] = b.is_written;
  if (b.is_unused) out["unused"] = true;
  if (b.memory >= 0) out["memory"] = b.memory;
  out["offset"] = b.offset;
  out["bytes"] = b.bytes;
  if (b.summary) out["summary"] = json_of(*b.summary);
  add("file", b.file);
  return out;
}

Json json_of(const CapturedOperation& o) {
  Json out{{"name", o.name}, {"type", o.type}};
  if (!o.source_name.empty()) out["source"] = {{"name", o.source_name}, {"type", o.source_type}};
  if (!o.parameters.empty()) out["parameters"] = json_of(o.parameters);
  return out;
}

std::string hex_of(std::span<const std::byte> bytes) {
  std::string out;
  for (const std::byte b : bytes) {
    char text[3];
    std::snprintf(text, sizeof text, "%02x", static_cast<unsigned>(b));
    out += text;
  }
  return out;
}

Json json_of(const CapturedCommand& c) {
  Json out{{"kind", c.kind}, {"operations", Json::array()}, {"fused", c.fused}, {"device", c.device}};
  for (const CapturedOperation& o : c.operations) out["operations"].push_back(json_of(o));
  if (!c.unit.empty()) out["unit"] = c.unit;
  out["kernels"] = c.kernels;
  if (!c.note.empty()) out["note"] = c.note;
  if (!c.code.empty()) out["shader"] = c.code;
  if (c.region >= 0) out["region"] = c.region;
  if (c.kind == "dispatch" || c.kind == "copy" || c.kind == "function") out["barrier"] = c.waits;
  if (c.groups[0] > 0) out["workgroups"] = c.groups;
  if (c.group_size[0] > 0) out["workgroupSize"] = c.group_size;
  if (c.kind == "dispatch") {
    out["constants"] = json_of(c.constants);
    out["parameters"] = json_of(c.parameters);
    out["parameterBytes"] = hex_of(c.parameter_bytes);
  }
  if (!c.facts.empty()) out["facts"] = json_of(c.facts);
  if (c.threads > 0) out["threads"] = c.threads;
  if (c.bytes > 0) out["bytes"] = c.bytes;
  out["buffers"] = Json::array();
  for (const CapturedBuffer& b : c.buffers) out["buffers"].push_back(json_of(b));
  out["runs"] = c.runs;
  if (c.time)
    out["seconds"] = {{"count", c.time->count},
                      {"median", c.time->median},
                      {"minimum", c.time->minimum},
                      {"maximum", c.time->maximum}};
  if (c.start >= 0) {
    out["start"] = c.start;
    out["end"] = c.end;
  }
  return out;
}

Json json_of(const CapturedDevice& d) {
  Json out{{"name", d.name}, {"unit", d.unit}, {"description", d.description}};
  if (d.has_timestamps)
    out["timestamps"] = {{"queries", d.has_queries},
                         {"resolutionSeconds", d.resolution},
                         {"bits", d.bits},
                         {"overheadSeconds", d.overhead},
                         {"calibrated", d.is_calibrated}};
  return out;
}

}  // namespace

Json capture_json(const Capture& capture) {
  Json out{{"format", "moka-capture"},
           {"version", 1},
           {"moka", capture.version},
           {"date", capture.date},
           {"model", {{"path", capture.model}, {"function", capture.function}}},
           {"predictions", capture.predictions},
           {"predictionSeconds", capture.prediction},
           {"capturedSeconds", capture.captured},
           {"devices", Json::array()},
           {"memories", Json::array()},
           {"commands", Json::array()}};
  for (const CapturedDevice& d : capture.devices) out["devices"].push_back(json_of(d));
  for (const CapturedMemory& m : capture.memories) out["memories"].push_back({{"name", m.name}, {"bytes", m.bytes}});
  for (const CapturedCommand& c : capture.commands) out["commands"].push_back(json_of(c));
  return out;
}

}  // namespace reporting

std::string to_json(const Capture& capture) { return reporting::rendered(reporting::capture_json(capture)); }

}  // namespace moka
