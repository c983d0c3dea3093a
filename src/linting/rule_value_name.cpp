#include "linting/lint.h"

namespace moka::linting {
namespace {

/// Words of the text form that a compiled model has.
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

void check(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions) check_block(view, view.function->body(), report);
}

}  // namespace

Rule rule_value_name() {
  return {"value-name", Level::error,
          "Values whose names Core ML's compiler takes for words of its own, such as tensor",
          "Rename the value: moka edit --rename-value OLD=NEW.", check};
}

}  // namespace moka::linting
