// SPDX-License-Identifier: Apache-2.0
#include "linting/lint.h"

namespace moka::linting {
namespace {

void check_unused_input(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions) {
    const std::set<const ir::Value*> read = needed(view.function->body());
    for (const auto& input : view.function->body().inputs())
      if (!read.contains(input.get()))
        report.add(Level::warning, cat(input->type.is_state() ? "state '" : "input '", input->name, "'"),
                   {input->is_used() ? "no output depends on it" : "nothing in the model reads it", "", ""}, &view);
  }
}

}  // namespace

Rule rule_unused_input() {
  return {"unused-input", Level::warning, "Inputs and states that nothing reads, or on which no output depends",
          "Convert without it: callers must pass it for nothing.", check_unused_input};
}

}  // namespace moka::linting
