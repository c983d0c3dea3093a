// SPDX-License-Identifier: Apache-2.0
#include "moka/lint.h"

#include <fmt/format.h>

#include <memory>

#include "check/ranges.h"
#include "command.h"
#include "json.h"
#include "options.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

struct LintOptions {
  LoadOptions load;
  InputOptions input;
  lint::Options lint;
  std::vector<std::string> ranges;
  std::string fail_on = "error", out;
  bool rules = false, fix = false, no_run = false, json = false;
};

Json rule_json(const lint::Rule& rule) {
  return {{"rule", rule.name},
          {"level", lint::to_string(rule.level)},
          {"finds", rule.summary},
          {"remedy", rule.remedy},
          {"canFix", rule.can_fix}};
}

int list_rules(bool json) {
  if (json) {
    Json all = Json::array();
    for (const lint::Rule& rule : lint::rules()) all.push_back(rule_json(rule));
    print(rendered(Json{{"rules", all}}));
    return kFine;
  }
  io::Table table({{"rule"}, {"level"}, {"fix"}, {"finds", io::Shrink::wrap}});
  for (const lint::Rule& rule : lint::rules())
    table.add_row({rule.name, std::string(lint::to_string(rule.level)), rule.can_fix ? "yes" : "", rule.summary});
  print(table_text(table));
  return kFine;
}

Json finding_json(const lint::Finding& f) {
  Json out{{"rule", f.rule}, {"level", lint::to_string(f.level)}};
  if (!f.function.empty()) out["function"] = f.function;
  out["place"] = f.place;
  out["reason"] = f.reason;
  if (!f.evidence.empty()) out["evidence"] = f.evidence;
  out["remedy"] = f.remedy;
  return out;
}

std::string text_of(const lint::Finding& f) {
  std::string out = fmt::format("{}  {}{}  {}\n", bold(lint::to_string(f.level)),
                                f.function.empty() ? "" : f.function + ": ", f.place, dim(f.rule));
  out += paragraph(f.reason, 4);
  if (!f.evidence.empty()) out += paragraph(f.evidence, 4);
  return out + dim(paragraph(f.remedy, 4));
}

std::string summary(const lint::Report& report) {
  int64_t counts[3] = {};
  for (const lint::Finding& f : report.findings) ++counts[static_cast<int>(f.level)];
  std::string out = report.findings.empty() ? "nothing found"
                                            : fmt::format("{}, {}, {}", plural(counts[2], "error"),
                                                          plural(counts[1], "warning"), plural(counts[0], "note"));
  if (report.predictions > 0)
    out += fmt::format("; values measured in {}", plural(static_cast<int64_t>(report.predictions), "prediction"));
  if (report.sizes > 0)
    out += fmt::format(", {} of inputs tried", plural(static_cast<int64_t>(report.sizes), "other size"));
  return out + "\n";
}

void print_text(const lint::Report& report) {
  for (const lint::Finding& f : report.findings) print(text_of(f) + "\n");
  for (const std::string& remark : report.remarks) note("lint", remark);
  print(summary(report));
}

Json report_json(const lint::Report& report) {
  Json out{{"findings", Json::array()}};
  for (const lint::Finding& f : report.findings) out["findings"].push_back(finding_json(f));
  out["predictions"] = report.predictions;
  out["sizes"] = report.sizes;
  out["remarks"] = report.remarks;
  return out;
}

int run_lint(const LintOptions& options, const Outputs& outputs) {
  if (options.rules) return list_rules(options.json);
  if (options.load.path.empty()) throw UsageError("expected MODEL or --rules");
  if (options.fix == options.out.empty()) throw UsageError("expected --fix and -o together");
  use_keys(options.load.keys);
  lint::Options lint = options.lint;
  lint.function = options.load.function;
  lint.seed = options.input.seed;
  lint.predict = !options.no_run;
  for (const std::string& text : options.ranges) {
    const NumberRange range = parse_range(text);
    lint.ranges.insert({range.name, {range.low, range.high}});
  }
  std::vector<std::string> notes;
  if (!options.input.inputs.empty()) {
    ModelConfiguration c;
    c.function_name = options.load.function;
    Inputs inputs = read_inputs(Model::load(options.load.path, c), options.input);
    notes = std::move(inputs.notes);
    lint.inputs = std::move(inputs.rows);
  }
  for (const std::string& text : notes) note("lint", text);
  Json json{{"model", options.load.path}};
  std::string path = options.load.path;
  if (options.fix) {
    const lint::Repair repair = lint::fix(path, lint);
    repair.model.save(options.out, outputs.overwrite());
    path = options.out;
    json["fixed"] = Json::array();
    for (const auto& [rule, done] : repair.done) {
      json["fixed"].push_back({{"rule", rule}, {"done", done}});
      if (!options.json) print(fmt::format("{}  {}\n", done, dim(rule)));
    }
    json["written"] = options.out;
    if (!options.json && repair.done.empty()) print("nothing to repair\n");
    if (!options.json) print(fmt::format("wrote {}\n\n", options.out));
  }
  const lint::Report report = lint::check(path, lint);
  if (options.json) {
    json.update(report_json(report));
    print(rendered(json));
  } else {
    print_text(report);
  }
  const lint::Level least = options.fail_on == "note"      ? lint::Level::note
                            : options.fail_on == "warning" ? lint::Level::warning
                                                           : lint::Level::error;
  return report.has(least) ? kNo : kFine;
}

}  // namespace

Command add_lint(Arguments parent) {
  auto options = std::make_shared<LintOptions>();
  Arguments app = parent.add_subcommand("lint", "Find what will go wrong in a model before it ships");
  app.add_option("MODEL", options->load.path, "A model of any kind").option_text(" ");
  app.add_option("--function", options->load.function, "Only this function of an ML program").option_text("NAME");
  app.add_option("--only", options->lint.only, "Only this rule; may be repeated")
      .allow_extra_args(false)
      .option_text("RULE");
  app.add_option("--ignore", options->lint.ignore, "Not this rule; may be repeated")
      .allow_extra_args(false)
      .option_text("RULE");
  app.add_option("--target", options->lint.target, "The oldest system that must run it, such as ios16")
      .option_text("SYSTEM");
  app.add_flag("--float16", options->lint.as_float16, "Judge float32 values as if they were converted to float16");
  app.add_option("--range", options->ranges, "The numbers that an array input may have")
      .allow_extra_args(false)
      .option_text("NAME=LOW:HIGH");
  app.add_flag("--no-run", options->no_run, "Predict nothing: measure no values and try no sizes");
  add_input_options(app, options->input);
  add_key_options(app, options->load.keys);
  app.add_option("--fail-on", options->fail_on, "The lowest level that makes the exit code 1 (default error)")
      .check(one_of({"error", "warning", "note"}))
      .option_text("LEVEL");
  app.add_flag("--fix", options->fix, "Repair what is safe and write the model to OUT");
  const auto outputs = Outputs::of(app);
  outputs->add_option("-o,--out", options->out, {kSpecificationName, kPackageName}, "The repaired model")
      .option_text("OUT");
  app.add_flag("--rules", options->rules, "List the rules");
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer(
      "Without --input, values are measured with random inputs.\n"
      "Examples:\n"
      "  moka lint Net.mlpackage --input image=@cat.jpg\n"
      "  moka lint Net.mlpackage --range x=-1:1 --target ios16 --fail-on warning\n"
      "  moka lint Net.mlpackage --fix -o Fixed.mlpackage");
  return {app, "moka lint Net.mlpackage --input image=@cat.jpg",
          [options, outputs] { return run_lint(*options, *outputs); }, outputs};
}

}  // namespace moka::cli
