// SPDX-License-Identifier: Apache-2.0

#include "recording/values.h"
#include "report/measure.h"

namespace moka {

namespace recording {

namespace {

Json answers_json(const RecordedAnswers& answers) {
  Json out = json_of(answers.values);
  for (const auto& [name, sample] : answers.samples) out[name] = json_of(sample);
  return out;
}

Json operation_json(const RecordedOperation& o) {
  Json out = Json::object();
  if (!o.model.empty()) out["model"] = o.model;
  if (!o.function.empty()) out["function"] = o.function;
  if (!o.name.empty()) out["name"] = o.name;
  out["type"] = o.type;
  out["outputs"] = o.outputs;
  if (o.depth > 0) out["depth"] = o.depth;
  if (!o.supported.empty()) out["supported"] = o.supported;
  if (!o.preferred.empty()) out["preferred"] = o.preferred;
  if (o.cost) out["cost"] = *o.cost;
  return out;
}

Json setting_json(const RecordedSetting& s) {
  Json out{{"computeUnits", reporting::name_of(s.units)}};
  if (!s.error.empty()) out["error"] = s.error;
  out["loadSeconds"] = s.load_seconds;
  out["firstSeconds"] = s.first_seconds;
  out["predictionSeconds"] = s.prediction_seconds;
  out["outputs"] = Json::array();
  for (const RecordedAnswers& a : s.answers) out["outputs"].push_back(answers_json(a));
  out["plan"] = Json::object();
  if (!s.plan_error.empty()) out["plan"]["error"] = s.plan_error;
  out["plan"]["operations"] = Json::array();
  for (const RecordedOperation& o : s.operations) out["plan"]["operations"].push_back(operation_json(o));
  return out;
}

}  // namespace
}  // namespace recording

std::string to_json(const DeviceRecording& r) {
  using recording::Json;
  Json out{{"format", "moka-recording"},
           {"version", 1},
           {"moka", r.moka},
           {"date", r.date},
           {"device",
            {{"system", r.device.system},
             {"version", r.device.version},
             {"machine", r.device.machine},
             {"chip", r.device.chip},
             {"processors", r.device.processors},
             {"memoryBytes", r.device.memory_bytes},
             {"thermalState", r.device.thermal_state},
             {"lowPowerMode", r.device.low_power_mode},
             {"simulated", r.device.simulator}}},
           {"model", {{"name", r.model}, {"function", r.function}}}};
  if (r.compile_seconds) out["compileSeconds"] = *r.compile_seconds;
  out["inputs"] = Json::array();
  for (const Features& f : r.inputs) out["inputs"].push_back(recording::json_of(f));
  out["settings"] = Json::array();
  for (const RecordedSetting& s : r.settings) out["settings"].push_back(recording::setting_json(s));
  return reporting::rendered(out);
}

}  // namespace moka
