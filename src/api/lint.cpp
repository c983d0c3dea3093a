// SPDX-License-Identifier: Apache-2.0
#include "moka/lint.h"

#include <algorithm>
#include <cmath>

#include "api/build.h"
#include "api/internal.h"
#include "api/lint.h"
#include "api/new_state.h"
#include "api/path.h"
#include "compiler/class_name.h"
#include "editing/version.h"
#include "moka/input_sizes.h"

namespace moka::lint {
namespace {

/// Tolerance for kernels that add in another order.
constexpr double kRounding = 1e-4;

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

/// The numbers of an output that are compared. Labels are left out because they follow from probabilities, and pixels
/// because they may round either way.
std::vector<double> numbers_of(const FeatureValue& value) {
  std::vector<double> out;
  if (const auto* array = std::get_if<MultiArray>(&value))
    for (int64_t i = 0; i < array->count(); ++i) out.push_back(array->at(i));
  if (const auto* number = std::get_if<double>(&value)) out.push_back(*number);
  if (const auto* dictionary = std::get_if<Dictionary>(&value)) {
    for (const auto& [key, number] : dictionary->strings) out.push_back(number);
    for (const auto& [key, number] : dictionary->ints) out.push_back(number);
  }
  return out;
}

/// Whether two values are the same. If not, `p` and `q` are the first numbers that differ.
bool are_same(const FeatureValue& a, const FeatureValue& b, double& p, double& q) {
  const std::vector<double> x = numbers_of(a), y = numbers_of(b);
  bool same = x.size() == y.size() && a.index() == b.index();
  for (size_t i = 0; same && i < x.size(); ++i) {
    p = x[i], q = y[i];
    same = p == q || (std::isnan(p) && std::isnan(q)) || std::abs(p - q) <= kRounding * std::max(1.0, std::abs(p));
  }
  return same;
}

/// Throws `internal` if the two models compute different results. Outputs that differ each time are not compared.
void compare(const std::string& path, const ModelSource& repaired, const Options& options) {
  ModelConfiguration c;
  c.compute_units = ComputeUnits::cpu_only;
  c.function_name = options.function;
  const Model before = Model::load(path, c), after = repaired.load(c);
  std::vector<Features> inputs = options.inputs;
  if (inputs.empty()) inputs.push_back(inputs_within(before.random_inputs(options.seed), options.ranges, options.seed));
  for (const Features& features : inputs) {
    const Features a = api::predict_once(before, features), b = api::predict_once(after, features);
    for (const auto& [name, value] : a) {
      double p = 0, q = 0;
      if (are_same(value, b.at(name), p, q)) continue;
      double one = 0, other = 0;
      if (are_same(value, api::predict_once(before, features).at(name), one, other))
        throw Exception(ErrorKind::internal,
                        cat("output '", name, "': the repaired model answers ", q, ", expected ", p));
    }
  }
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
  const std::string& path = api::native(model);
  const format::ModelFile file = api::unwrap(format::open_model(path, {.any_kind = true}));
  const auto source = format::ModelSource::read(path);
  linting::Subject subject = subject_of(file, source.ok() ? &*source : nullptr, path, options, report.remarks);
  const bool asks_neural_engine =
      std::any_of(use.begin(), use.end(), [](auto* rule) { return rule->asks_neural_engine; });
  if (options.predict && subject.program != nullptr) api::measure(path, options, asks_neural_engine, subject, report);
  for (linting::Finding& f : linting::run_rules(subject, use))
    report.findings.push_back({std::string(f.rule), static_cast<Level>(f.level), std::move(f.function),
                               std::move(f.place), std::move(f.reason), std::move(f.evidence), std::move(f.remedy)});
  return report;
}

Repair fix(const std::filesystem::path& model, const Options& options) {
  const Rules use = chosen(options);
  const std::string& path = api::native(model);
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
  if (options.predict) compare(path, out.model, options);
  return out;
}

}  // namespace moka::lint
