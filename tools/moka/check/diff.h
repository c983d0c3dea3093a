// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "json.h"
#include "moka/comparison.h"
#include "moka/difference.h"

/// How `moka diff` prints.
namespace moka::cli {

/// {"type", "shape", "minimum", "maximum", "mean", "finite", "nan", "infinite"}.
Json to_json(const ArrayFacts& facts);

struct Diff {
  std::string a, b;
  ModelComparison structure;
  bool has_structure = true;  ///< false: one function of one model, whose structure is the same
  std::optional<ValueDiff> values;
  bool ignores_structure = false;
  bool same() const { return (ignores_structure || structure.same()) && (!values || values->same()); }
};

Json to_json(const Diff& diff);
std::string diff_text(const Diff& diff);

}  // namespace moka::cli
