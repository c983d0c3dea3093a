// SPDX-License-Identifier: Apache-2.0
#include "linting/lint.h"

namespace moka::linting {
namespace {

void check_flexible_shape(const Subject& subject, Report& report) {
  for (const FailedSizes& failed : subject.failed_sizes) {
    const FunctionView* of = nullptr;
    for (const FunctionView& view : subject.functions)
      if (view.function->name == failed.function) of = &view;
    report.add(Level::error, cat("inputs ", failed.sizes),
               {"a prediction of these allowed sizes fails", failed.error, ""}, of);
  }
}

}  // namespace

Rule rule_flexible_shape() {
  return {"flexible-shape", Level::error,
          "Allowed input sizes with which a prediction fails; all enumerated ones and the corners of ranges are tried",
          "Allow only sizes that the model can have (moka edit --shape).", check_flexible_shape};
}

}  // namespace moka::linting
