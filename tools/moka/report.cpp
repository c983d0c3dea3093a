// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <fmt/chrono.h>

#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>

#include "arguments.h"
#include "command.h"
#include "io/io_error.h"
#include "io/table.h"
#include "model_facts.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

constexpr size_t kMostSettings = 24;

struct ReportOptions {
  LoadOptions load;
  InputOptions input;
  std::vector<std::string> units, threads, precisions, functions, batches, shapes;
  double seconds = 2, tolerance = 0.05;
  std::string before, page, saved, filter;
  bool all = false, json = false;
};

/// One setting for each combination of the options' values.
std::vector<ReportSetting> settings_of(const ReportOptions& options) {
  ReportSetting base;
  base.load = options.load;
  base.input = options.input;
  base.shapes = options.shapes;
  base.seconds = options.seconds;
  std::vector<ReportSetting> all{base};
  const auto each = [&all](const std::vector<std::string>& values, const auto& apply) {
    if (values.empty()) return;
    std::vector<ReportSetting> more;
    for (const ReportSetting& s : all)
      for (const std::string& v : values) {
        ReportSetting next = s;
        const std::string name = apply(next, v);
        if (values.size() > 1 || !name.empty()) next.name += (next.name.empty() ? "" : ", ") + name;
        more.push_back(std::move(next));
      }
    all = std::move(more);
  };
  const auto count = [](const char* option, const std::string& v) {
    const auto n = parse_integer(v);
    if (!n || *n < 1 || *n > 1024)
      throw UsageError(fmt::format("{}: expected whole numbers from 1 to 1024, got '{}'", option, v));
    return *n;
  };
  each(options.functions, [](ReportSetting& s, const std::string& v) { return s.load.function = v; });
  each(options.units, [](ReportSetting& s, const std::string& v) { return s.load.compute_units = v; });
  each(options.precisions, [](ReportSetting& s, const std::string& v) { return s.load.precision = v; });
  each(options.threads, [&](ReportSetting& s, const std::string& v) {
    s.load.threads = static_cast<int>(count("--threads", v));
    return plural(s.load.threads, "thread");
  });
  each(options.batches, [&](ReportSetting& s, const std::string& v) {
    s.batch = count("--batch", v);
    return fmt::format("batch of {}", s.batch);
  });
  if (all.size() > kMostSettings)
    throw UsageError(fmt::format("expected at most {} settings, got {}", kMostSettings, all.size()));
  for (ReportSetting& s : all)
    if (s.name.empty()) s.name = "default";
  return all;
}

Json measure(const ReportOptions& options) {
  const std::string& path = options.load.path;
  const ModelOutline outline = Model::outline(path);
  Json report{{"format", "moka-report"},
              {"version", 1},
              {"moka", MOKA_VERSION},
              {"date", fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)))},
              {"processors", std::thread::hardware_concurrency()},
              {"model",
               {{"name", std::filesystem::path(path).filename().string()},
                {"path", path},
                {"type", outline.description.type},
                {"specificationVersion", outline.description.specification_version},
                {"bytes", size_on_disk(path)}}}};
  if (std::filesystem::path(path).extension() != ".mlmodelc") report["compile"] = compiled_apart(path);
  report["settings"] = Json::array();
  // Settings with the same number of threads share the machine's peak rates.
  std::map<int, Json> machines;
  for (ReportSetting s : settings_of(options)) {
    const auto [machine, is_new] = machines.try_emplace(s.load.threads);
    if (is_new) machine->second = machine_apart(s);
    if (!machine->second.contains("error")) s.machine = machine->second;
    report["settings"].push_back(measured_apart(s));
  }
  return report;
}

bool is_saved(const std::string& path) { return std::filesystem::path(path).extension() == ".json"; }

int report(ReportOptions options, const Outputs& outputs) {
  options.load.path = without_trailing_slashes(options.load.path);
  const Json before = options.before.empty() ? Json() : read_report(options.before);
  const Json made = is_saved(options.load.path) ? read_report(options.load.path) : measure(options);
  if (!options.page.empty()) outputs.write(options.page, FileKind::page, report_page(made));
  if (!options.saved.empty()) outputs.write(options.saved, FileKind::report, rendered(made));
  if (!options.before.empty()) {
    const Json comparison = compared(before, made, options.tolerance);
    print(options.json ? rendered(comparison) : comparison_text(comparison));
    const auto regressions = comparison["regressions"].get<int64_t>();
    if (regressions == 0) return kFine;
    note("report", fmt::format("{} against {}", plural(regressions, "regression"), options.before));
    return kNo;
  }
  print(options.json ? rendered(made) : report_text(made, options.filter, options.all));
  int failed = 0, wrong = 0;
  for (const Json& s : made.at("settings")) {
    if (!s.contains("error")) continue;
    failed++;
    wrong += s.value("wrongUse", false);
    note("report", s["name"].get<std::string>() + ": " + s["error"].get<std::string>());
  }
  return failed == 0 ? kFine : wrong == failed ? kWrongUse : kBadFile;
}

}  // namespace

Command add_report(Arguments parent) {
  auto options = std::make_shared<ReportOptions>();
  Arguments app =
      parent.add_subcommand("report", "The performance report: load, prediction, memory and every operation");
  app.add_option("MODEL", options->load.path, "A model, or a report in JSON that was saved")
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
  app.add_option("--device", options->load.device, "Only this device and 'reference'").option_text("NAME");
  app.add_option("--rates", options->load.rates, "Measured rates of the units (moka rates)").option_text("FILE");
  app.add_option("--seconds", options->seconds, "How long each setting predicts (default 2)")
      .check(number(0.01, 3600))
      .option_text("S");
  add_input_options(app, options->input);
  const auto outputs = Outputs::of(app);
  outputs
      ->add_option("-o,--out", options->page, {{"", FileKind::page}},
                   "Write the report as one HTML page that needs no network")
      .option_text("FILE.html");
  outputs->add_option("--save", options->saved, {{"", FileKind::report}}, "Write the report as JSON, for --compare")
      .option_text("FILE.json");
  app.add_option("--compare", options->before,
                 "Say what differs from this saved report beyond noise; exit 1 where worse")
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
