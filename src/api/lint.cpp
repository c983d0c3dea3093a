// SPDX-License-Identifier: Apache-2.0
#include "moka/lint.h"

#include <algorithm>

#include "api/build.h"
#include "api/internal.h"
#include "boundary/path.h"
#include "compiler/class_name.h"
#include "editing/version.h"
#include "measuring/repair.h"
#include "measuring/values.h"

namespace moka::lint {
namespace {

using Rules = std::vector<const linting::Rule*>;

const linting::Rule* rule_named(const std::string& name) {
  if (const linting::Rule* rule = linting::find_rule(name)) return rule;
  std::string known;
  for (const linting::Rule& rule : linting::rules()) known += cat(known.empty() ? "" : ", ", rule.name);
  throw Exception(ErrorKind::invalid_argument, cat("rule '", name, "': expected one of ", known));
}

Rules chosen(const Options& options) {
  Rules out;
  for (const std::string& name : options.only) out.push_back(rule_named(name));
  if (options.only.empty())
    for (const linting::Rule& rule : linting::rules()) out.push_back(&rule);
  for (const std::string& name : options.ignore) std::erase(out, rule_named(name));
  return out;
}

void check_options(const Options& options, const linting::Subject& subject) {
  if (!options.target.empty() && editing::find_system(options.target) == nullptr) {
    std::string known;
    for (const editing::System& system : editing::systems()) known += cat(known.empty() ? "" : ", ", system.name);
    throw Exception(ErrorKind::invalid_argument, cat("target '", options.target, "': expected one of ", known));
  }
  for (const auto& [name, range] : options.ranges) {
    bool found = false;
    for (const auto& function : subject.description.functions)
      for (const auto& input : function.inputs)
        found |= input.name == name && input.kind == import::FeatureKind::multi_array;
    if (!found)
      throw Exception(ErrorKind::invalid_argument, cat("range of '", name, "': not an array input of the model"));
    if (!(range.first <= range.second))
      throw Exception(ErrorKind::invalid_argument, cat("range of '", name, "': expected a low and a high end"));
  }
  if (!options.function.empty() && subject.program != nullptr && subject.program->find(options.function) == nullptr)
    throw Exception(ErrorKind::invalid_argument,
                    cat("function '", options.function, "': the model has none of that name"));
}

/// Everything that is known of the model at `path` without running it. `source`: the same model as one that can be
/// changed, or nullptr.
linting::Subject subject_of(const format::ModelFile& file, const format::ModelSource* source, const std::string& path,
                            const Options& options, std::vector<std::string>& remarks) {
  linting::Subject out;
  std::vector<std::string> faults;
  out.description = import::outline_description(file, faults);
  out.outline = std::make_shared<import::Outline>(import::outline(file));
  out.model_name = compiler::model_name(path);
  out.target = options.target;
  out.as_float16 = options.as_float16;
  out.is_measured_with_given = !options.inputs.empty() || !options.ranges.empty();
  out.source = source;
  if (auto imported = import::import_model(file, {}); imported.ok()) {
    out.description = std::move(imported->description);
    out.program = std::make_shared<ir::Program>(std::move(imported->program));
  } else if (imported.error().code() == ErrorCode::unsupported) {
    // Either Moka lacks something, or the rule system-version reports the fault.
    remarks.push_back(cat("the operations were not looked at: ", imported.error().to_string()));
  } else {
    out.load_error = imported.error().to_string();
  }
  linting::complete(out, options.ranges);
  check_options(options, out);
  if (!options.function.empty())
    std::erase_if(out.functions, [&](const auto& view) { return view.function->name != options.function; });
  return out;
}

}  // namespace

std::string_view to_string(Level level) {
  switch (level) {
    case Level::note: return "note";
    case Level::warning: return "warning";
    case Level::error: return "error";
  }
  return "error";
}

std::vector<Rule> rules() {
  std::vector<Rule> out;
  for (const linting::Rule& rule : linting::rules())
    out.push_back({std::string(rule.name), static_cast<Level>(rule.level), std::string(rule.summary),
                   std::string(rule.remedy), rule.fix != nullptr});
  std::sort(out.begin(), out.end(), [](const Rule& a, const Rule& b) { return a.name < b.name; });
  return out;
}

bool Report::has(Level at_least) const {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& f) { return f.level >= at_least; });
}

Report check(const std::filesystem::path& model, const Options& options) {
  const Rules use = chosen(options);
  Report report;
  const std::string& path = boundary::native(model);
  const format::ModelFile file = api::unwrap(format::open_model(path, {.any_kind = true}));
  const auto source = format::ModelSource::read(path);
  linting::Subject subject = subject_of(file, source.ok() ? &*source : nullptr, path, options, report.remarks);
  const bool asks_neural_engine =
      std::any_of(use.begin(), use.end(), [](auto* rule) { return rule->asks_neural_engine; });
  if (options.predict && subject.program != nullptr)
    measuring::measure(path, options, asks_neural_engine, subject, report);
  for (linting::Finding& f : linting::run_rules(subject, use))
    report.findings.push_back({std::string(f.rule), static_cast<Level>(f.level), std::move(f.function),
                               std::move(f.place), std::move(f.reason), std::move(f.evidence), std::move(f.remedy)});
  return report;
}

Repair fix(const std::filesystem::path& model, const Options& options) {
  const Rules use = chosen(options);
  const std::string& path = boundary::native(model);
  Repair out{ModelSource::open(path), {}};
  format::ModelSource changed = out.model.impl().source();
  changed.specification = changed.specification.copy();
  std::vector<std::string> remarks;
  const auto current = [&] {
    auto file = format::open_source(changed.specification, changed.weights, {.any_kind = true});
    return subject_of(api::unwrap(std::move(file)), &changed, path, options, remarks);
  };
  linting::Subject subject = current();
  for (const linting::Rule* rule : use) {
    if (rule->fix == nullptr || linting::run_rules(subject, {&rule, 1}).empty()) continue;
    const std::vector<std::string> repairs = api::unwrap(rule->fix(subject, changed));
    for (const std::string& done : repairs) out.done.emplace_back(rule->name, done);
    if (!repairs.empty()) subject = current();
  }
  if (out.done.empty()) return out;
  out.model = ModelSource(std::make_shared<ModelSource::Impl>(std::move(changed)));
  if (options.predict) measuring::check_repair(path, out.model, options);
  return out;
}

}  // namespace moka::lint
