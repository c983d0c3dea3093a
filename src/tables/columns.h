// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "import/description.h"
#include "moka/feature.h"

/// Tables: features whose first axis counts rows.
namespace moka::tables {

/// The number of rows, which must be the same in all columns.
Result<int64_t> count_rows(const Features& columns);
/// Row `r` in the form that predict takes.
Features row_of(const import::FunctionDescription& function, const Features& columns, int64_t r);
/// The names of the columns of a classifier's probabilities.
std::vector<FeatureValue> labels_of(const import::ModelDescription& description);

/// Collects the values that one output has in all rows.
class Column {
 public:
  /// `labels` must outlive it.
  Column(std::string name, int64_t rows, const std::vector<FeatureValue>& labels)
      : name_(std::move(name)), rows_(rows), labels_(labels) {}

  const std::string& name() const { return name_; }
  /// Row 0 comes first and decides what the column holds. Error unsupported: the value does not fit it.
  Status set(int64_t r, const FeatureValue& value);
  FeatureValue take() { return std::move(column_); }

 private:
  Status start(const FeatureValue& value);
  Status set_scores(std::span<double> to, const Dictionary& d) const;

  std::string name_;
  int64_t rows_;
  const std::vector<FeatureValue>& labels_;
  FeatureValue column_;
  std::string first_;  ///< what the first row has
};

}  // namespace moka::tables
