// SPDX-License-Identifier: Apache-2.0
#include "rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "clock.h"

namespace moka::cli {
namespace {

constexpr double kBlockSeconds = 0.1;
constexpr size_t kFirstBlock = 64;

bool same_form(const FeatureValue& a, const FeatureValue& b) {
  if (a.index() != b.index()) return false;
  const auto *x = std::get_if<MultiArray>(&a), *y = std::get_if<MultiArray>(&b);
  return x == nullptr || (x->type() == y->type() && x->shape() == y->shape() && y->is_contiguous());
}

/// One input of all rows; nullopt for values that have no column, or differ in form.
std::optional<FeatureValue> column_of(const std::string& name, std::span<const Features> rows) {
  const auto count = static_cast<int64_t>(rows.size());
  const FeatureValue& first = rows[0].at(name);
  for (const Features& row : rows)
    if (const FeatureValue* value = row.find(name); value == nullptr || !same_form(first, *value)) return std::nullopt;
  const auto each = [&]<class T>(auto& to) {
    for (size_t r = 0; r < rows.size(); ++r) to[r] = std::get<T>(rows[r].at(name));
  };
  if (std::holds_alternative<std::string>(first)) {
    StringSequence column(rows.size());
    each.operator()<std::string>(column);
    return column;
  }
  if (std::holds_alternative<double>(first)) {
    MultiArray column(DataType::float64, {count});
    auto to = column.as<double>();
    each.operator()<double>(to);
    return column;
  }
  if (std::holds_alternative<int64_t>(first)) {
    MultiArray column(DataType::int64, {count});
    auto to = column.as<int64_t>();
    each.operator()<int64_t>(to);
    return column;
  }
  const auto* array = std::get_if<MultiArray>(&first);
  if (array == nullptr || !array->is_contiguous()) return std::nullopt;
  std::vector<int64_t> shape{count};
  shape.insert(shape.end(), array->shape().begin(), array->shape().end());
  MultiArray column(array->type(), std::move(shape));
  const size_t bytes = static_cast<size_t>(array->count()) * size_of(array->type());
  for (size_t r = 0; r < rows.size(); ++r)
    std::memcpy(static_cast<std::byte*>(column.data()) + r * bytes, std::get<MultiArray>(rows[r].at(name)).data(),
                bytes);
  return column;
}

std::optional<Features> columns_of(std::span<const Features> rows) {
  Features columns;
  for (const auto& [name, value] : rows[0]) {
    auto column = column_of(name, rows);
    if (!column) return std::nullopt;
    columns[name] = std::move(*column);
  }
  return columns;
}

/// The probabilities in row `r` of a matrix whose columns follow the class labels.
Dictionary scores(const MultiArray& column, size_t r, const ModelDescription& description) {
  Dictionary out;
  out.string_keys = !description.int64_labels;
  const std::vector<std::string>& labels = description.class_labels;
  for (size_t i = 0; i < labels.size(); ++i) {
    const double value = column.at(static_cast<int64_t>(r * labels.size() + i));
    if (out.string_keys)
      out.strings[labels[i]] = value;
    else
      out.ints[std::stoll(labels[i])] = value;
  }
  return out;
}

FeatureValue row_of(const FeatureDescription& output, const FeatureValue& column, size_t r, const Model& model) {
  if (const auto* s = std::get_if<StringSequence>(&column)) return (*s)[r];
  if (const auto* s = std::get_if<Int64Sequence>(&column)) return (*s)[r];
  const auto& all = std::get<MultiArray>(column);
  const auto at = static_cast<int64_t>(r);
  switch (output.type) {
    case FeatureType::int64:
      return all.type() == DataType::int64 ? all.as<int64_t>()[r] : static_cast<int64_t>(all.at(at));
    case FeatureType::float64: return all.at(at);
    case FeatureType::dictionary: return scores(all, r, model.description());
    default: break;
  }
  MultiArray row(all.type(), {all.shape().begin() + 1, all.shape().end()});
  const size_t bytes = static_cast<size_t>(row.count()) * size_of(row.type());
  std::memcpy(row.data(), static_cast<const std::byte*>(all.data()) + r * bytes, bytes);
  return row;
}

/// Whether every output has columns in a table.
bool gives_columns(const Model& model) {
  const auto& outputs = model.function().outputs;
  return std::all_of(outputs.begin(), outputs.end(), [&](const FeatureDescription& output) {
    switch (output.type) {
      case FeatureType::image:
      case FeatureType::sequence:
      case FeatureType::state: return false;
      case FeatureType::dictionary: return !model.description().class_labels.empty();
      default: return true;
    }
  });
}

std::vector<Features> predict_block(const Model& model, std::span<const Features> rows) {
  if (rows.size() == 1) return {model.predict(rows[0])};
  const auto columns = gives_columns(model) ? columns_of(rows) : std::nullopt;
  if (!columns) return model.predict_batch(rows);
  const Features table = model.predict_rows(*columns);
  std::vector<Features> out(rows.size());
  for (const FeatureDescription& output : model.function().outputs)
    for (size_t r = 0; r < rows.size(); ++r) out[r][output.name] = row_of(output, table.at(output.name), r, model);
  return out;
}

}  // namespace

std::vector<Features> predict_rows(const Model& model, std::span<const Features> rows,
                                   const std::function<void(size_t)>& advance) {
  std::vector<Features> out;
  size_t block = std::min(kFirstBlock, rows.size());
  for (size_t first = 0; first < rows.size();) {
    const auto some = rows.subspan(first, std::min(block, rows.size() - first));
    const auto start = Clock::now();
    try {
      for (Features& row : predict_block(model, some)) out.push_back(std::move(row));
    } catch (const Exception&) {
      // The message counts the rows of the block. One by one, they give the row of the table.
      for (size_t r = 0; r < some.size(); ++r) try {
          out.push_back(model.predict(some[r]));
        } catch (const Exception& e) {
          throw Exception(e.kind(), rows.size() == 1 ? e.what() : fmt::format("row {}: {}", first + r + 1, e.what()));
        }
    }
    first += some.size();
    advance(some.size());
    const double seconds = seconds_since(start);
    if (seconds < kBlockSeconds / 2) block *= 2;
    if (seconds > kBlockSeconds * 2) block = std::max<size_t>(block / 2, 1);
  }
  return out;
}

}  // namespace moka::cli
