// SPDX-License-Identifier: Apache-2.0
#include "recording/values.h"
#include "report/measure.h"
#include "report/statistics.h"

namespace moka {

namespace {

ReportedOperation reported(const RecordedOperation& o) {
  ReportedOperation out;
  out.name = o.name.empty() && !o.outputs.empty() ? o.outputs[0] : o.name;
  out.type = o.type;
  out.device = o.preferred;
  out.depth = o.depth;
  out.share = o.cost;
  return out;
}

MeasuredSetting reported(const RecordedSetting& from, const DeviceRecording& recording) {
  MeasuredSetting to;
  to.name = reporting::name_of(from.units);
  to.compute_units = from.units;
  to.function = recording.function;
  UnitRates unit;
  unit.device = "Core ML";
  unit.description = recording.device_text();
  to.machine = {{unit}, "the recording"};
  if (from.load_seconds.empty() || from.prediction_seconds.empty()) {
    to.failure = Failure{ErrorKind::unsupported, from.error.empty() ? "no times were recorded" : from.error};
    return to;
  }
  to.load = reporting::statistics(from.load_seconds);
  to.first = from.first_seconds;
  to.steady = reporting::statistics(from.prediction_seconds);
  to.memory.peak_is_of_setting = true;
  to.plan.operations_in_source = from.operations.size();
  for (const RecordedOperation& o : from.operations) to.operations.push_back(reported(o));
  return to;
}

}  // namespace

Report report_of(const DeviceRecording& recording) {
  Report out;
  out.version = recording.moka;
  out.date = recording.date;
  out.processors = static_cast<unsigned>(recording.device.processors);
  out.model.name = recording.model;
  if (recording.compile_seconds) out.compilation = ReportCompilation{*recording.compile_seconds, {}};
  for (const RecordedSetting& s : recording.settings) out.settings.push_back(reported(s, recording));
  return out;
}

}  // namespace moka
