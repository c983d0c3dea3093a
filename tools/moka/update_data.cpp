// SPDX-License-Identifier: Apache-2.0
#include "update_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "input_steps.h"
#include "io/csv.h"
#include "io/io_error.h"
#include "outputs.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

namespace fs = std::filesystem;

bool is_picture_file(const FileReference& file) {
  static const std::set<std::string> kinds{"png", "jpg", "jpeg", "webp"};
  return kinds.contains(file.extension);
}

/// Whether a file of a folder can be a value of the input.
bool is_file_of(const FeatureDescription& input, const FileReference& file) {
  static const std::set<std::string> arrays{"npy", "json", "txt"};
  if (input.type == FeatureType::image) return is_picture_file(file) || file.extension == "npy";
  if (input.type == FeatureType::string) return file.extension == "txt";
  return arrays.contains(file.extension) || is_sound(file.extension);
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (!it->path().filename().string().starts_with('.')) out.push_back(it->path());
  if (error) io::fail(folder.string(), "the folder cannot be read: ", error.message());
  std::sort(out.begin(), out.end());
  return out;
}

/// The length of the first axis of what an array file contains; nullopt: one number.
std::optional<size_t> rows_of(const FeatureValue& value) {
  if (const auto* texts = std::get_if<StringSequence>(&value)) return texts->size();
  const auto& shape = std::get<MultiArray>(value).shape();
  if (shape.empty()) return std::nullopt;
  return static_cast<size_t>(shape[0]);
}

/// Row `r` of an array whose first axis counts the rows, which shares its memory.
MultiArray row_of(const MultiArray& all, size_t r) {
  const auto bytes = static_cast<size_t>(all.strides()[0]) * size_of(all.type());
  MultiArray owner = all;
  return MultiArray(static_cast<std::byte*>(owner.data()) + r * bytes, all.type(),
                    {all.shape().begin() + 1, all.shape().end()}, {}, std::make_shared<MultiArray>(owner));
}

FeatureValue value_of_row(const FeatureDescription& input, const FeatureValue& column, size_t r) {
  const std::string where = fmt::format("input '{}'", input.name);
  if (const auto* texts = std::get_if<StringSequence>(&column)) {
    if (input.type == FeatureType::string) return (*texts)[r];
    throw UsageError(fmt::format("{}: expected {}, got text", where, input.formatted_type()));
  }
  const MultiArray row = row_of(std::get<MultiArray>(column), r);
  if (input.type == FeatureType::image) return image_of_array(input, row, where);
  if (input.type == FeatureType::int64 && row.type() == DataType::int64 && row.count() == 1)
    return row.as<int64_t>()[0];
  const MultiArray doubles = row.converted(DataType::float64);
  const std::vector<double> numbers(std::as_const(doubles).as<double>().begin(),
                                    std::as_const(doubles).as<double>().end());
  if (input.type == FeatureType::multi_array) return array_of_numbers(input, numbers, row.shape(), where);
  if (numbers.size() == 1 && input.type == FeatureType::float64) return numbers[0];
  if (numbers.size() == 1 && input.type == FeatureType::int64) {
    if (std::trunc(numbers[0]) == numbers[0] && std::fabs(numbers[0]) <= 9007199254740992.0)
      return static_cast<int64_t>(numbers[0]);
    throw UsageError(fmt::format("{}: expected a whole number, got {}", where, numbers[0]));
  }
  throw UsageError(fmt::format("{}: expected {}, got {}", where, input.formatted_type(),
                               plural(static_cast<int64_t>(numbers.size()), "number")));
}

template <class Act>
void at_place(const std::string& place, const Act& act) {
  try {
    act();
  } catch (const UsageError& e) {
    throw UsageError(fmt::format("{}: {}", place, e.what()));
  } catch (const io::IoError& e) {
    throw io::IoError(fmt::format("{}: {}", place, e.what()));
  }
}

}  // namespace

UpdateData::UpdateData(const ModelDescription& model, const std::string& path, InputOptions options)
    : options_(std::move(options)) {
  const UpdateDescription& update = *model.update;
  function_.inputs = update.training_inputs;
  if (!update.losses.empty()) target_ = update.losses[0].training_input;
  // The label of nearest neighbors: no input of the model. Some pipelines do not name their label.
  for (const FeatureDescription& input : function_.inputs)
    if (update.losses.empty() && find_feature(model.functions.at(0).inputs, input.name) == nullptr)
      target_ = input.name;
  const FeatureDescription* target = find_feature(function_.inputs, target_);
  const bool is_label =
      target != nullptr && (target->type == FeatureType::string || target->type == FeatureType::int64);
  if (is_label && !update.losses.empty()) labels_ = model.class_labels;
  reader_ = std::make_unique<ValueReader>(options_, nullptr, notes_);
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    read_folder(path);
  else if (parse_reference(path).extension == "npz")
    read_arrays(path);
  else
    read_steps_of(path);
}

Features UpdateData::read(size_t row) const {
  Features out = rows_[row].values;
  at_place(rows_[row].place, [&] {
    for (const auto& [input, path] : rows_[row].pictures) out[input->name] = reader_->read_cell(*input, "@" + path);
  });
  return out;
}

void UpdateData::set_file(Row& row, const FeatureDescription& input, const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored))
    throw UsageError(fmt::format("input '{}': there is no file {}", input.name, path));
  if (input.type != FeatureType::image) {
    row.values[input.name] = reader_->read_cell(input, "@" + path);
    return;
  }
  add_input(path);
  row.pictures.emplace_back(&input, path);
}

void UpdateData::set(Row& row, const FeatureDescription& input, const std::string& text, bool is_literal) {
  if (is_literal) {
    row.values[input.name] = value_from_text(input, text, fmt::format("input '{}'", input.name));
    return;
  }
  const FileReference file = parse_reference(text.starts_with('@') ? text.substr(1) : text);
  if (input.type == FeatureType::image && is_picture_file(file)) return set_file(row, input, file.path);
  row.values[input.name] = reader_->read_cell(input, text);
}

void UpdateData::add(Row row) {
  std::vector<std::string> missing;
  for (const FeatureDescription& input : function_.inputs) {
    const bool is_picture = std::any_of(row.pictures.begin(), row.pictures.end(),
                                        [&](const auto& p) { return p.first->name == input.name; });
    if (!input.optional && !is_picture && row.values.find(input.name) == nullptr) missing.push_back(input.name);
  }
  if (!missing.empty())
    throw UsageError(
        fmt::format("{}: no value for {}; expected {}", row.place, quoted_list(missing), expected_inputs(function_)));
  if (const FeatureValue* value = row.values.find(target_); value != nullptr && !labels_.empty()) {
    const auto* number = std::get_if<int64_t>(value);
    const auto* text = std::get_if<std::string>(value);
    const std::string label = number != nullptr ? std::to_string(*number) : text != nullptr ? *text : std::string();
    if (std::find(labels_.begin(), labels_.end(), label) == labels_.end())
      throw UsageError(fmt::format("{}: '{}': expected one of the classes {}, got '{}'", row.place, target_,
                                   quoted_list(labels_), label));
  }
  rows_.push_back(std::move(row));
}

const FeatureDescription& UpdateData::only_input() const {
  const FeatureDescription* only = nullptr;
  for (const FeatureDescription& input : function_.inputs) {
    if (input.name == target_ || input.optional) continue;
    if (only != nullptr)
      throw UsageError(fmt::format("--data: files of a folder give one input, a table several; the model takes {}",
                                   expected_inputs(function_)));
    only = &input;
  }
  if (only == nullptr)
    throw UsageError(fmt::format("--data: expected a table; the model takes {}", expected_inputs(function_)));
  return *only;
}

void UpdateData::read_folder(const std::string& path) {
  std::error_code ignored;
  const std::string labels = (fs::path(path) / "labels.csv").string();
  if (fs::is_regular_file(labels, ignored))
    read_labels(labels);
  else
    read_subfolders(path);
}

void UpdateData::read_subfolders(const std::string& path) {
  const FeatureDescription& input = only_input();
  const FeatureDescription* target = find_feature(function_.inputs, target_);
  if (target == nullptr || (target->type != FeatureType::string && target->type != FeatureType::int64))
    throw UsageError(
        fmt::format("--data {}: folders give labels, and the model takes {}; labels.csv or a table gives other values",
                    path, expected_inputs(function_)));
  std::vector<std::string> unused;
  for (const fs::path& folder : sorted_entries(path)) {
    if (!fs::is_directory(folder)) {
      unused.push_back(folder.filename().string());
      continue;
    }
    for (const fs::path& file : sorted_entries(folder)) {
      if (!is_file_of(input, parse_reference(file.string()))) {
        unused.push_back((folder.filename() / file.filename()).string());
        continue;
      }
      Row row{file.string(), {}, {}};
      at_place(row.place, [&] {
        row.values[target_] = value_from_text(*target, folder.filename().string(), fmt::format("'{}'", target_));
        set_file(row, input, file.string());
      });
      add(std::move(row));
    }
  }
  if (rows_.empty())
    throw UsageError(fmt::format("--data {}: expected a folder of files for each label, or labels.csv, got {}", path,
                                 unused.empty() ? "neither" : quoted_list(unused)));
  if (!unused.empty()) notes_.push_back(fmt::format("{}: not used: {}", path, quoted_list(unused, 3)));
}

void UpdateData::read_labels(const std::string& path) {
  const io::Csv csv = io::read_csv(path);
  const fs::path folder = fs::path(path).parent_path();
  std::vector<const FeatureDescription*> columns;
  for (const std::string& name : csv.header) {
    const FeatureDescription* input = find_feature(function_.inputs, name);
    if (input == nullptr && name == "label") input = find_feature(function_.inputs, target_);
    if (input == nullptr && name == "file") input = &only_input();
    if (input == nullptr) notes_.push_back(fmt::format("{}: not used: column '{}'", path, name));
    if (input != nullptr && std::find(columns.begin(), columns.end(), input) != columns.end())
      throw UsageError(fmt::format("{}: column '{}': '{}' is given twice", path, name, input->name));
    columns.push_back(input);
  }
  for (size_t r = 0; r < csv.rows.size(); r++) {
    Row row{fmt::format("{}: row {}", path, r + 1), {}, {}};
    at_place(row.place, [&] {
      for (size_t c = 0; c < columns.size(); c++) {
        const std::string& cell = csv.rows[r][c];
        if (columns[c] == nullptr || (cell.empty() && columns[c]->type != FeatureType::string)) continue;
        const bool names_file = columns[c]->type == FeatureType::image || csv.header[c] == "file";
        if (names_file)
          set_file(row, *columns[c], (folder / cell).string());
        else
          set(row, *columns[c], cell, false);
      }
    });
    add(std::move(row));
  }
  if (rows_.empty()) throw UsageError(fmt::format("{}: expected a header and at least one row, got no rows", path));
}

void UpdateData::read_steps_of(const std::string& path) {
  const auto steps = read_steps(function_, parse_reference(path), Unknown::listed);
  if (!steps)
    throw UsageError(fmt::format(
        "--data {}: expected a folder, a table (.csv), a list of objects (.json, .jsonl) or arrays (.npz) with {}",
        path, expected_inputs(function_)));
  const std::string_view what = steps->unit == "row" ? "column" : "key";
  std::vector<std::string> unused;
  for (const std::string& name : steps->names) {
    const auto count = std::count(steps->names.begin(), steps->names.end(), name);
    if (find_feature(function_.inputs, name) == nullptr)
      unused.push_back(name);
    else if (count > 1)
      throw UsageError(fmt::format("{}: column '{}': given twice", path, name));
  }
  if (unused.size() == steps->names.size())
    throw UsageError(fmt::format("{}: no {} is named like a training input; expected {}, got {}", path, what,
                                 expected_inputs(function_), quoted_list(steps->names)));
  if (!unused.empty())
    notes_.push_back(
        fmt::format("{}: not used: {}{} {}", path, what, unused.size() == 1 ? "" : "s", quoted_list(unused)));
  for (size_t r = 0; r < steps->rows.size(); r++) {
    Row row{fmt::format("{}: {} {}", path, steps->unit, steps->numbers[r]), {}, {}};
    at_place(row.place, [&] {
      for (const FeatureDescription& input : function_.inputs) {
        const auto cell = steps->rows[r].find(input.name);
        if (cell == steps->rows[r].end()) continue;
        const auto& [text, literal] = cell->second;
        if (text.empty() && !literal && (input.optional || input.type != FeatureType::string)) continue;
        set(row, input, text, literal);
      }
    });
    add(std::move(row));
  }
}

void UpdateData::read_arrays(const std::string& path) {
  const Features arrays = reading([&] { return read_npz(path); });
  std::vector<std::pair<const FeatureDescription*, const FeatureValue*>> columns;
  std::vector<std::string> names;
  size_t count = 0;
  for (const auto& [name, array] : arrays) {
    names.push_back(name);
    const FeatureDescription* input = find_feature(function_.inputs, name);
    if (input == nullptr) {
      notes_.push_back(fmt::format("{}: not used: '{}'", path, name));
      continue;
    }
    const std::optional<size_t> rows = rows_of(array);
    if (!rows) throw UsageError(fmt::format("{}: '{}': expected an axis of examples, got one number", path, name));
    if (!columns.empty() && *rows != count)
      throw UsageError(fmt::format("{}: expected as many rows in '{}' as in '{}', got {} and {}", path, name,
                                   columns[0].first->name, *rows, count));
    count = *rows;
    columns.emplace_back(input, &array);
  }
  if (columns.empty() || count == 0)
    throw UsageError(fmt::format("{}: expected arrays of examples with the names {}, got {}", path,
                                 expected_inputs(function_), names.empty() ? "none" : quoted_list(names)));
  for (size_t r = 0; r < count; r++) {
    Row row{fmt::format("{}: row {}", path, r + 1), {}, {}};
    at_place(row.place, [&] {
      for (const auto& [input, array] : columns) row.values[input->name] = value_of_row(*input, *array, r);
    });
    add(std::move(row));
  }
}

}  // namespace moka::cli
