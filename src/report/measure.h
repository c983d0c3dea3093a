// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>

#include "base/clock.h"
#include "base/stop.h"
#include "moka/report.h"

namespace moka::reporting {

/// What measuring one setting reports and asks on its way.
class Watch {
 public:
  Watch(const ReportOptions& options, std::string_view setting)
      : options_(options), setting_(setting), stop_(options.stop, options.deadline) {}
  /// Throws cancelled, deadline_exceeded, and what the caller's progress throws.
  void begin(std::string_view stage);
  void done(size_t count);
  /// The same without telling anyone.
  void check() const;

 private:
  void tell(size_t done);

  const ReportOptions& options_;
  const std::string_view setting_;
  const Stop stop_;
  std::string_view stage_;
  Clock::time_point told_;
};

/// Measures one setting, whose `machine` is known or becomes `machine`. Throws what loading and predicting throw.
void measure_setting(const ReportSetting& setting, const ModelLoader& load, const ReportOptions& options,
                     ReportModel& model, MeasuredSetting& out);

/// The rates of the machine's units for the threads of a setting. Measures them if the file does not have them.
ReportMachine machine_of(const ModelConfiguration& configuration, Watch& watch);

/// Predicts under a trace.
ReportCoverage coverage(const Model& model, const Features& inputs, const PredictionOptions& options, int predictions);

/// "x=1x3x224x224".
std::string shape_text(std::string_view name, const std::vector<int64_t>& shape);
std::string_view name_of(ComputeUnits units);
std::string_view name_of(Precision precision);

}  // namespace moka::reporting
