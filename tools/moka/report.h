// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "moka/report.h"
#include "options.h"

/// `moka report`: measures settings of a report in processes of their own, and prints reports.
namespace moka::cli {

/// What the settings of a report have in common.
struct MeasuredModel {
  LoadOptions load;
  InputOptions input;
};

/// As measure_report for one setting, in a separate process, whose peak of memory is that of this setting alone. The
/// end of that process is a failure of the setting.
MeasuredSetting measured_apart(const MeasuredModel& model, const ReportSetting& setting);
/// Measures in a separate process how long compiling takes.
ReportCompilation compiled_apart(const std::string& path);

/// Tables for a terminal. `filter`: operations whose row holds this text; empty: all. `all`: every operation, in order.
std::string report_text(const Report& report, const std::string& filter, bool all);
std::string comparison_text(const ReportComparison& comparison);

}  // namespace moka::cli
