// SPDX-License-Identifier: Apache-2.0
#include "linting/lint.h"

namespace moka::linting {
namespace {

void check_loading(const Subject& subject, Report& report) {
  if (!subject.load_error.empty()) report.add(Level::error, "model", {"it does not load", subject.load_error, ""});
}

}  // namespace

Rule rule_loading() {
  return {"loading", Level::error, "Models that cannot be loaded or predict nothing", "Convert the model again.",
          check_loading};
}

}  // namespace moka::linting
