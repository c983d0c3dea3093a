// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>

#include "arguments.h"
#include "command.h"
#include "moka/recording.h"
#include "print.h"
#include "report_on.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

struct ReportArguments {
  MeasuredModel model;
  std::vector<std::string> units, threads, precisions, functions, batches, shapes;
  double seconds = 2, tolerance = 0.05;
  std::string before, page, saved, filter;
  bool all = false, json = false;
  std::vector<std::string> hosts;
  std::string ssh;
  bool only_hosts = false;
};

/// "x=1x3x8" as a name and sizes.
std::pair<std::string, std::vector<int64_t>> shape_of(const std::string& text) {
  const size_t at = text.find('=');
  std::vector<int64_t> shape;
  for (size_t from = at == std::string::npos ? text.size() + 1 : at + 1; from <= text.size();) {
    const size_t end = std::min(text.find('x', from), text.size());
    const auto size = parse_integer(std::string_view(text).substr(from, end - from));
    if (!size || *size < 1) throw UsageError(fmt::format("--shape {}: expected sizes such as 1x3x224x224", text));
    shape.push_back(*size);
    from = end + 1;
  }
  if (shape.empty()) throw UsageError(fmt::format("--shape {}: expected INPUT=1x3x224x224", text));
  return {text.substr(0, at), shape};
}

/// One setting for each combination of the options' values.
std::vector<ReportSetting> settings_of(const ReportArguments& options) {
  ReportSetting base;
  base.configuration = configuration(options.model.load);
  base.seed = options.model.input.seed;
  base.seconds = options.seconds;
  for (const std::string& shape : options.shapes) base.shapes.insert(shape_of(shape));
  ReportChoices choices;
  choices.functions = options.functions;
  LoadOptions named = options.model.load;
  for (const std::string& units : options.units) {
    named.compute_units = units;
    choices.compute_units.push_back(configuration(named).compute_units);
  }
  for (const std::string& precision : options.precisions) {
    named.precision = precision;
    choices.precisions.push_back(configuration(named).precision);
  }
  const auto counts = [](const char* option, const std::vector<std::string>& texts, auto& to) {
    for (const std::string& text : texts) {
      const auto n = parse_integer(text);
      if (!n || *n < 1 || *n > 1024)
        throw UsageError(fmt::format("{}: expected whole numbers from 1 to 1024, got '{}'", option, text));
      to.push_back(static_cast<typename std::remove_reference_t<decltype(to)>::value_type>(*n));
    }
  };
  counts("--threads", options.threads, choices.threads);
  counts("--batch", options.batches, choices.batches);
  return report_settings(base, choices);
}

/// What is measured on the hosts of --on. Rates in a file are those of this machine.
ReportOn far_report(const ReportArguments& options) {
  const InputOptions& input = options.model.input;
  ReportOn on{options.hosts, options.ssh, options.model.load.path, input.inputs, {}};
  const auto add = [&](const char* name, const std::string& value) {
    on.options.insert(on.options.end(), {name, value});
  };
  const auto lists = {std::pair{"--units", &options.units}, {"--threads", &options.threads},
                      {"--precision", &options.precisions}, {"--function", &options.functions},
                      {"--batch", &options.batches},        {"--shape", &options.shapes}};
  for (const auto& [name, values] : lists)
    for (const std::string& value : *values) add(name, value);
  if (!options.model.load.device.empty()) add("--device", options.model.load.device);
  if (options.model.load.rates == "off") add("--rates", "off");
  add("--seconds", fmt::format("{}", options.seconds));
  add("--fit", input.fit);
  if (!input.frame.empty()) add("--frame", input.frame);
  if (input.rate != 0) add("--rate", std::to_string(input.rate));
  if (input.pad) on.options.emplace_back("--pad");
  add("--seed", std::to_string(input.seed));
  return on;
}

/// Adds the settings of each host.
void measure_on_hosts(const ReportArguments& options, Report& report) {
  const ReportOn on = far_report(options);
  for (const std::string& host : options.hosts) {
    Report there = report_on(host, on);
    if (options.only_hosts && options.hosts.size() == 1 && there.processors != 0) {
      report.processors = there.processors;
      report.compilation = there.compilation;
    }
    std::move(there.settings.begin(), there.settings.end(), std::back_inserter(report.settings));
  }
}

/// Every setting in a process of its own. Settings with the same number of threads share the machine's rates.
Report measure(const ReportArguments& options) {
  const std::string& path = options.model.load.path;
  ReportOptions nothing;
  nothing.compile = false;
  Report report = measure_report(path, {}, nothing);
  const std::vector<ReportSetting> settings = settings_of(options);
  if (options.only_hosts) {
    measure_on_hosts(options, report);
    return report;
  }
  if (std::filesystem::path(path).extension() != ".mlmodelc") report.compilation = compiled_apart(path);
  std::map<int, ReportMachine> machines;
  for (ReportSetting s : settings) {
    const int threads = s.configuration.threads;
    if (const auto known = machines.find(threads); known != machines.end()) s.machine = known->second;
    const MeasuredSetting& made = report.settings.emplace_back(measured_apart(options.model, s));
    if (!made.failure) machines.emplace(threads, made.machine);
  }
  measure_on_hosts(options, report);
  return report;
}

/// A saved report, or a recording of a device.
Report read_saved(const std::string& path) {
  return is_device_recording(path) ? report_of(read_device_recording(path)) : read_report(path);
}

bool is_saved(const std::string& path) { return std::filesystem::path(path).extension() == ".json"; }

int report(ReportArguments options, const Outputs& outputs) {
  std::string& path = options.model.load.path;
  path = without_trailing_slashes(path);
  if (options.only_hosts && options.hosts.empty()) throw UsageError("--only-on: expected hosts by --on");
  if (!options.hosts.empty() && is_saved(path))
    throw UsageError(fmt::format("--on: {} is a saved report; expected a model", path));
  if (!options.hosts.empty()) check_hosts(far_report(options));
  const Report before = options.before.empty() ? Report() : read_saved(options.before);
  const Report made = is_saved(path) ? read_saved(path) : measure(options);
  if (!options.page.empty()) outputs.write(options.page, FileKind::page, report_page(made));
  if (!options.saved.empty()) outputs.write(options.saved, FileKind::report, to_json(made));
  if (!options.before.empty()) {
    const ReportComparison comparison = compare_reports(before, made, options.tolerance);
    print(options.json ? to_json(comparison) : comparison_text(comparison));
    if (comparison.regressions == 0) return kFine;
    note("report", fmt::format("{} against {}", plural(static_cast<int64_t>(comparison.regressions), "regression"),
                               options.before));
    return kNo;
  }
  print(options.json ? to_json(made) : report_text(made, options.filter, options.all));
  int failed = 0, wrong = 0;
  for (const MeasuredSetting& s : made.settings) {
    if (!s.failure) continue;
    failed++;
    wrong += s.failure->kind == ErrorKind::invalid_argument;
    note("report", s.name + ": " + s.failure->message);
  }
  return failed == 0 ? kFine : wrong == failed ? kWrongUse : kBadFile;
}

}  // namespace

Command add_report(Arguments parent) {
  auto options = std::make_shared<ReportArguments>();
  Arguments app =
      parent.add_subcommand("report", "The performance report: load, prediction, memory and every operation");
  app.add_option("MODEL", options->model.load.path,
                 "A model, or a report in JSON that was saved, or a recording of a device")
      .required()
      .option_text(" ");
  const auto list = [app](const char* names, std::vector<std::string>& to, const char* help, const char* text) {
    return app.add_option(names, to, help).delimiter(',').allow_extra_args(false).option_text(text);
  };
  list("--units,--compute-units", options->units, "all, cpuOnly, cpuAndGPU, cpuAndNeuralEngine; several: side by side",
       "UNITS,...")
      .check(one_of({"all", "cpuOnly", "cpuAndGPU", "cpuAndNeuralEngine"}));
  list("--threads", options->threads, "Threads of one prediction; several: side by side", "N,...");
  list("--precision", options->precisions, "at-least or exact, or both", "RULE,...")
      .check(one_of({"at-least", "exact"}));
  list("--function", options->functions, "Functions of a model that has several", "NAME,...");
  list("--batch", options->batches, "Predictions that are given at once", "N,...");
  app.add_option("--shape", options->shapes, "The size of an array input: x=1x3x224x224")
      .allow_extra_args(false)
      .option_text("NAME=SIZES");
  app.add_option("--device", options->model.load.device, "Only this device and 'reference'").option_text("NAME");
  app.add_option("--rates", options->model.load.rates, "Measured rates of the units (moka rates)").option_text("FILE");
  app.add_option("--seconds", options->seconds, "How long each setting predicts (default 2)")
      .check(number(0.01, 3600))
      .option_text("S");
  add_input_options(app, options->model.input);
  list("--on", options->hosts, "Also measure on these machines, by ssh; nothing is left there", "HOST,...");
  app.add_flag("--only-on", options->only_hosts, "With --on: do not measure on this machine");
  app.add_option("--ssh", options->ssh, "With --on: another program than ssh, with arguments: 'ssh -p 2222'")
      .option_text("COMMAND");
  const auto outputs = Outputs::of(app);
  outputs
      ->add_option("-o,--out", options->page, {{"", FileKind::page}},
                   "Write the report as one HTML page that needs no network")
      .option_text("FILE.html");
  outputs->add_option("--save", options->saved, {{"", FileKind::report}}, "Write the report as JSON, for --compare")
      .option_text("FILE.json");
  app.add_option("--compare", options->before,
                 "Say what differs from this saved report or recording beyond noise; exit 1 where worse")
      .option_text("OLD.json");
  app.add_option("--tolerance", options->tolerance, "With --compare: a smaller change is none (default 0.05)")
      .check(number(0, 10))
      .option_text("FRACTION");
  app.add_option("--filter", options->filter, "Operations whose row has this text: a type, kernel, device or reason")
      .option_text("TEXT");
  app.add_flag("--all", options->all, "Every operation, in order");
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer(
      "moka report --compare old.json new.json compares two saved reports.\n"
      "Example: moka report Model.mlpackage --threads 1,2 -o report.html");
  return {app, "moka report Model.mlpackage -o report.html", [options, outputs] { return report(*options, *outputs); },
          outputs};
}

}  // namespace moka::cli
