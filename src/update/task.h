// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "update/network_learner.h"
#include "update/settings.h"

namespace moka::update {

enum class Event : uint8_t { training_begin, mini_batch_end, epoch_end };

struct Metrics {
  double loss = 0;           ///< of the mini-batch before its step; at the end of an epoch, the mean over its examples
  int64_t epoch = 0;         ///< from 0
  int64_t mini_batch = 0;    ///< in its epoch, from 0
  int64_t mini_batches = 0;  ///< of the epoch
};

/// Trains a network for a number of epochs. Used by one thread at a time, but for cancel().
class NetworkTask {
 public:
  /// Called with the settings of the next mini-batch, which it may change. An error ends the training.
  using Progress = std::function<Status(Event, const Metrics&, Settings&)>;

  NetworkTask(std::unique_ptr<NetworkLearner> learner, import::UpdateDescription update, Settings settings,
              size_t examples)
      : learner_(std::move(learner)), update_(std::move(update)), settings_(std::move(settings)), examples_(examples) {}

  /// Trains until the last epoch has ended or cancel() was called, and goes on where it stopped. A new number of epochs
  /// or size of mini-batches holds from the next mini-batch on, and a new order from the next epoch on. Errors: those
  /// of NetworkLearner::step; data (the loss or a weight is not finite, and the weights are of no use).
  Status run(const Progress& progress);
  /// The training stops before its next mini-batch. Called on any thread.
  void cancel() { cancelled_ = true; }

  /// Whether epochs are left because of cancel().
  bool is_cancelled() const { return stopped_; }
  /// Whether cancel() was called for this run.
  bool is_stopping() const { return cancelled_; }
  const NetworkLearner& learner() const { return *learner_; }
  NetworkLearner& learner() { return *learner_; }
  const import::UpdateDescription& update() const { return update_; }
  const Metrics& metrics() const { return metrics_; }
  Settings& settings() { return settings_; }

 private:
  Status report(const Progress& progress, Event event);
  Status mini_batch();
  void begin_epoch();
  Status check_weights() const;

  std::unique_ptr<NetworkLearner> learner_;
  import::UpdateDescription update_;
  Settings settings_;
  size_t examples_;
  std::atomic<bool> cancelled_{false};
  bool begun_ = false, stopped_ = false;
  int64_t epoch_ = 0;
  std::vector<size_t> order_;  ///< of the examples in this epoch; empty: it has not begun
  size_t next_ = 0;            ///< in `order_`
  double sum_ = 0;             ///< of the losses of the epoch's examples
  Metrics metrics_;
};

}  // namespace moka::update
