// SPDX-License-Identifier: Apache-2.0
#include "tables/columns.h"

#include <algorithm>

#include "base/copy.h"
#include "boundary/arrays.h"
#include "boundary/descriptions.h"

namespace moka::tables {

namespace {

int64_t rows_of(const FeatureValue& column) {
  if (const auto* a = std::get_if<MultiArray>(&column)) return a->shape().empty() ? -1 : a->shape()[0];
  if (const auto* s = std::get_if<StringSequence>(&column)) return static_cast<int64_t>(s->size());
  if (const auto* s = std::get_if<Int64Sequence>(&column)) return static_cast<int64_t>(s->size());
  return -1;
}

/// Row `r` of a column in the form that predict takes.
FeatureValue value_at(const import::FeatureDescription& f, const FeatureValue& column, int64_t r) {
  const auto at = static_cast<size_t>(r);
  if (const auto* s = std::get_if<StringSequence>(&column)) return (*s)[at];
  if (const auto* s = std::get_if<Int64Sequence>(&column)) return (*s)[at];
  const auto* a = std::get_if<MultiArray>(&column);
  if (a == nullptr) return {};
  MultiArray whole = *a;
  auto* data = static_cast<std::byte*>(whole.data()) + r * a->strides()[0] * static_cast<int64_t>(size_of(a->type()));
  const ir::TensorView number{boundary::to_ir(a->type()), {}, data};
  if (f.kind == import::FeatureKind::int64 && !ir::is_float(number.dtype)) return ir::load_i64(number, 0);
  if (f.kind == import::FeatureKind::int64 || f.kind == import::FeatureKind::float64) return ir::load_f64(number, 0);
  std::vector<int64_t> shape(a->shape().begin() + 1, a->shape().end());
  std::vector<int64_t> strides(a->strides().begin() + 1, a->strides().end());
  if (shape.empty()) shape = strides = {1};
  return MultiArray(data, a->type(), std::move(shape), std::move(strides));
}

size_t bytes_of(const MultiArray& a) { return static_cast<size_t>(a.count()) * size_of(a.type()); }
bool fits(const MultiArray& column, const MultiArray& row) {
  return column.type() == row.type() && row.is_contiguous() &&
         std::equal(column.shape().begin() + 1, column.shape().end(), row.shape().begin(), row.shape().end());
}

}  // namespace

Result<int64_t> count_rows(const Features& columns) {
  int64_t rows = -1;
  for (const auto& [name, column] : columns) {
    if (std::holds_alternative<std::monostate>(column)) continue;
    if (const auto* a = std::get_if<MultiArray>(&column); a != nullptr && boundary::lacks_data(*a))
      return fail(ErrorCode::invalid_argument, "column '", name, "': expected values, got a MultiArray without data");
    const int64_t n = rows_of(column);
    if (n < 0)
      return fail(ErrorCode::invalid_argument, "column '", name, "': expected an array with an axis of rows, got ",
                  describe(column));
    if (rows >= 0 && n != rows)
      return fail(ErrorCode::invalid_argument, "column '", name, "': expected ", rows,
                  " rows as in the first column, got ", n);
    rows = n;
  }
  if (rows <= 0) return fail(ErrorCode::invalid_argument, "a table: expected at least one row, got none");
  return rows;
}

Features row_of(const import::FunctionDescription& f, const Features& columns, int64_t r) {
  Features row;
  for (const auto& [name, column] : columns) {
    const auto it =
        std::find_if(f.inputs.begin(), f.inputs.end(), [&name = name](const auto& x) { return x.name == name; });
    row[name] = it == f.inputs.end() ? FeatureValue() : value_at(*it, column, r);
  }
  return row;
}

std::vector<FeatureValue> labels_of(const import::ModelDescription& d) {
  std::vector<FeatureValue> out;
  if (d.class_labels.empty()) return out;
  const ir::TensorView labels = d.class_labels[0].view();
  for (int64_t i = 0; i < labels.count(); i++) {
    if (labels.dtype == ir::DType::string)
      out.emplace_back(labels.as<std::string>()[i]);
    else
      out.emplace_back(ir::load_i64(labels, i));
  }
  return out;
}

Status Column::set(int64_t r, const FeatureValue& value) {
  if (r == 0) MOKA_TRY(start(value));
  const auto at = static_cast<size_t>(r);
  if (auto* s = std::get_if<StringSequence>(&column_); s != nullptr && std::holds_alternative<std::string>(value)) {
    (*s)[at] = std::get<std::string>(value);
    return {};
  }
  if (auto* a = std::get_if<MultiArray>(&column_)) {
    if (const auto* v = std::get_if<int64_t>(&value); v != nullptr && a->type() == DataType::int64)
      return a->as<int64_t>()[at] = *v, Status();
    if (const auto* v = std::get_if<double>(&value); v != nullptr && a->type() == DataType::float64)
      return a->as<double>()[at] = *v, Status();
    if (const auto* v = std::get_if<MultiArray>(&value); v != nullptr && fits(*a, *v)) {
      copy_bytes(static_cast<std::byte*>(a->data()) + at * bytes_of(*v), v->data(), bytes_of(*v));
      return {};
    }
    if (const auto* d = std::get_if<Dictionary>(&value))
      return set_scores(a->as<double>().subspan(at * labels_.size()), *d);
  }
  return fail(ErrorCode::unsupported, "output '", name_, "': ", describe(value), " in a table whose first row has ",
              first_);
}

Status Column::start(const FeatureValue& value) {
  first_ = describe(value);
  const auto array = [&](ir::DType t, std::span<const int64_t> row) -> Status {
    ir::Shape s{rows_};
    for (int64_t d : row) s.push_back(d);
    column_ = MOKA_TRY(boundary::new_array(t, s));
    return {};
  };
  if (std::holds_alternative<std::string>(value)) return column_ = StringSequence(static_cast<size_t>(rows_)), Status();
  if (std::holds_alternative<int64_t>(value)) return array(ir::DType::int64, {});
  if (std::holds_alternative<double>(value)) return array(ir::DType::fp64, {});
  if (const auto* v = std::get_if<MultiArray>(&value)) return array(boundary::to_ir(v->type()), v->shape());
  const int64_t classes[] = {static_cast<int64_t>(labels_.size())};
  if (std::holds_alternative<Dictionary>(value) && !labels_.empty()) return array(ir::DType::fp64, classes);
  return fail(ErrorCode::unsupported, "output '", name_, "': a table has no columns of ", describe(value));
}

Status Column::set_scores(std::span<double> to, const Dictionary& d) const {
  const size_t size = d.string_keys ? d.strings.size() : d.ints.size();
  bool all = size == labels_.size();
  for (size_t i = 0; all && i < labels_.size(); i++) {
    if (const auto* text = std::get_if<std::string>(&labels_[i])) {
      const auto it = d.strings.find(*text);
      all = it != d.strings.end();
      if (all) to[i] = it->second;
    } else {
      const auto it = d.ints.find(std::get<int64_t>(labels_[i]));
      all = it != d.ints.end();
      if (all) to[i] = it->second;
    }
  }
  if (all) return {};
  return fail(ErrorCode::unsupported, "output '", name_, "': a table has columns for class labels alone");
}

}  // namespace moka::tables
