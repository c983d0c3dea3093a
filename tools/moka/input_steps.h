// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "input.h"

namespace moka::cli {

/// The inputs of several predictions from one file: a table (.csv), a list of objects (.json), or one object per line
/// (.jsonl, .ndjson).
struct Steps {
  struct Cell {
    std::string text;
    bool literal = false;  ///< a literal value, neither @file nor random
  };
  std::string path;
  std::string unit;                ///< the name of an item in messages: "row", "step" or "line"
  std::vector<std::string> names;  ///< all inputs in the file, in its order
  std::vector<std::map<std::string, Cell>> rows;
  std::vector<int64_t> numbers;  ///< row numbers in the file, from 1
};

/// What becomes of the members of an object that no input is called like. A table always lists its columns.
enum class Unknown { refused, listed };

/// nullopt: the file holds the inputs of a single prediction. Throws UsageError and IoError.
std::optional<Steps> read_steps(const FunctionDescription& function, const FileReference& file,
                                Unknown unknown = Unknown::refused);

/// A JSON value as a cell. Text is literal only for inputs that take text; otherwise it may be @file or random.
Steps::Cell cell_of_json(const FeatureDescription& input, const std::string& dumped, bool is_text);

}  // namespace moka::cli
