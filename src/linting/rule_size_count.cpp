// SPDX-License-Identifier: Apache-2.0
#include "linting/lint.h"

namespace moka::linting {
namespace {

constexpr size_t kMostSizes = 128;

void check_size_count(const Subject& subject, Report& report) {
  for (const import::FunctionDescription& function : subject.description.functions)
    for (const import::FeatureDescription& f : function.inputs) {
      const size_t count = f.kind == import::FeatureKind::image ? f.image.enumerated.size() : f.array.enumerated.size();
      if (count > kMostSizes)
        report.add(Level::error, cat("input '", f.name, "'"),
                   {"Core ML takes at most 128 enumerated sizes", cat(count, " sizes"), "Use a range of sizes."});
      if (subject.description.type_name != "mlProgram" || f.kind != import::FeatureKind::multi_array) continue;
      for (size_t axis = 0; axis < f.array.ranges.size(); ++axis)
        if (f.array.ranges[axis].upper < 0)
          report.add(Level::note, cat("input '", f.name, "'"),
                     {"coremltools refuses ML programs without an upper bound of each size",
                      cat("dimension ", axis, " has none"),
                      "Set one: moka edit --shape, or upper_bound of coremltools' RangeDim."});
    }
}

}  // namespace

Rule rule_size_count() {
  return {"size-count", Level::error,
          "More than 128 enumerated sizes, and ranges of ML programs without an upper bound",
          "Use a range of sizes with an upper bound.", check_size_count};
}

}  // namespace moka::linting
