// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "json.h"
#include "options.h"

/// The performance report: what is measured (report_measure.cpp), and the forms that it has. A report is JSON of the
/// schema in docs/seeing.md; all forms are made of it, so that a saved one can be shown and compared.
namespace moka::cli {

/// How one column of the report loads and predicts.
struct ReportSetting {
  std::string name;  ///< what tells it from the others: "cpuOnly, 2 threads"; "default"
  LoadOptions load;
  InputOptions input;
  int64_t batch = 1;                ///< predictions that predict_batch gets at once
  std::vector<std::string> shapes;  ///< "input=1x3x224x224"
  double seconds = 2;               ///< of steady prediction
  Json machine = nullptr;           ///< what machine_apart gives; null: `measured` finds out itself
};

/// The rates of this machine's units for the threads of the setting: {"units", "from"}. Those in the file of rates, or
/// measured now, in a process of its own.
Json machine_apart(const ReportSetting& setting);

/// Predicts under a trace, which goes to `folder`, and returns how much of the time operations and conversions of
/// inputs and outputs take: {"predictions", "predictionSeconds", "operationsSeconds", "conversionsSeconds",
/// "fraction"}, or
/// {"error"}. The times are means, or those of the fastest prediction. All times come from the same predictions, so the
/// fraction is right on a loaded machine too.
Json coverage(const Model& model, const Features& inputs, const PredictionOptions& options, int predictions,
              const std::filesystem::path& folder);
/// Loads and predicts in this process: an object of "settings". Throws what loading and predicting throw.
Json measured(const ReportSetting& setting, const std::filesystem::path& folder);
/// As measured(), in a separate process, whose peak of memory is that of this setting alone. A failure becomes "error".
Json measured_apart(const ReportSetting& setting);
/// Measures in a separate process how long compiling takes: {"seconds"} or {"error"}.
Json compiled_apart(const std::string& path);

/// Throws IoError: no report, or one of a newer version.
Json read_report(const std::string& path);
/// Tables for a terminal. `filter`: operations whose row holds this text; empty: all. `all`: every operation, in order.
std::string report_text(const Json& report, const std::string& filter, bool all);
/// A page that needs nothing beside it.
std::string report_page(const Json& report);

/// The differences beyond noise: {"format", "version", "changes": [...], "regressions": N, "remarks": [...]}.
/// `tolerance`: a change of less than this fraction is none.
Json compared(const Json& before, const Json& after, double tolerance);
std::string comparison_text(const Json& comparison);

}  // namespace moka::cli
