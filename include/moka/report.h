// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "moka/compute_plan.h"
#include "moka/energy.h"
#include "moka/model.h"
#include "moka/output.h"
#include "moka/rates.h"

/// The performance report: how long a model takes to load and to predict, which memory it takes, and where the time
/// goes (docs/seeing.md). It is measured in the calling process, and no other one is started.
///
///   const moka::Report report = moka::measure_report("Net.mlpackage");
///   for (const moka::ReportedOperation& operation : report.settings[0].operations)
///     std::printf("%s %g\n", operation.name.c_str(), operation.share.value_or(0));
namespace moka {

/// The rates of the machine's units, which the roofs of operations follow from.
struct ReportMachine {
  std::vector<UnitRates> units;  ///< without `launch`, `transfer` and `transfer_bytes` in a report that was read
  std::string from;              ///< the file that keeps them, or "for this report"
};

/// How one column of a report loads and predicts.
struct ReportSetting {
  std::string name = "default";  ///< tells it from the others
  /// `stop` and `deadline` are those of ReportOptions.
  ModelConfiguration configuration;
  int64_t batch = 1;  ///< above 1: predict_batch gets so many predictions at once, which share the state
  /// Array inputs that get random values of another shape, by name. They replace those of `inputs`.
  std::map<std::string, std::vector<int64_t>> shapes;
  Features inputs;  ///< of every prediction; empty: `make_inputs`
  /// Called on the calling thread when the model is loaded. Null: Model::random_inputs with `seed`.
  std::function<Features(const Model&)> make_inputs;
  uint64_t seed = 1;
  double seconds = 2;  ///< of steady prediction, above 0
  /// Absent: those in the file of ModelConfiguration::rates, or if it has none for this machine, measured in a second
  /// or two for each unit. Settings with the same threads, device and file share what was measured.
  std::optional<ReportMachine> machine;
};

/// The values that settings differ in. Empty: that of the base.
struct ReportChoices {
  std::vector<std::string> functions;
  std::vector<ComputeUnits> compute_units;
  std::vector<Precision> precisions;
  std::vector<int> threads;
  std::vector<int64_t> batches;
};
/// A setting for each combination, named by its values: "cpuOnly, 2 threads". Throws invalid_argument for more than 24.
MOKA_EXPORT std::vector<ReportSetting> report_settings(const ReportSetting& base, const ReportChoices& choices);

/// Times of something that was repeated, in seconds.
struct TimeStatistics {
  size_t count = 0;
  double mean = 0, median = 0, p90 = 0, p99 = 0, minimum = 0, maximum = 0;
  std::vector<double> samples;  ///< in the order of time; of more than 2000 every n-th
};

/// Bytes of memory.
struct ReportMemory {
  uint64_t weight_bytes = 0;    ///< in the file
  uint64_t packed_bytes = 0;    ///< weights packed for kernels
  uint64_t arena_bytes = 0;     ///< values of a prediction
  uint64_t unshared_bytes = 0;  ///< values of a prediction if they did not share memory
  /// The resident size of the process: before the setting, the highest while it was loaded, and the highest until its
  /// last steady prediction. Whatever else the process does at that time counts too. Memory that the process had freed
  /// and not returned to the system is used again without a change of this size. `resident_before` is 0 where it is not
  /// known.
  uint64_t resident_before = 0, peak_after_load_bytes = 0, peak_bytes = 0;
  /// False: the system does not reset the peak (/proc/self/clear_refs), so both are the highest since the process
  /// began.
  bool peak_is_of_setting = false;
};

/// How much of the time of traced predictions is spent in operations and in conversions of inputs and outputs. Times of
/// one prediction in seconds: means, or the shortest ones, whichever other work on the machine disturbed less.
struct ReportCoverage {
  std::string error;  ///< why nothing was traced, such as that the program is traced already; empty: it was
  int64_t predictions = 0;
  double prediction_seconds = 0, operations_seconds = 0, conversions_seconds = 0, fraction = 0;
};

/// The time of an operation beside the least that the machine's rates allow.
struct OperationRoof {
  double fraction = 0;         ///< least time / time
  bool is_arithmetic = false;  ///< true: arithmetic decides; false: bytes
};

/// A step of the plan with its time.
struct ReportedOperation : PlannedOperation {
  bool contains = false;        ///< it is control flow around the next ones, whose times are part of its own
  std::optional<double> share;  ///< of the time of all operations; absent if `contains`
  /// The least work of all its runs in a prediction: operations, of which a multiply-add is two, and bytes that are
  /// read and written. 0: not known.
  double arithmetic = 0, bytes_moved = 0;
  std::optional<OperationRoof> roof;
};

/// The plan of a setting and the times of its measured predictions, in seconds.
struct ReportPlan {
  double prediction_seconds = -1;  ///< median, without timing operations; -1: not measured
  double operations_seconds = 0;   ///< sum of the operations' medians
  int predictions = 0;
  size_t operations_in_source = 0, folded = 0;
  bool complete = true;  ///< as ComputePlan::complete
  std::optional<ReportCoverage> coverage;
};

/// One column of a report.
struct MeasuredSetting {
  std::string name;
  ComputeUnits compute_units = ComputeUnits::all;
  Precision precision = Precision::at_least;
  int threads = 0;
  std::string device, function;
  int64_t batch = 1;
  std::vector<std::string> shapes;  ///< "x=1x3x224x224"
  /// Why it cannot be measured. What follows is then empty.
  std::optional<Failure> failure;
  TimeStatistics load;
  LoadTimes load_times;   ///< the parts of the first load; in a report that was read, only these
  double first = 0;       ///< the first prediction, which also plans what depends on values, in seconds
  TimeStatistics steady;  ///< later predictions, or batches of them
  /// The machine's energy while it predicted, divided by the predictions: those of a batch count each. No parts: not
  /// measured, for the reasons in `missing`.
  Energy energy;
  ReportMemory memory;
  ReportMachine machine;
  ReportPlan plan;
  std::vector<ReportedOperation> operations;
  std::vector<PassRemark> remarks;
};

/// The model of a report.
struct ReportModel {
  std::string name;
  std::filesystem::path path;  ///< empty for a model in memory
  std::string type;            ///< as ModelDescription::type; empty: that of the first setting that loads
  int specification_version = 0;
  uint64_t bytes = 0;  ///< of its files
};

/// How long compiling takes.
struct ReportCompilation {
  double seconds = 0;
  std::string error;  ///< why it cannot be compiled; empty: it can
};

struct Report {
  std::string version;  ///< of Moka
  std::string date;     ///< UTC: "2026-11-24T12:00:00Z"
  unsigned processors = 0;
  ReportModel model;
  std::optional<ReportCompilation> compilation;  ///< absent: not measured
  std::vector<MeasuredSetting> settings;
};

/// How far measuring is.
struct ReportProgress {
  std::string_view setting;  ///< its name; empty while compiling
  /// "compile", "load", "predict" (steady predictions), "rates", "operations", "coverage".
  std::string_view stage;
  size_t done = 0;  ///< loads or predictions of this stage
};

struct ReportOptions {
  /// Also compile a model that is not compiled, into a temporary folder, which is removed.
  bool compile = true;
  /// Resets the process's peak of resident memory before each setting. False: the peak counts from the last reset, or
  /// the start of the process, on.
  bool reset_peak = true;
  /// Ends measuring with `cancelled` when a stop is requested, and with `deadline_exceeded` at that time. Looked at as
  /// Model::load and predict do, but not while compiling or measuring rates.
  std::stop_token stop;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  /// Called on the calling thread at the beginning of each stage, and within it at most every twentieth of a second.
  /// Optional. What it throws leaves measure_report.
  std::function<void(const ReportProgress&)> progress;
};

/// Measures each setting: loads three times, predicts once, then for `seconds`, then with every operation timed, and at
/// last a few times under a trace, which goes to a temporary folder. A setting that fails with an Exception has a
/// `failure`, and the others are measured. Throws not_found, io or malformed when there is no model; invalid_argument
/// (seconds, batches, two settings of one name); cancelled, deadline_exceeded.
///
/// Other work of the process and of the machine takes time from what is measured. A model of the same file that is
/// loaded elsewhere in the process shares its packed weights, which makes loading shorter.
MOKA_EXPORT Report measure_report(const std::filesystem::path& path,
                                  const std::vector<ReportSetting>& settings = {ReportSetting()},
                                  const ReportOptions& options = {});
/// Loads a model under a configuration, every time anew.
using ModelLoader = std::function<Model(const ModelConfiguration&)>;
/// The same for a model that the caller loads. Nothing is compiled.
MOKA_EXPORT Report measure_report(const ReportModel& model, const ModelLoader& load,
                                  const std::vector<ReportSetting>& settings = {ReportSetting()},
                                  const ReportOptions& options = {});

/// The report as JSON, in the schema of docs/seeing.md. Ends with a newline.
MOKA_EXPORT std::string to_json(const Report& report);
/// An object of a report's `operations`, without what only reports have.
MOKA_EXPORT std::string operation_json(const PlannedOperation& operation);
/// Reads what to_json or an earlier version of Moka wrote. Throws malformed, which says where something is wrong.
MOKA_EXPORT Report parse_report(std::string_view json);
/// Throws not_found, io, and malformed, which names the file.
MOKA_EXPORT Report read_report(const std::filesystem::path& path);
/// Throws invalid_argument (refused_output), io.
MOKA_EXPORT void write_report(const std::filesystem::path& path, const Report& report,
                              Overwrite overwrite = Overwrite::own_kind);
/// A page in HTML that needs nothing beside it, for write_file with FileKind::page.
MOKA_EXPORT std::string report_page(const Report& report);

/// A figure of both reports.
struct ReportChange {
  enum class Verdict : uint8_t { same, better, worse };
  std::string setting, what;
  std::string unit;  ///< "s" or "B"
  double before = 0, after = 0;
  double change = 0;  ///< after / before - 1
  double noise = 0;   ///< the change that the samples show while nothing changes
  Verdict verdict = Verdict::same;
};

struct ReportComparison {
  double tolerance = 0;
  std::vector<ReportChange> changes;
  /// Operations that run elsewhere, other machines, settings that only one report has or that fail.
  std::vector<std::string> remarks;
  size_t regressions = 0;  ///< figures that are worse, and settings that fail now
};

/// Compares the settings of the same names. A figure is better or worse if it changes by more than its noise and than
/// `tolerance`. The noise is half of the spread of the medians of eight stretches of the samples, of both reports.
/// Peaks of memory are compared above what was resident before, if both reports have that. Throws invalid_argument
/// (tolerance below 0).
MOKA_EXPORT ReportComparison compare_reports(const Report& before, const Report& after, double tolerance = 0.05);
/// The comparison as JSON, in the schema of docs/seeing.md. Ends with a newline.
MOKA_EXPORT std::string to_json(const ReportComparison& comparison);

}  // namespace moka
