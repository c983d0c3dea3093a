// SPDX-License-Identifier: Apache-2.0
#include "moka/report.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "asset.h"
#include "bindings.h"
#include "interpreter.h"
#include "limits.h"
#include "values.h"

namespace moka::python {

namespace {

/// A model that a report loads anew.
struct Subject {
  ReportModel model;
  ModelLoader load;  ///< null: the file at model.path
};

Subject subject_of_asset(std::string name, const nb::object& specification, const Dict& blobs) {
  const ModelAssetView asset = asset_of(specification, blobs);
  uint64_t bytes = asset.specification.size();
  for (const auto& [file, content] : asset.blobs) bytes += content.size();
  return {{std::move(name), "", "", 0, bytes}, [asset](const ModelConfiguration& c) { return Model::load(asset, c); }};
}

Subject subject_of_model(std::string name, std::string path, uint64_t bytes, const Model& model) {
  const ModelDescription& description = model.description();
  return {{std::move(name), std::move(path), description.type, description.specification_version, bytes},
          [model](const ModelConfiguration& c) { return model.configured(c); }};
}

/// Rows of one dict as inputs, with memory of their own.
Features inputs_of(nb::handle inputs, const Model& model) {
  const nb::gil_scoped_acquire locked;
  Borrowed borrowed;
  nb::list rows;
  rows.append(inputs);
  Features out = to_rows(nb::borrow<List>(rows), model, borrowed).at(0);
  copy_borrowed(out);
  return out;
}

/// Throws the first failure when no setting could be measured.
Report measure(const Subject& subject, std::vector<ReportSetting> settings, nb::object inputs, bool compile,
               const Limits& limits, nb::object progress) {
  ReportOptions options;
  options.compile = compile;
  limits.set(options);
  if (!inputs.is_none())
    for (ReportSetting& s : settings) s.make_inputs = [&](const Model& model) { return inputs_of(inputs, model); };
  options.progress = [&](const ReportProgress& p) {
    const nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(std::string(p.setting), std::string(p.stage), p.done);
  };
  Report report;
  {
    const Unlocked unlocked;
    report = subject.load == nullptr ? measure_report(subject.model.path, settings, options)
                                     : measure_report(subject.model, subject.load, settings, options);
  }
  const auto failed = [](const MeasuredSetting& s) { return s.failure.has_value(); };
  if (!report.settings.empty() && std::all_of(report.settings.begin(), report.settings.end(), failed))
    raise(report.settings[0].failure->kind, report.settings[0].failure->message);
  return report;
}

std::string exactness(Precision precision) { return precision == Precision::exact ? "exact" : "at_least"; }

void bind_figures(nb::module_& m) {
  nb::class_<TimeStatistics>(m, "TimeStatistics", "Times of something that was repeated, in seconds.")
      .def_ro("count", &TimeStatistics::count)
      .def_ro("mean", &TimeStatistics::mean)
      .def_ro("median", &TimeStatistics::median)
      .def_ro("p90", &TimeStatistics::p90)
      .def_ro("p99", &TimeStatistics::p99)
      .def_ro("minimum", &TimeStatistics::minimum)
      .def_ro("maximum", &TimeStatistics::maximum)
      .def_ro("samples", &TimeStatistics::samples, "In the order of time; of more than 2000 every n-th.");
  nb::class_<ReportMemory>(m, "Memory", "Bytes of memory.")
      .def_ro("weight_bytes", &ReportMemory::weight_bytes, "The size of the weights in the file.")
      .def_ro("packed_bytes", &ReportMemory::packed_bytes, "The size of weights packed for kernels.")
      .def_ro("arena_bytes", &ReportMemory::arena_bytes, "The size of the values of a prediction.")
      .def_ro("unshared_bytes", &ReportMemory::unshared_bytes, "The size of these values if they did not share memory.")
      .def_ro("resident_before", &ReportMemory::resident_before,
              "The resident size of the process before the setting; 0: not known.")
      .def_ro("peak_after_load_bytes", &ReportMemory::peak_after_load_bytes,
              "The highest resident size of the process until the model was loaded once.")
      .def_ro("peak_bytes", &ReportMemory::peak_bytes, "The same until the last steady prediction.")
      .def_ro("peak_is_of_setting", &ReportMemory::peak_is_of_setting,
              "False: the system does not reset the peak, which is then that since the process began.");
  nb::class_<ReportMachine>(m, "Machine", "The rates of the machine's units.")
      .def_ro("units", &ReportMachine::units)
      .def_prop_ro(
          "source", [](const ReportMachine& machine) { return machine.from; },
          "The file that keeps them, or 'for this report'.");
  nb::class_<ReportCoverage>(m, "Coverage", "How much of the time of traced predictions is in operations.")
      .def_ro("error", &ReportCoverage::error, "Why nothing was traced; '': it was.")
      .def_ro("predictions", &ReportCoverage::predictions)
      .def_ro("prediction_seconds", &ReportCoverage::prediction_seconds)
      .def_ro("operations_seconds", &ReportCoverage::operations_seconds)
      .def_ro("conversions_seconds", &ReportCoverage::conversions_seconds, "The time of converting inputs and outputs.")
      .def_ro("fraction", &ReportCoverage::fraction);
  nb::class_<ReportPlan>(m, "Plan", "Times of measured predictions in seconds, and the plan's size.")
      .def_ro("prediction_seconds", &ReportPlan::prediction_seconds, "The median.")
      .def_ro("operations_seconds", &ReportPlan::operations_seconds, "The sum of the operations' medians.")
      .def_ro("predictions", &ReportPlan::predictions)
      .def_ro("operations_in_source", &ReportPlan::operations_in_source)
      .def_ro("folded", &ReportPlan::folded, "Operations whose results were known before running.")
      .def_ro("complete", &ReportPlan::complete)
      .def_ro("coverage", &ReportPlan::coverage, nb::arg().none());
}

void bind_settings(nb::module_& m) {
  nb::class_<ReportedOperation, PlannedOperation>(m, "Operation", "A step of the plan with its time.")
      .def_ro("contains", &ReportedOperation::contains, "It is control flow around the next ones.")
      .def_ro("share", &ReportedOperation::share, nb::arg().none(), "The part of the time of all operations.")
      .def_ro("arithmetic", &ReportedOperation::arithmetic, "The least operations of a prediction; 0: not known.")
      .def_ro("bytes_moved", &ReportedOperation::bytes_moved, "The least bytes of a prediction; 0: not known.")
      .def_prop_ro(
          "roof", [](const ReportedOperation& o) { return o.roof ? std::optional(o.roof->fraction) : std::nullopt; },
          "The least time by the machine's rates, divided by the time.")
      .def_prop_ro(
          "bound",
          [](const ReportedOperation& o) {
            return std::string(!o.roof ? "" : o.roof->is_arithmetic ? "arithmetic" : "memory");
          },
          "What the roof follows from: 'arithmetic' or 'memory'; '': there is none.");
  nb::class_<MeasuredSetting>(m, "Setting", "One column of a report.")
      .def_ro("name", &MeasuredSetting::name)
      .def_ro("compute_units", &MeasuredSetting::compute_units)
      .def_prop_ro(
          "precision", [](const MeasuredSetting& s) { return exactness(s.precision); }, "'at_least' or 'exact'.")
      .def_ro("threads", &MeasuredSetting::threads)
      .def_ro("device", &MeasuredSetting::device)
      .def_ro("function", &MeasuredSetting::function)
      .def_ro("batch", &MeasuredSetting::batch, "Predictions that were given at once.")
      .def_ro("shapes", &MeasuredSetting::shapes, "'x=1x3x224x224'.")
      .def_prop_ro(
          "failure", [](const MeasuredSetting& s) { return s.failure ? s.failure->message : std::string(); },
          "Why it cannot be measured, and the rest is empty; '': it can.")
      .def_ro("load", &MeasuredSetting::load)
      .def_ro("load_times", &MeasuredSetting::load_times, "The parts of the first load.")
      .def_ro("first", &MeasuredSetting::first, "Seconds of the first prediction.")
      .def_ro("steady", &MeasuredSetting::steady, "Later predictions, or batches of them.")
      .def_ro("memory", &MeasuredSetting::memory)
      .def_ro("machine", &MeasuredSetting::machine)
      .def_ro("plan", &MeasuredSetting::plan)
      .def_ro("operations", &MeasuredSetting::operations)
      .def_ro("remarks", &MeasuredSetting::remarks, "What the passes did.")
      .def("__repr__", [](const MeasuredSetting& s) {
        return "<moka report setting '" + s.name + (s.failure ? "': " + s.failure->message : "'") + ">";
      });
}

void bind_comparison(nb::module_& m) {
  using Verdict = ReportChange::Verdict;
  nb::class_<ReportChange>(m, "Change", "A figure of both reports.")
      .def_ro("setting", &ReportChange::setting)
      .def_ro("what", &ReportChange::what)
      .def_ro("unit", &ReportChange::unit, "'s' or 'B'.")
      .def_ro("before", &ReportChange::before)
      .def_ro("after", &ReportChange::after)
      .def_ro("change", &ReportChange::change, "after / before - 1.")
      .def_ro("noise", &ReportChange::noise, "The change that the samples show while nothing changes.")
      .def_prop_ro(
          "verdict",
          [](const ReportChange& c) {
            return std::string(c.verdict == Verdict::same ? "same" : c.verdict == Verdict::better ? "better" : "worse");
          },
          "'same', 'better' or 'worse'.");
  nb::class_<ReportComparison> comparison(m, "Comparison", "The figures of two reports side by side.");
  bind_report(comparison, "comparison_text", "comparison_html");
  comparison.def_ro("tolerance", &ReportComparison::tolerance)
      .def_ro("changes", &ReportComparison::changes)
      .def_ro("remarks", &ReportComparison::remarks, "Other machines, operations that run elsewhere, failures.")
      .def_ro("regressions", &ReportComparison::regressions, "Figures that are worse, and settings that fail now.")
      .def("to_json", [](const ReportComparison& c) { return to_json(c); });
}

void bind_whole_report(nb::module_& m) {
  nb::class_<ReportModel>(m, "ModelFacts", "The model of a report.")
      .def_ro("name", &ReportModel::name)
      .def_prop_ro(
          "path", [](const ReportModel& model) { return model.path.string(); }, "'' for a model in memory.")
      .def_ro("type", &ReportModel::type)
      .def_ro("specification_version", &ReportModel::specification_version)
      .def_ro("bytes", &ReportModel::bytes);
  nb::class_<ReportCompilation>(m, "Compilation", "How long compiling takes.")
      .def_ro("seconds", &ReportCompilation::seconds)
      .def_ro("error", &ReportCompilation::error, "Why it cannot be compiled; '': it can.");
  nb::class_<Report> report(m, "Report", "A performance report (docs/seeing.md). moka.report measures one.");
  bind_report(report, "report_text", "report_html");
  report.def_ro("version", &Report::version, "The version of Moka that measured it.")
      .def_ro("date", &Report::date, "When, UTC.")
      .def_ro("processors", &Report::processors)
      .def_ro("model", &Report::model)
      .def_ro("compilation", &Report::compilation, nb::arg().none(), "None: not measured.")
      .def_ro("settings", &Report::settings)
      .def(
          "save",
          [](const Report& r, const std::filesystem::path& path, bool force) {
            write_report(path, r, overwrite(force));
          },
          nb::arg("path"), nb::kw_only(), nb::arg("force") = false, nb::call_guard<Unlocked>(),
          nb::sig("def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None"),
          "Writes the report as JSON. Replaces a saved report, and with force every file. InvalidArgumentError, "
          "IOError.")
      .def(
          "html",
          [](const Report& r, const std::filesystem::path& path, bool force) {
            const std::string page = report_page(r);
            write_file(path.string(), FileKind::page, std::as_bytes(std::span(page)), overwrite(force));
          },
          nb::arg("path"), nb::kw_only(), nb::arg("force") = false, nb::call_guard<Unlocked>(),
          nb::sig("def html(self, path: str | os.PathLike[str], *, force: bool = False) -> None"),
          "Writes the report as one page that needs no network. Replaces a page of Moka, and with force every file. "
          "InvalidArgumentError, IOError.")
      .def_prop_ro(
          "page", [](const Report& r) { return report_page(r); }, "The page as text.")
      .def_static("load", &read_report, nb::arg("path"), nb::call_guard<Unlocked>(),
                  nb::sig("def load(path: str | os.PathLike[str]) -> Report"),
                  "Reads what save or `moka report --save` wrote. NotFoundError, IOError, MalformedModelError.")
      .def(
          "compare",
          [](const Report& after, const Report& before, double tolerance) {
            return compare_reports(before, after, tolerance);
          },
          nb::arg("before"), nb::kw_only(), nb::arg("tolerance") = 0.05,
          "What differs from an earlier report by more than noise and than this fraction.")
      .def(
          "compare",
          [](const Report& after, const std::filesystem::path& before, double tolerance) {
            return compare_reports(read_report(before), after, tolerance);
          },
          nb::arg("before"), nb::kw_only(), nb::arg("tolerance") = 0.05,
          nb::sig("def compare(self, before: str | os.PathLike[str], *, tolerance: float = 0.05) -> Comparison"),
          "The same with a saved report.")
      .def("to_json", [](const Report& r) { return to_json(r); })
      .def("__getstate__", [](const Report& r) { return to_json(r); })
      .def("__setstate__", [](Report& r, const std::string& json) { new (&r) Report(parse_report(json)); });
}

}  // namespace

void bind_performance(nb::module_& m) {
  nb::module_ module = m.def_submodule("report", "What moka.report is made of.");
  bind_figures(module);
  bind_settings(module);
  bind_comparison(module);
  bind_whole_report(module);
  nb::class_<ReportSetting>(module, "Wanted", "How one column of a report is measured.")
      .def(nb::init<>())
      .def_rw("name", &ReportSetting::name)
      .def_rw("configuration", &ReportSetting::configuration)
      .def_rw("batch", &ReportSetting::batch)
      .def_rw("shapes", &ReportSetting::shapes)
      .def_rw("seed", &ReportSetting::seed)
      .def_rw("seconds", &ReportSetting::seconds);
  module.def(
      "combined",
      [](const ReportSetting& base, std::vector<std::string> functions, std::vector<ComputeUnits> units,
         const std::vector<bool>& exact, std::vector<int> threads, std::vector<int64_t> batches) {
        ReportChoices choices{std::move(functions), std::move(units), {}, std::move(threads), std::move(batches)};
        for (const bool e : exact) choices.precisions.push_back(e ? Precision::exact : Precision::at_least);
        return report_settings(base, choices);
      },
      nb::arg("base"), nb::arg("functions"), nb::arg("compute_units"), nb::arg("exact"), nb::arg("threads"),
      nb::arg("batches"), nb::call_guard<Call>(), "A setting for each combination.");
  nb::class_<Subject>(module, "Subject", "A model that a report loads anew.");
  module.def(
      "subject_of_path",
      [](const std::string& path) {
        return Subject{{"", path, "", 0, 0}, nullptr};
      },
      nb::arg("path"));
  module.def("subject_of_asset", &subject_of_asset, nb::arg("name"), nb::arg("specification"), nb::arg("blobs"),
             nb::call_guard<Call>());
  module.def("subject_of_model", &subject_of_model, nb::arg("name"), nb::arg("path"), nb::arg("bytes"),
             nb::arg("model"));
  module.def("measure", &measure, nb::arg("subject"), nb::arg("settings"), nb::arg("inputs").none(), nb::arg("compile"),
             nb::arg("limits"), nb::arg("progress").none(), nb::call_guard<Call>());
}

}  // namespace moka::python
