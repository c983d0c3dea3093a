// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/internal.h"
#include "kernel/parallel.h"
#include "kernel/thread_pool.h"

namespace moka {

std::vector<Features> Model::predict_batch(std::span<const Features> inputs, const PredictionOptions& options) const {
  const trace::Use use(trace::is_on() ? impl_->traced() : 0);
  const trace::Span span(trace::Lane::activity, "predict batch");
  return impl_->predict_batch(inputs, options, "batch item", 0);
}

std::vector<Features> Model::Impl::predict_batch(std::span<const Features> inputs, const PredictionOptions& options,
                                                 std::string_view what, size_t first) const {
  std::vector<Features> out(inputs.size());
  std::vector<Status> results(inputs.size());
  auto predict_item = [&](size_t i) { results[i] = predict(inputs[i], out[i], options, nullptr, nullptr); };
  const auto threads = static_cast<size_t>(std::max(1, model->plan_options().threads));
  size_t done = 0;
  // Each thread takes whole items, since threads that share an item wait for each other. Only the last few items are
  // shared.
  const size_t left = inputs.size() % threads;
  const size_t beside = left > threads / 2 ? inputs.size() : inputs.size() - left;
  if (threads > 1 && beside > 1 && options.state == nullptr) {
    kernel::place_workers(configuration.processors);
    kernel::parallel_for(static_cast<int>(threads), static_cast<int64_t>(beside),
                         [&](int64_t i, int) { predict_item(static_cast<size_t>(i)); });
    for (; done < beside; done++)
      // Several concurrent predictions need more memory than one.
      if (!results[done].ok() && results[done].error().code() == ErrorCode::out_of_budget) predict_item(done);
  }
  for (size_t i = 0; i < inputs.size(); i++) {
    if (i >= done) predict_item(i);
    if (!results[i].ok()) api::raise(std::move(results[i]).error().in(cat(what, " ", first + i)));
  }
  return out;
}

}  // namespace moka
