// SPDX-License-Identifier: Apache-2.0
#include "plan/late.h"

#include <algorithm>
#include <limits>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/watch.h"
#include "kernel/parallel.h"
#include "trace/trace.h"

namespace moka::plan {

namespace {

/// Encrypted files are not mapped: to read them twice would be to decrypt them twice.
bool can_wait(const Preparation& p) {
  const ir::Tensor& t = p.choice->unpacked;
  return !t.empty_handle() && place_in_file(t.data(), t.bytes()).has_value();
}

}  // namespace

std::shared_ptr<LatePreparation> LatePreparation::take(std::vector<Preparation>& all, const PlanOptions& options) {
  const auto first = std::stable_partition(all.begin(), all.end(), [](const Preparation& p) { return !can_wait(p); });
  std::vector<Preparation> late(std::make_move_iterator(first), std::make_move_iterator(all.end()));
  all.erase(first, all.end());
  std::erase_if(late, [&](Preparation& p) { return prepare_from_packed(p, options).ok(); });
  return late.empty() ? nullptr : std::make_shared<LatePreparation>(std::move(late), options);
}

LatePreparation::LatePreparation(std::vector<Preparation> all, const PlanOptions& options)
    : all_(std::move(all)), options_(options) {
  for (const Preparation& p : all_) bytes_ += p.choice->unpacked.bytes();
}

void LatePreparation::before_run() {
  constexpr size_t kRuns = 4;
  const double run = run_seconds_.load(std::memory_order_relaxed);
  if (is_done() || run == 0) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) prepare(bytes_ / kRuns, run / 2);
}

void LatePreparation::finish() {
  if (is_done()) return;
  const std::lock_guard lock(mutex_);
  prepare(bytes_, std::numeric_limits<double>::infinity());
}

void LatePreparation::prepare(size_t bytes, double seconds) {
  if (is_done()) return;
  std::atomic<size_t> begun{0};
  const Watch* const watch = Watch::current();
  const auto is_stopped = [&] { return watch != nullptr && !watch->stop().check().ok(); };
  const trace::Span span(trace::Lane::activity, "prepare kernels");
  const auto start = Clock::now();
  kernel::parallel_for(options_.threads, options_.threads, [&](int64_t, int) {
    do {
      const size_t i = next_.fetch_add(1);
      if (i >= all_.size()) return;
      const ir::Tensor& weights = all_[i].choice->unpacked;
      begun += weights.bytes();
      // The first prediction has read these pages, so packing reads the mapping instead of the file.
      if (prepare_kernel(all_[i], options_, nullptr).ok()) drop_pages(weights.data(), weights.bytes());
    } while (begun < bytes && seconds_since(start) < seconds && !is_stopped());
  });
  if (next_.load() < all_.size()) return;
  all_.clear();
  is_done_.store(true, std::memory_order_relaxed);
}

}  // namespace moka::plan
