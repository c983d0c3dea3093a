// SPDX-License-Identifier: Apache-2.0
#include "report/measure.h"

#include <cmath>
#include <new>
#include <set>
#include <thread>
#include <tuple>

#include "base/error.h"
#include "base/utc.h"
#include "moka/compiler.h"
#include "report/temporary_folder.h"

namespace moka {

namespace reporting {

namespace {

namespace fs = std::filesystem;

constexpr double kTellEvery = 0.05;  ///< seconds

/// Bytes of a file, or of all files below a folder; 0 when there is nothing to read.
uint64_t size_on_disk(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return fs::file_size(path, error);
  uint64_t total = 0;
  fs::recursive_directory_iterator files(path, error), end;
  for (; !error && files != end; files.increment(error)) {
    std::error_code ignored;
    if (files->is_regular_file(ignored)) total += files->file_size(ignored);
  }
  return total;
}

bool is_stop(ErrorKind kind) { return kind == ErrorKind::cancelled || kind == ErrorKind::deadline_exceeded; }

void check_settings(const std::vector<ReportSetting>& settings) {
  const auto bad = [](const ReportSetting& s, const auto&... what) {
    throw Exception(ErrorKind::invalid_argument, cat("setting '", s.name, "': ", what...));
  };
  std::set<std::string_view> names;
  for (const ReportSetting& s : settings) {
    if (!std::isfinite(s.seconds) || s.seconds <= 0) bad(s, "expected seconds above 0, got ", s.seconds);
    if (s.batch < 1 || s.batch > 1024) bad(s, "expected a batch of 1 to 1024, got ", s.batch);
    if (!names.insert(s.name).second) bad(s, "expected settings of different names, got two of this one");
  }
}

ReportCompilation compilation_of(const ReportModel& model, const ReportOptions& options) {
  if (model.type.empty()) return {0, "it is encrypted, and compiling would write it as plain files"};
  Watch(options, {}).begin("compile");
  const TemporaryFolder folder;
  ReportCompilation out;
  const auto start = Clock::now();
  try {
    compile_model(model.path.string(), (folder.path() / "report.mlmodelc").string());
    out.seconds = seconds_since(start);
  } catch (const Exception& e) {
    out.error = e.what();
  }
  return out;
}

/// Rates that a setting measured, for later settings that have the same units and threads.
using Machines = std::map<std::tuple<std::string, int, std::string>, ReportMachine>;

/// `is_left`: whether options.progress threw, which ends the report.
MeasuredSetting measured(const ReportSetting& given, const ModelLoader& load, const ReportOptions& options,
                         const bool& is_left, ReportModel& model, Machines& machines) {
  ReportSetting setting = given;
  const ModelConfiguration& c = setting.configuration;
  const std::tuple machine{c.rates, c.threads, c.device};
  if (const auto known = machines.find(machine); !setting.machine && known != machines.end())
    setting.machine = known->second;
  MeasuredSetting out;
  const auto describe = [&] {
    out.name = setting.name;
    out.compute_units = c.compute_units;
    out.precision = c.precision;
    out.threads = c.threads;
    out.device = c.device;
    out.function = c.function_name;
    out.batch = setting.batch;
    for (const auto& [name, shape] : setting.shapes) out.shapes.push_back(shape_text(name, shape));
  };
  describe();
  const auto fail = [&](ErrorKind kind, const std::string& why) {
    out = {};
    describe();
    out.failure = Failure{kind, why};
  };
  try {
    measure_setting(setting, load, options, model, out);
    machines.emplace(machine, out.machine);
  } catch (const Exception& e) {
    if (is_left || is_stop(e.kind())) throw;
    fail(e.kind(), e.what());
  } catch (const std::bad_alloc&) {
    if (is_left) throw;
    fail(ErrorKind::out_of_budget, "not enough memory");
  }
  return out;
}

Report report_on(const ReportModel& model) {
  return {MOKA_VERSION, utc_now(), std::thread::hardware_concurrency(), model, std::nullopt, {}};
}

void measure_all(const std::vector<ReportSetting>& settings, const ModelLoader& load, const ReportOptions& options,
                 Report& report) {
  Machines machines;
  bool is_left = false;
  ReportOptions watched = options;
  if (options.progress)
    watched.progress = [&](const ReportProgress& progress) {
      is_left = true;
      options.progress(progress);
      is_left = false;
    };
  for (const ReportSetting& s : settings)
    report.settings.push_back(measured(s, load, watched, is_left, report.model, machines));
}

/// What the file says without being loaded. Opened with the key of the first setting, an encrypted model says it when
/// it is loaded.
ReportModel model_at(const fs::path& path, const std::vector<ReportSetting>& settings) {
  ReportModel out;
  const fs::path plain = path.has_filename() || !path.has_parent_path() ? path : path.parent_path();
  out.path = plain;
  out.name = plain.filename().string();
  out.bytes = size_on_disk(plain);
  try {
    const ModelDescription description = Model::describe(plain.string());
    out.type = description.type;
    out.specification_version = description.specification_version;
  } catch (const Exception& e) {
    // A key of a setting may open what the keys of the environment do not.
    const bool has_key = !settings.empty() && settings[0].configuration.key != nullptr;
    if (!has_key || e.kind() == ErrorKind::not_found || e.kind() == ErrorKind::io) throw;
  }
  return out;
}

}  // namespace

void Watch::begin(std::string_view stage) {
  stage_ = stage;
  tell(0);
}

void Watch::done(size_t count) {
  check();
  if (options_.progress && seconds_since(told_) >= kTellEvery) tell(count);
}

void Watch::check() const {
  const Status status = stop_.check();
  if (status.ok()) return;
  throw Exception(status.error().code() == ErrorCode::cancelled ? ErrorKind::cancelled : ErrorKind::deadline_exceeded,
                  status.error().to_string());
}

void Watch::tell(size_t done) {
  check();
  if (!options_.progress) return;
  options_.progress({setting_, stage_, done});
  told_ = Clock::now();
}

}  // namespace reporting

Report measure_report(const std::filesystem::path& path, const std::vector<ReportSetting>& settings,
                      const ReportOptions& options) {
  reporting::check_settings(settings);
  Report report = reporting::report_on(reporting::model_at(path, settings));
  const std::filesystem::path& file = report.model.path;
  if (options.compile && file.extension() != ".mlmodelc")
    report.compilation = reporting::compilation_of(report.model, options);
  const auto load = [&](const ModelConfiguration& c) { return Model::load(file.string(), c); };
  reporting::measure_all(settings, load, options, report);
  return report;
}

Report measure_report(const ReportModel& model, const ModelLoader& load, const std::vector<ReportSetting>& settings,
                      const ReportOptions& options) {
  reporting::check_settings(settings);
  Report report = reporting::report_on(model);
  reporting::measure_all(settings, load, options, report);
  return report;
}

}  // namespace moka
