// SPDX-License-Identifier: Apache-2.0
#include "tables/tiles.h"

#include <algorithm>

#include "base/copy.h"
#include "boundary/arrays.h"
#include "boundary/descriptions.h"
#include "boundary/inputs.h"
#include "plan/plan.h"
#include "runtime/prediction.h"
#include "trace/trace.h"

namespace moka::tables {

namespace {

/// Rows per prediction: enough to make the startup cost negligible, but few enough that intermediate values stay in a
/// core's cache and that all threads have work. Tiles are equally long, because the last one computes as many rows as
/// the others.
int64_t tile_of(int64_t rows, int64_t row_bytes, int threads) {
  constexpr int64_t kTileBytes = int64_t{512} << 10;
  const int64_t fitting = std::clamp<int64_t>(kTileBytes / std::max<int64_t>(row_bytes, 1), 128, 4096);
  const int64_t most = std::clamp<int64_t>(rows / (int64_t{2} * threads), 128, fitting);
  const int64_t tiles = (rows + most - 1) / most;
  return tiles == 0 ? 0 : (rows + tiles - 1) / tiles;
}

/// The bytes of a row's numbers as doubles.
int64_t row_bytes_of(const Features& columns, int64_t rows) {
  int64_t count = 0;
  for (const auto& [name, column] : columns)
    if (const auto* a = std::get_if<MultiArray>(&column)) count += a->count();
  return count / std::max<int64_t>(rows, 1) * static_cast<int64_t>(sizeof(double));
}

/// The rows of a column from `first` on, as many as `shape[0]`, for the planned input.
Result<runtime::InputValue> rows_of(const import::FeatureDescription& f, const ir::Type& type,
                                    const FeatureValue& column, int64_t first, std::span<const int64_t> shape) {
  if (type.dtype() == ir::DType::string) {
    const auto* texts = std::get_if<StringSequence>(&column);
    if (texts == nullptr)
      return fail(ErrorCode::invalid_argument, "column '", f.name, "': expected strings, got ", describe(column));
    return runtime::InputValue(texts->data() + first);
  }
  ir::ArrayView rows;
  if (const auto* numbers = std::get_if<Int64Sequence>(&column);
      numbers != nullptr && MOKA_TRY(type.shape().checked_count()) == shape[0]) {
    rows = {ir::DType::int64, shape, {}, numbers->data() + first};
  } else if (const auto* array = std::get_if<MultiArray>(&column)) {
    rows = boundary::view_of(*array);
    rows.shape = shape;
    rows.data = static_cast<const std::byte*>(rows.data) +
                first * array->strides()[0] * static_cast<int64_t>(size_of(array->type()));
  } else {
    return fail(ErrorCode::invalid_argument, "column '", f.name, "': expected ",
                boundary::to_public(f).formatted_type(), " in each row, got ", describe(column));
  }
  MOKA_TRY_IN(boundary::check_numbers(f, type.dtype(), rows, first), cat("column '", f.name, "'"));
  return runtime::InputValue(rows);
}

/// The planned type of a column: [count, ...].
Result<ir::Type> tile_type(const import::FeatureDescription& f, const ir::Type& declared, const FeatureValue* column,
                           int64_t count) {
  ir::Shape s = declared.shape();
  s[0] = count;
  if (const auto* a = column == nullptr ? nullptr : std::get_if<MultiArray>(column)) {
    int64_t expected = 1, got = 1;
    for (int i = 1; i < s.rank(); i++) expected *= s[i];
    for (size_t i = 1; i < a->shape().size(); i++) got *= a->shape()[i];
    const std::span<const int64_t> row = std::span(a->shape()).subspan(1);
    const bool is_described =
        f.kind != import::FeatureKind::multi_array || row.empty() || boundary::check_array_shape(f, row).ok();
    if (expected != got || !is_described)
      return fail(ErrorCode::invalid_argument, "column '", f.name, "': expected ",
                  boundary::to_public(f).formatted_type(), " in each row, got ", describe(*column));
  }
  return ir::Type::tensor(declared.dtype(), s);
}

/// Memory for an output of the whole table. `tile` is the type of one tile.
Result<FeatureValue> new_column(const ir::Type& tile, int64_t rows) {
  if (tile.dtype() == ir::DType::string) return FeatureValue(StringSequence(static_cast<size_t>(rows)));
  ir::Shape s = tile.shape();
  s[0] = rows;
  return FeatureValue(MOKA_TRY(boundary::new_array(tile.dtype(), s)));
}

void copy_rows(const ir::TensorView& tile, int64_t skip, int64_t to, FeatureValue& column) {
  const int64_t count = tile.shape[0] - skip;
  if (auto* texts = std::get_if<StringSequence>(&column)) {
    std::copy_n(tile.as<std::string>() + skip, count, texts->begin() + to);
    return;
  }
  auto& array = std::get<MultiArray>(column);
  const size_t row = static_cast<size_t>(tile.count() / tile.shape[0]) * size_of(array.type());
  copy_bytes(static_cast<std::byte*>(array.data()) + static_cast<size_t>(to) * row,
             static_cast<const std::byte*>(tile.data) + static_cast<size_t>(skip) * row,
             static_cast<size_t>(count) * row);
}

}  // namespace

Tiles::Tiles(const runtime::Model& model, const Features& columns, int64_t rows, int threads)
    : model_(model), columns_(columns), rows_(rows), tile_(tile_of(rows, row_bytes_of(columns, rows), threads)) {}

Status Tiles::set_up() {
  const import::FunctionDescription& f = model_.function();
  for (const auto& v : model_.ir().body().inputs()) {
    const auto it = std::find_if(f.inputs.begin(), f.inputs.end(), [&](const auto& x) { return x.name == v->name; });
    if (it == f.inputs.end()) return fail(ErrorCode::unsupported, "states");
    const FeatureValue* column = columns_.find(it->name);
    if (column != nullptr && std::holds_alternative<std::monostate>(*column)) column = nullptr;
    if (column == nullptr && !it->optional)
      return fail(ErrorCode::invalid_argument, "column '", it->name, "': expected ",
                  boundary::to_public(*it).formatted_type(), " in each row, got nothing");
    const auto* array = column == nullptr ? nullptr : std::get_if<MultiArray>(column);
    std::vector<int64_t> shape = array != nullptr ? array->shape() : std::vector<int64_t>{tile_};
    shape[0] = tile_;
    inputs_.push_back({&*it, column, std::move(shape)});
    types_.push_back(MOKA_TRY(tile_type(*it, v->type, column, tile_)));
  }
  return {};
}

Status Tiles::run(int64_t i, std::vector<FeatureValue>& outputs, std::vector<std::string>& remarks,
                  const Stop& stop) const {
  MOKA_TRY(stop.check());
  const int64_t first = first_row(i), from = std::min(first, rows_ - tile_);
  std::vector<runtime::InputValue> values;
  for (size_t k = 0; k < inputs_.size(); k++) {
    const Input& x = inputs_[k];
    values.push_back(x.column == nullptr ? boundary::default_value(*x.feature, types_[k])
                                         : MOKA_TRY(rows_of(*x.feature, types_[k], *x.column, from, x.shape)));
  }
  runtime::Prediction done = model_.predict(
      {.types = types_, .inputs = values, .is_recorded = trace::is_on(), .stop = stop.is_possible() ? &stop : nullptr});
  if (done.is_planned()) remarks.insert(remarks.end(), done.remarks().begin(), done.remarks().end());
  MOKA_TRY(done.take_status());
  const trace::Span span(trace::Lane::data, [] {
    return trace::label("rows", "copy", {{"reason", "outputs of a tile of rows into their columns"}});
  });
  for (size_t k = 0; k < outputs.size(); k++) copy_rows(done.output(k), first - from, first, outputs[k]);
  return {};
}

Result<std::vector<FeatureValue>> Tiles::new_outputs() const {
  const std::shared_ptr<const plan::Plan> plan = MOKA_TRY(model_.plan(types_));
  std::vector<FeatureValue> out;
  for (int place : plan->sequence.outputs) {
    const ir::Type& type = plan->sequence.place(place).type;
    if (!type.is_tensor() || type.rank() == 0 || type.shape()[0] != tile_)
      return fail(ErrorCode::unsupported, "an output without rows");
    out.push_back(MOKA_TRY(new_column(type, rows_)));
  }
  return out;
}

}  // namespace moka::tables
