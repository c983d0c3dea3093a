#include "linting/lint.h"

namespace moka::linting {
namespace {

void check_unused_input(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions)
    for (const auto& input : view.function->body().inputs())
      if (!input->is_used())
        report.add(Level::warning, cat(input->type.is_state() ? "state '" : "input '", input->name, "'"),
                   {"nothing in the model reads it", "", ""}, &view);
}

}  // namespace

Rule rule_unused_input() {
  return {"unused-input", Level::warning, "Inputs and states that nothing reads",
          "Convert without it: callers must pass it for nothing.", check_unused_input};
}

}  // namespace moka::linting
