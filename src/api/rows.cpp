// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/internal.h"
#include "base/stop.h"
#include "base/watch.h"
#include "kernel/parallel.h"
#include "kernel/thread_pool.h"
#include "tables/columns.h"
#include "tables/tiles.h"

/// Predictions for tables. A classic model is imported again with an axis of rows in front of its inputs
/// (ImportOptions::rows) and planned for tiles of rows, which are divided among the threads. Other models predict row
/// by row.
namespace moka {

Result<std::shared_ptr<const runtime::Model>> Model::Impl::rows_model() const {
  return variants.get({false, false, true, {}}, [&]() -> api::Variants::Made {
    runtime::CompileOptions options = compile_options;
    options.plan.threads = 1;  // the threads divide the tiles
    import::ImportedModel again = MOKA_TRY(source->import({compile_options.plan.budget, false, false, true}));
    return std::shared_ptr<const runtime::Model>(MOKA_TRY(runtime::Model::compile(std::move(again), options)));
  });
}

Features Model::predict_rows(const Features& columns, const PredictionOptions& options) const {
  const Stop stop(options.stop, options.deadline);
  api::unwrap(stop.check());
  api::unwrap(impl_->check_outputs(options.outputs));
  const Watch watch(stop);
  const Watch::Scope watched(stop.is_possible() ? &watch : nullptr);  // for the plan of tiles
  const trace::ModelId traced = trace::is_on() ? impl_->traced() : 0;
  const trace::Use use(traced);
  const trace::Span span(trace::Lane::activity, "predict rows");
  const import::FunctionDescription& f = impl_->model->function();
  const int64_t rows = api::unwrap(tables::count_rows(columns));
  for (const auto& [name, column] : columns)
    if (std::none_of(f.inputs.begin(), f.inputs.end(), [&n = name](const auto& x) { return x.name == n; }))
      throw Exception(ErrorKind::invalid_argument, cat("column '", name, "': not an input of the model"));
  const auto is_wanted = [&](const std::string& name) {
    const auto& names = options.outputs;
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  };
  Features out;
  if (const auto takes_rows = impl_->rows_model(); takes_rows.ok()) {
    const int threads = std::max(1, impl_->model->plan_options().threads);
    tables::Tiles tiles(*takes_rows.value(), columns, rows, threads);
    api::unwrap(tiles.set_up());
    if (auto made = tiles.new_outputs(); made.ok()) {
      std::vector<FeatureValue> outputs = std::move(made).value();
      std::vector<Status> results(static_cast<size_t>(tiles.count()));
      std::vector<std::vector<std::string>> remarks(results.size());
      kernel::place_workers(impl_->configuration.processors);
      kernel::parallel_for(threads, tiles.count(), [&](int64_t i, int) {
        const trace::Use of(traced);
        results[static_cast<size_t>(i)] = tiles.run(i, outputs, remarks[static_cast<size_t>(i)], stop);
      });
      for (const auto& some : remarks)
        for (const std::string& remark : some) {
          api::warn(remark);
          if (options.remarks != nullptr) options.remarks->push_back(remark);
        }
      api::unwrap(stop.check());
      const auto failed = std::find_if(results.begin(), results.end(), [](const Status& s) { return !s.ok(); });
      if (failed == results.end()) {
        for (size_t i = 0; i < outputs.size(); i++)
          if (is_wanted(f.outputs[i].name)) out[f.outputs[i].name] = std::move(outputs[i]);
        return out;
      }
      // A row of the tile failed. Predicting the rows one by one finds it.
      const int64_t tile = failed - results.begin();
      for (int64_t r = tiles.first_row(tile); r < std::min(rows, tiles.first_row(tile + 1)); r++) {
        Features ignored;
        Status status = impl_->predict(tables::row_of(f, columns, r), ignored, options, nullptr, nullptr);
        if (!status.ok()) api::raise(std::move(status).error().in(cat("row ", r)));
      }
      api::raise(failed->error());
    }
  }
  const std::vector<FeatureValue> labels = tables::labels_of(impl_->model->description());
  std::vector<tables::Column> collected;
  for (const auto& x : f.outputs)
    if (is_wanted(x.name)) collected.emplace_back(x.name, rows, labels);
  constexpr int64_t kAtOnce = 256;
  for (int64_t first = 0; first < rows; first += kAtOnce) {
    std::vector<Features> some;
    for (int64_t r = first; r < std::min(rows, first + kAtOnce); r++) some.push_back(tables::row_of(f, columns, r));
    const std::vector<Features> results = impl_->predict_batch(some, options, "row", static_cast<size_t>(first));
    for (size_t i = 0; i < results.size(); i++)
      for (tables::Column& column : collected)
        api::unwrap(column.set(first + static_cast<int64_t>(i), results[i].at(column.name())));
  }
  for (tables::Column& column : collected) out[column.name()] = column.take();
  return out;
}

}  // namespace moka
