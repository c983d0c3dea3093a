// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "editing/program.h"
#include "linting/lint.h"

namespace moka::linting {
namespace {

/// Reserved words of MIL text, the form of compiled models.
constexpr std::string_view kWords[] = {"tensor", "state", "func", "program", "dict", "list",  "tuple",   "string",
                                       "bool",   "fp16",  "fp32", "int32",   "true", "false", "BLOBFILE"};

bool is_word(std::string_view name) {
  for (std::string_view word : kWords)
    if (name == word) return true;
  return false;
}

void check_block(const FunctionView& view, const ir::Block& block, Report& report) {
  for (const auto& input : block.inputs())
    if (is_word(input->name))
      report.add(Level::error, cat("value '", input->name, "'"),
                 {"its name is a word of the text that Core ML compiles the model to", "", ""}, &view);
  for (const auto& op : block.ops()) {
    for (size_t i = 0; i < op->block_count(); ++i) check_block(view, *op->block(i), report);
    for (size_t i = 0; i < op->output_count(); ++i)
      if (is_word(op->output(i)->name))
        report.add(Level::error, cat("value '", op->output(i)->name, "'"),
                   {"its name is a word of the text that Core ML compiles the model to", place_of(*op), ""}, &view);
  }
}

void check_value_name(const Subject& subject, Report& report) {
  if (subject.is_network()) return;  // it is not compiled to text
  for (const FunctionView& view : subject.functions) check_block(view, view.function->body(), report);
}

/// Features keep their names, which applications use.
Result<std::vector<std::string>> fix_value_name(const Subject&, format::ModelSource& source) {
  std::vector<std::string> done;
  if (MOKA_TRY(editing::kind_of(source.specification)) != "mlProgram") return done;
  std::set<std::string> kept;
  for (const editing::Interface& interface : MOKA_TRY(editing::interfaces(source.specification)))
    for (const editing::Feature& feature : MOKA_TRY(editing::features(interface))) kept.insert(feature.name);
  for (const editing::ProgramFunction& function : MOKA_TRY(editing::program_functions(source.specification))) {
    std::set<std::string> names = MOKA_TRY(editing::names_in(function));
    editing::Names renamed;
    for (const std::string& name : std::set<std::string>(names))
      if (is_word(name) && !kept.contains(name)) renamed.emplace(name, editing::unique_name(name, names));
    MOKA_TRY(editing::rename_values(function, renamed));
    for (const auto& [from, to] : renamed) done.push_back(cat("renamed the value '", from, "' to '", to, "'"));
  }
  return done;
}

}  // namespace

Rule rule_value_name() {
  return {"value-name",
          Level::error,
          "Values whose names Core ML's compiler takes for words of its own, such as tensor",
          "Rename the value: moka lint --fix; a feature: moka edit --rename OLD=NEW.",
          check_value_name,
          fix_value_name};
}

}  // namespace moka::linting
