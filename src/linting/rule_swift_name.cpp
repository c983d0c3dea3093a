// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "compiler/class_name.h"
#include "linting/lint.h"

namespace moka::linting {
namespace {

/// Words that Swift reserves, and names that the class has which Xcode generates.
constexpr std::string_view kReserved[] = {
    "Any",          "Protocol",     "Self",        "Type",     "as",       "associatedtype",
    "break",        "case",         "catch",       "class",    "continue", "default",
    "defer",        "deinit",       "do",          "else",     "enum",     "extension",
    "fallthrough",  "false",        "fileprivate", "for",      "func",     "guard",
    "if",           "import",       "in",          "init",     "inout",    "internal",
    "is",           "let",          "nil",         "operator", "private",  "protocol",
    "public",       "repeat",       "rethrows",    "return",   "self",     "static",
    "struct",       "subscript",    "super",       "switch",   "throw",    "throws",
    "true",         "try",          "typealias",   "var",      "where",    "while",
    "featureNames", "featureValue", "provider"};

bool is_reserved(const std::string& name) {
  return std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved);
}

void check_side(const std::vector<import::FeatureDescription>& features, const char* side, const FunctionView* view,
                Report& report) {
  std::map<std::string, std::string> taken;
  for (const import::FeatureDescription& f : features) {
    const std::string place = cat(side, " '", f.name, "'"), identifier = compiler::class_name(f.name);
    const auto [other, is_new] = taken.try_emplace(identifier, f.name);
    if (!is_new)
      report.add(Level::warning, place, {cat("in Swift it has the same name as '", other->second, "'"), identifier, ""},
                 view);
    else if (identifier != f.name)
      report.add(Level::warning, place,
                 {"Swift does not allow it, so the generated class calls it otherwise", identifier, ""}, view);
    else if (is_reserved(f.name))
      report.add(Level::warning, place, {"Swift or the generated class reserves this name", "", ""}, view);
  }
}

void check_swift_name(const Subject& subject, Report& report) {
  for (const import::FunctionDescription& f : subject.description.functions) {
    const FunctionView* of = nullptr;
    for (const FunctionView& view : subject.functions)
      if (view.description == &f) of = &view;
    check_side(f.inputs, "input", of, report);
    check_side(f.outputs, "output", of, report);
    check_side(f.states, "state", of, report);
  }
  if (const std::string name = compiler::class_name(subject.model_name);
      !subject.model_name.empty() && (name != subject.model_name || is_reserved(name)))
    report.add(Level::note, cat("model '", subject.model_name, "'"),
               {"Swift does not allow the name of its file, so the generated class has another", name,
                "Rename the file, in letters, digits and underscores."});
}

}  // namespace

Rule rule_swift_name() {
  return {"swift-name", Level::warning,
          "Names of features, and of the model, that the class which Xcode generates cannot have",
          "Rename the feature: moka edit --rename OLD=NEW.", check_swift_name};
}

}  // namespace moka::linting
