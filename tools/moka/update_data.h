// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "input.h"

namespace moka::cli {

/// Examples for an update. Pictures are read when they are asked for, everything else before.
class UpdateData {
 public:
  /// `path`: a folder with a folder of files for each label, or with labels.csv; a table (.csv); a list of objects
  /// (.json), or one object per line (.jsonl, .ndjson); arrays whose first axis counts the examples (.npz). Throws
  /// UsageError, which names the row, and IoError.
  UpdateData(const ModelDescription& model, const std::string& path, InputOptions options);

  size_t count() const { return rows_.size(); }
  /// Throws UsageError and IoError, which name the row.
  Features read(size_t row) const;
  /// What is in memory of an example: all but pictures.
  const Features& known(size_t row) const { return rows_[row].values; }
  /// "nights.csv: row 12".
  const std::string& place(size_t row) const { return rows_[row].place; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Row {
    std::string place;
    Features values;
    std::vector<std::pair<const FeatureDescription*, std::string>> pictures;  ///< their paths
  };

  void read_folder(const std::string& path);
  void read_subfolders(const std::string& path);
  void read_labels(const std::string& path);
  void read_steps_of(const std::string& path);
  void read_arrays(const std::string& path);
  /// Sets an input of a row from a cell of a table.
  void set(Row& row, const FeatureDescription& input, const std::string& text, bool is_literal);
  void set_file(Row& row, const FeatureDescription& input, const std::string& path);
  void add(Row row);
  const FeatureDescription& only_input() const;

  FunctionDescription function_;     ///< has the training inputs as its inputs
  std::string target_;               ///< the training input that the loss compares with, or the label
  std::vector<std::string> labels_;  ///< that the target may have; empty: any
  InputOptions options_;
  mutable std::vector<std::string> notes_;
  std::unique_ptr<ValueReader> reader_;
  std::vector<Row> rows_;
};

}  // namespace moka::cli
