#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "input.h"

namespace moka::cli {

/// The inputs of several predictions from one file: a table (.csv), a list of objects (.json) or an object a line
/// (.jsonl, .ndjson).
struct Steps {
  struct Cell {
    std::string text;
    bool literal = false;  ///< a value as it stands, not @file or random
  };
  std::string path;
  std::string unit;                ///< "row", "step" or "line": what messages count
  std::vector<std::string> names;  ///< of all inputs given, in the order of the file
  std::vector<std::map<std::string, Cell>> rows;
  std::vector<int64_t> numbers;  ///< of the rows in the file, from 1
};

/// nullopt: the file holds the inputs of one prediction. Throws UsageError and IoError.
std::optional<Steps> read_steps(const FunctionDescription& function, const FileReference& file);

/// A JSON value as a cell: text stands for itself only where the input takes text, else it may be @file or random.
Steps::Cell cell_of_json(const FeatureDescription& input, const std::string& dumped, bool is_text);

}  // namespace moka::cli
