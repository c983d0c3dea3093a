// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "linting/lint.h"

namespace moka::linting {

double Measured::magnitude() const { return std::max(std::abs(least), std::abs(greatest)); }

void Measured::add(double value) {
  ++count;
  if (std::isnan(value)) {
    ++nan;
    return;
  }
  if (std::isinf(value)) {
    ++infinite;
    return;
  }
  const bool first = count - nan - infinite == 1;
  least = first ? value : std::min(least, value);
  greatest = first ? value : std::max(greatest, value);
  if (value == 0) return;
  ++nonzero;
  vanishing += std::abs(value) < kHalfNormal && static_cast<float>(half(value)) == 0;
}

bool Subject::is_network() const {
  if (description.type_name.starts_with("neuralNetwork")) return true;
  if (!description.type_name.starts_with("pipeline") || description.typed || outline == nullptr) return false;
  return std::any_of(outline->stages.begin(), outline->stages.end(), [](const import::Outline::Stage& stage) {
    return stage.outline.type.starts_with("neuralNetwork");
  });
}

bool Subject::in_half(const ir::Value& value) const {
  if (!is_float_tensor(value.type)) return false;
  if (value.type.dtype() == ir::DType::fp16) return true;
  return value.type.dtype() == ir::DType::fp32 && (as_float16 || is_network());
}

void Report::add(Level level, std::string place, Text text, const FunctionView* view) {
  Finding finding{
      rule_, level, {}, std::move(place), std::move(text.reason), std::move(text.evidence), std::move(text.remedy)};
  if (view != nullptr) finding.function = view->function->name;
  if (finding.remedy.empty()) finding.remedy = find_rule(rule_)->remedy;
  findings_.push_back(std::move(finding));
}

const Rule* find_rule(std::string_view name) {
  for (const Rule& rule : rules())
    if (rule.name == name) return &rule;
  return nullptr;
}

void complete(Subject& subject, const std::map<std::string, std::pair<double, double>>& ranges) {
  for (const auto& [name, range] : ranges) subject.ranged.insert(name);
  if (subject.program == nullptr) return;
  for (const auto& function : subject.program->functions) {
    FunctionView view;
    view.function = function.get();
    view.description = subject.description.function(function->name);
    if (view.description == nullptr && subject.description.functions.size() == 1)
      view.description = &subject.description.functions[0];
    view.bounds = std::make_shared<Bounds>(Bounds::of(*function, view.description, ranges));
    subject.functions.push_back(std::move(view));
  }
}

std::vector<Finding> run_rules(const Subject& subject, std::span<const Rule* const> rules) {
  std::vector<Finding> findings;
  for (const Rule* rule : rules) {
    Report report(rule->name, findings);
    rule->check(subject, report);
  }
  const bool single = subject.functions.size() < 2;
  for (Finding& finding : findings)
    if (single) finding.function.clear();
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.level > b.level; });
  return findings;
}

}  // namespace moka::linting
