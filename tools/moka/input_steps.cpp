// SPDX-License-Identifier: Apache-2.0
#include "input_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/csv.h"
#include "io/file.h"
#include "io/io_error.h"
#include "json_text.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

using ParsedJson = nlohmann::json;

bool names_an_input(const FunctionDescription& function, const ParsedJson& object) {
  return object.is_object() && std::any_of(function.inputs.begin(), function.inputs.end(),
                                           [&](const auto& input) { return object.contains(input.name); });
}

void add_name(Steps& steps, const std::string& name) {
  if (std::find(steps.names.begin(), steps.names.end(), name) == steps.names.end()) steps.names.push_back(name);
}

void add_object(Steps& steps, const FunctionDescription& function, const ParsedJson& object, int64_t number,
                Unknown unknown) {
  auto& row = steps.rows.emplace_back();
  steps.numbers.push_back(number);
  for (const auto& [name, value] : object.items()) {
    const FeatureDescription* input = find_feature(function.inputs, name);
    if (!input && unknown == Unknown::listed) {
      add_name(steps, name);
      continue;
    }
    if (!input)
      throw UsageError(fmt::format("{}: {} {}: the model has no input '{}'; it takes {}", steps.path, steps.unit,
                                   number, name, expected_inputs(function)));
    if (value.is_null()) continue;
    add_name(steps, name);
    row[name] = cell_of_json(*input, value.is_string() ? value.get<std::string>() : value.dump(), value.is_string());
  }
}

Steps from_table(const std::string& path) {
  const io::Csv csv = io::read_csv(path);
  if (csv.rows.empty()) throw io::IoError(path + ": expected a header and at least one row, got no rows");
  Steps steps{path, "row", csv.header, {}, {}};
  for (size_t r = 0; r < csv.rows.size(); ++r) {
    auto& row = steps.rows.emplace_back();
    steps.numbers.push_back(static_cast<int64_t>(r) + 1);
    for (size_t c = 0; c < csv.header.size(); ++c) row.emplace(csv.header[c], Steps::Cell{csv.rows[r][c]});
  }
  return steps;
}

/// nullopt: not a list of objects. A model with a single input may take the list, or its items, as the value itself.
std::optional<Steps> from_list(const FunctionDescription& function, const std::string& path, Unknown unknown) {
  const bool one = function.inputs.size() == 1;
  const std::string text = io::read_text(path);
  if (one && !is_json(text)) return std::nullopt;  // a flat list of numbers
  const ParsedJson json = parse_json(text, path);
  if (!json.is_array()) return std::nullopt;
  if (one && !(json.size() > 0 && std::all_of(json.begin(), json.end(),
                                              [&](const ParsedJson& item) { return names_an_input(function, item); })))
    return std::nullopt;
  if (json.empty())
    throw UsageError(fmt::format("{}: expected an object of inputs for each prediction, got an empty list", path));
  Steps steps{path, "step", {}, {}, {}};
  for (const ParsedJson& item : json) {
    const int64_t number = static_cast<int64_t>(steps.rows.size()) + 1;
    if (!item.is_object())
      throw UsageError(fmt::format("{}: step {}: expected an object of inputs by name, got '{}'", path, number,
                                   shortened(item.dump(), 60)));
    add_object(steps, function, item, number, unknown);
  }
  return steps;
}

Steps from_lines(const FunctionDescription& function, const std::string& path, Unknown unknown) {
  const std::string text = io::read_text(path);
  Steps steps{path, "line", {}, {}, {}};
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trimmed(std::string_view(text).substr(at, end - at));
    at = end + 1;
    ++number;
    if (line.empty()) continue;
    ParsedJson json = parse_json(line, fmt::format("{}: line {}", path, number));
    if (function.inputs.size() == 1 && !names_an_input(function, json))
      json = ParsedJson{{function.inputs[0].name, json}};
    if (!json.is_object())
      throw UsageError(fmt::format("{}: line {}: expected an object of inputs by name, got '{}'", path, number,
                                   shortened(line, 60)));
    add_object(steps, function, json, number, unknown);
  }
  if (steps.rows.empty()) throw io::IoError(path + ": expected an object on each line, got no lines");
  return steps;
}

}  // namespace

Steps::Cell cell_of_json(const FeatureDescription& input, const std::string& dumped, bool is_text) {
  return {dumped, !is_text || input.type == FeatureType::string};
}

std::optional<Steps> read_steps(const FunctionDescription& function, const FileReference& file, Unknown unknown) {
  if (file.extension == "csv") return from_table(file.path);
  if (file.extension == "jsonl" || file.extension == "ndjson") return from_lines(function, file.path, unknown);
  if (file.extension == "json") return from_list(function, file.path, unknown);
  return std::nullopt;
}

}  // namespace moka::cli
