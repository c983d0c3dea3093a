// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "api/internal.h"
#include "base/copy.h"
#include "kernel/parallel.h"
#include "kernel/thread_pool.h"

/// Predictions for tables. A classic model is imported again with an axis of rows in front of its inputs
/// (ImportOptions::rows) and planned for tiles of rows, which are divided among the threads. Other models predict row
/// by row.
namespace moka {

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

int64_t rows_of(const FeatureValue& column) {
  if (const auto* a = std::get_if<MultiArray>(&column)) return a->shape().empty() ? -1 : a->shape()[0];
  if (const auto* s = std::get_if<StringSequence>(&column)) return static_cast<int64_t>(s->size());
  if (const auto* s = std::get_if<Int64Sequence>(&column)) return static_cast<int64_t>(s->size());
  return -1;
}

/// The bytes of a row's numbers as doubles.
int64_t row_bytes_of(const Features& columns, int64_t rows) {
  int64_t count = 0;
  for (const auto& [name, column] : columns)
    if (const auto* a = std::get_if<MultiArray>(&column)) count += a->count();
  return count / std::max<int64_t>(rows, 1) * static_cast<int64_t>(sizeof(double));
}

/// The number of rows, which must be the same in all columns.
Result<int64_t> count_rows(const Features& columns) {
  int64_t rows = -1;
  for (const auto& [name, column] : columns) {
    if (std::holds_alternative<std::monostate>(column)) continue;
    if (const auto* a = std::get_if<MultiArray>(&column); a != nullptr && api::lacks_data(*a))
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

/// Row `r` of a column in the form that predict takes.
FeatureValue value_at(const import::FeatureDescription& f, const FeatureValue& column, int64_t r) {
  const auto at = static_cast<size_t>(r);
  if (const auto* s = std::get_if<StringSequence>(&column)) return (*s)[at];
  if (const auto* s = std::get_if<Int64Sequence>(&column)) return (*s)[at];
  const auto* a = std::get_if<MultiArray>(&column);
  if (a == nullptr) return {};
  MultiArray whole = *a;
  auto* data = static_cast<std::byte*>(whole.data()) + r * a->strides()[0] * static_cast<int64_t>(size_of(a->type()));
  const ir::TensorView number{api::to_ir(a->type()), {}, data};
  if (f.kind == import::FeatureKind::int64 && !ir::is_float(number.dtype)) return ir::load_i64(number, 0);
  if (f.kind == import::FeatureKind::int64 || f.kind == import::FeatureKind::float64) return ir::load_f64(number, 0);
  std::vector<int64_t> shape(a->shape().begin() + 1, a->shape().end());
  std::vector<int64_t> strides(a->strides().begin() + 1, a->strides().end());
  if (shape.empty()) shape = strides = {1};
  return MultiArray(data, a->type(), std::move(shape), std::move(strides));
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

/// The names of the columns of a classifier's probabilities.
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

/// Collects the values that one output has in all rows.
class Column {
 public:
  Column(std::string name, int64_t rows, const std::vector<FeatureValue>& labels)
      : name_(std::move(name)), rows_(rows), labels_(labels) {}

  Status set(int64_t r, const FeatureValue& value) {
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
  FeatureValue take() { return std::move(column_); }

 private:
  static size_t bytes_of(const MultiArray& a) { return static_cast<size_t>(a.count()) * size_of(a.type()); }
  static bool fits(const MultiArray& column, const MultiArray& row) {
    return column.type() == row.type() && row.is_contiguous() &&
           std::equal(column.shape().begin() + 1, column.shape().end(), row.shape().begin(), row.shape().end());
  }
  Status start(const FeatureValue& value) {
    first_ = describe(value);
    const auto array = [&](ir::DType t, std::span<const int64_t> row) -> Status {
      ir::Shape s{rows_};
      for (int64_t d : row) s.push_back(d);
      column_ = MOKA_TRY(api::new_array(t, s));
      return {};
    };
    if (std::holds_alternative<std::string>(value))
      return column_ = StringSequence(static_cast<size_t>(rows_)), Status();
    if (std::holds_alternative<int64_t>(value)) return array(ir::DType::int64, {});
    if (std::holds_alternative<double>(value)) return array(ir::DType::fp64, {});
    if (const auto* v = std::get_if<MultiArray>(&value)) return array(api::to_ir(v->type()), v->shape());
    const int64_t classes[] = {static_cast<int64_t>(labels_.size())};
    if (std::holds_alternative<Dictionary>(value) && !labels_.empty()) return array(ir::DType::fp64, classes);
    return fail(ErrorCode::unsupported, "output '", name_, "': a table has no columns of ", describe(value));
  }
  Status set_scores(std::span<double> to, const Dictionary& d) const {
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

  std::string name_;
  int64_t rows_;
  const std::vector<FeatureValue>& labels_;
  FeatureValue column_;
  std::string first_;  ///< what the first row has
};

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
    rows = api::view_of(*array);
    rows.shape = shape;
    rows.data = static_cast<const std::byte*>(rows.data) +
                first * array->strides()[0] * static_cast<int64_t>(size_of(array->type()));
  } else {
    return fail(ErrorCode::invalid_argument, "column '", f.name, "': expected ", api::to_public(f).formatted_type(),
                " in each row, got ", describe(column));
  }
  MOKA_TRY_IN(api::check_numbers(f, type.dtype(), rows, first), cat("column '", f.name, "'"));
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
        f.kind != import::FeatureKind::multi_array || row.empty() || api::check_array_shape(f, row).ok();
    if (expected != got || !is_described)
      return fail(ErrorCode::invalid_argument, "column '", f.name, "': expected ", api::to_public(f).formatted_type(),
                  " in each row, got ", describe(*column));
  }
  return ir::Type::tensor(declared.dtype(), s);
}

/// Memory for an output of the whole table. `tile` is the type of one tile.
Result<FeatureValue> new_column(const ir::Type& tile, int64_t rows) {
  if (tile.dtype() == ir::DType::string) return FeatureValue(StringSequence(static_cast<size_t>(rows)));
  ir::Shape s = tile.shape();
  s[0] = rows;
  return FeatureValue(MOKA_TRY(api::new_array(tile.dtype(), s)));
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

/// Predicts tiles of rows with the variant of a model that takes rows.
class Tiles {
 public:
  Tiles(const runtime::Model& model, const Features& columns, int64_t rows, int threads)
      : model_(model), columns_(columns), rows_(rows), tile_(tile_of(rows, row_bytes_of(columns, rows), threads)) {}

  Status set_up() {
    const import::FunctionDescription& f = model_.function();
    for (const auto& v : model_.ir().body().inputs()) {
      const auto it = std::find_if(f.inputs.begin(), f.inputs.end(), [&](const auto& x) { return x.name == v->name; });
      if (it == f.inputs.end()) return fail(ErrorCode::unsupported, "states");
      const FeatureValue* column = columns_.find(it->name);
      if (column != nullptr && std::holds_alternative<std::monostate>(*column)) column = nullptr;
      if (column == nullptr && !it->optional)
        return fail(ErrorCode::invalid_argument, "column '", it->name, "': expected ",
                    api::to_public(*it).formatted_type(), " in each row, got nothing");
      const auto* array = column == nullptr ? nullptr : std::get_if<MultiArray>(column);
      std::vector<int64_t> shape = array != nullptr ? array->shape() : std::vector<int64_t>{tile_};
      shape[0] = tile_;
      inputs_.push_back({&*it, column, std::move(shape)});
      types_.push_back(MOKA_TRY(tile_type(*it, v->type, column, tile_)));
    }
    return {};
  }
  int64_t count() const { return (rows_ + tile_ - 1) / tile_; }
  int64_t first_row(int64_t tile) const { return tile * tile_; }

  /// The last tile begins earlier so that it has as many rows as the others; `first` is its first new row.
  Status run(int64_t i, std::vector<FeatureValue>& outputs) const {
    const int64_t first = first_row(i), from = std::min(first, rows_ - tile_);
    std::vector<runtime::InputValue> values;
    for (size_t k = 0; k < inputs_.size(); k++) {
      const Input& x = inputs_[k];
      values.push_back(x.column == nullptr ? api::default_value(*x.feature, types_[k])
                                           : MOKA_TRY(rows_of(*x.feature, types_[k], *x.column, from, x.shape)));
    }
    runtime::Prediction done = model_.predict({.types = types_, .inputs = values, .is_recorded = trace::is_on()});
    if (done.is_planned())
      for (const std::string& remark : done.remarks()) api::warn(remark);
    MOKA_TRY(done.take_status());
    const trace::Span span(trace::Lane::data, [] {
      return trace::label("rows", "copy", {{"reason", "outputs of a tile of rows into their columns"}});
    });
    for (size_t k = 0; k < outputs.size(); k++) copy_rows(done.output(k), first - from, first, outputs[k]);
    return {};
  }
  Result<std::vector<FeatureValue>> new_outputs() const {
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

 private:
  struct Input {
    const import::FeatureDescription* feature;
    const FeatureValue* column;  ///< nullptr: use the default
    std::vector<int64_t> shape;  ///< of a tile of the column
  };
  const runtime::Model& model_;
  const Features& columns_;
  int64_t rows_, tile_;
  std::vector<Input> inputs_;
  std::vector<ir::Type> types_;
};

}  // namespace

Result<std::shared_ptr<const runtime::Model>> Model::Impl::rows_model() const {
  return variants.get({false, false, true, {}}, [&]() -> api::Variants::Made {
    runtime::CompileOptions options = compile_options;
    options.plan.threads = 1;  // the threads divide the tiles
    import::ImportedModel again = MOKA_TRY(source->import({compile_options.plan.budget, false, false, true}));
    return std::shared_ptr<const runtime::Model>(MOKA_TRY(runtime::Model::compile(std::move(again), options)));
  });
}

Features Model::predict_rows(const Features& columns) const {
  const trace::ModelId traced = trace::is_on() ? impl_->traced() : 0;
  const trace::Use use(traced);
  const trace::Span span(trace::Lane::activity, "predict rows");
  const import::FunctionDescription& f = impl_->model->function();
  const int64_t rows = api::unwrap(count_rows(columns));
  for (const auto& [name, column] : columns)
    if (std::none_of(f.inputs.begin(), f.inputs.end(), [&n = name](const auto& x) { return x.name == n; }))
      throw Exception(ErrorKind::invalid_argument, cat("column '", name, "': not an input of the model"));
  Features out;
  if (const auto takes_rows = impl_->rows_model(); takes_rows.ok()) {
    const int threads = std::max(1, impl_->model->plan_options().threads);
    Tiles tiles(*takes_rows.value(), columns, rows, threads);
    api::unwrap(tiles.set_up());
    if (auto made = tiles.new_outputs(); made.ok()) {
      std::vector<FeatureValue> outputs = std::move(made).value();
      std::vector<Status> results(static_cast<size_t>(tiles.count()));
      kernel::place_workers(impl_->configuration.processors);
      kernel::parallel_for(threads, tiles.count(), [&](int64_t i, int) {
        const trace::Use of(traced);
        results[static_cast<size_t>(i)] = tiles.run(i, outputs);
      });
      const auto failed = std::find_if(results.begin(), results.end(), [](const Status& s) { return !s.ok(); });
      if (failed == results.end()) {
        for (size_t i = 0; i < outputs.size(); i++) out[f.outputs[i].name] = std::move(outputs[i]);
        return out;
      }
      // A row of the tile failed. Predicting the rows one by one finds it.
      const int64_t tile = failed - results.begin();
      for (int64_t r = tiles.first_row(tile); r < std::min(rows, tiles.first_row(tile + 1)); r++) {
        Features ignored;
        Status status = impl_->predict(row_of(f, columns, r), ignored, {}, nullptr, nullptr);
        if (!status.ok()) api::raise(std::move(status).error().in(cat("row ", r)));
      }
      api::raise(failed->error());
    }
  }
  const std::vector<FeatureValue> labels = labels_of(impl_->model->description());
  std::vector<Column> collected;
  for (const auto& x : f.outputs) collected.emplace_back(x.name, rows, labels);
  constexpr int64_t kAtOnce = 256;
  for (int64_t first = 0; first < rows; first += kAtOnce) {
    std::vector<Features> some;
    for (int64_t r = first; r < std::min(rows, first + kAtOnce); r++) some.push_back(row_of(f, columns, r));
    const std::vector<Features> results = impl_->predict_batch(some, {}, "row", static_cast<size_t>(first));
    for (size_t i = 0; i < results.size(); i++)
      for (size_t k = 0; k < collected.size(); k++)
        api::unwrap(collected[k].set(first + static_cast<int64_t>(i), results[i].at(f.outputs[k].name)));
  }
  for (size_t k = 0; k < collected.size(); k++) out[f.outputs[k].name] = collected[k].take();
  return out;
}

}  // namespace moka
