// SPDX-License-Identifier: Apache-2.0
#include "linting/lint.h"

namespace moka::linting {
namespace {

constexpr int kMostDimensions = 5;

void check_tensor_rank(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions)
    for_each_op(view, [&](const ir::Op& op) {
      for (size_t i = 0; i < op.output_count(); ++i) {
        const ir::Type& type = op.output(i)->type;
        if (!type.is_tensor() || !type.is_ranked() || type.rank() <= kMostDimensions) continue;
        report.add(Level::error, place_of(op),
                   {"its result has more than five dimensions, which Core ML refuses", cat("rank ", type.rank()), ""},
                   &view);
      }
    });
}

}  // namespace

Rule rule_tensor_rank() {
  return {"tensor-rank", Level::error, "Values with more than five dimensions, which Core ML refuses",
          "Merge dimensions that stay together before the reshape, and split them after it.", check_tensor_rank};
}

}  // namespace moka::linting
