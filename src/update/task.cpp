// SPDX-License-Identifier: Apache-2.0
#include "update/task.h"

#include <cmath>
#include <numeric>
#include <random>

namespace moka::update {

namespace {

int64_t integer(const Settings& settings, std::string_view name, int64_t otherwise) {
  const auto it = settings.find(name);
  return it == settings.end() ? otherwise : std::get<int64_t>(it->second);
}

double number(const Settings& settings, std::string_view name, double otherwise) {
  const auto it = settings.find(name);
  return it == settings.end() ? otherwise : std::get<double>(it->second);
}

training::Numbers numbers_of(const Settings& s) {
  return {{"learning_rate", number(s, "learningRate", 0)},
          {"momentum", number(s, "momentum", 0)},
          {"beta_1", number(s, "beta1", 0.9)},
          {"beta_2", number(s, "beta2", 0.999)},
          {"epsilon", number(s, "eps", 1e-8)}};
}

/// The same order on every machine.
void shuffle(std::vector<size_t>& order, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[random() % i]);
}

int64_t divided_up(size_t a, size_t b) { return static_cast<int64_t>((a + b - 1) / b); }

}  // namespace

void NetworkTask::begin_epoch() {
  order_.resize(examples_);
  std::iota(order_.begin(), order_.end(), size_t{0});
  next_ = 0;
  sum_ = 0;
  metrics_.mini_batch = -1;
  const auto flag = settings_.find("shuffle");
  if (flag == settings_.end() || !std::get<bool>(flag->second)) return;
  shuffle(order_, static_cast<uint64_t>(integer(settings_, "seed", 0)) * 1000003 + static_cast<uint64_t>(epoch_));
}

Status NetworkTask::report(const Progress& progress, Event event) {
  return progress ? progress(event, metrics_, settings_) : Status();
}

Status NetworkTask::mini_batch() {
  const auto size = static_cast<size_t>(integer(settings_, "miniBatchSize", 1));
  const size_t count = std::min(size, examples_ - next_);
  const auto examples = std::span(order_).subspan(next_, count);
  const training::Numbers numbers = numbers_of(settings_);
  metrics_.loss = MOKA_TRY(learner_->step(examples, numbers));
  metrics_.mini_batch++;
  metrics_.mini_batches = metrics_.mini_batch + divided_up(examples_ - next_, size);
  if (!std::isfinite(metrics_.loss))
    return fail(ErrorCode::data, "the training diverges: the loss of epoch ", metrics_.epoch, ", mini-batch ",
                metrics_.mini_batch, " is ", metrics_.loss, " with the learning rate ", numbers.at("learning_rate"));
  next_ += count;
  sum_ += metrics_.loss * static_cast<double>(count);
  return {};
}

/// No loss follows the last step.
Status NetworkTask::check_weights() const {
  for (const auto& [name, weights] : learner_->parameters())
    for (const float v : weights.as<float>())
      if (!std::isfinite(v))
        return fail(ErrorCode::data, "the training diverges: an element of '", name, "' is ", v,
                    " with the learning rate ", number(settings_, "learningRate", 0));
  return {};
}

Status NetworkTask::run(const Progress& progress) {
  // cancel() may come before run(), and holds for one run.
  struct Clearing {
    std::atomic<bool>& flag;
    ~Clearing() { flag = false; }
  } clearing{cancelled_};
  if (!begun_) MOKA_TRY(report(progress, Event::training_begin));
  begun_ = true;
  while (!cancelled_ && epoch_ < integer(settings_, "epochs", 1)) {
    metrics_.epoch = epoch_;
    if (order_.empty()) begin_epoch();
    if (next_ < examples_) {
      MOKA_TRY(mini_batch());
      MOKA_TRY(report(progress, Event::mini_batch_end));
      if (next_ < examples_) continue;
    }
    metrics_.loss = sum_ / static_cast<double>(examples_);
    order_.clear();
    epoch_++;
    MOKA_TRY(report(progress, Event::epoch_end));
  }
  stopped_ = epoch_ < integer(settings_, "epochs", 1);
  return check_weights();
}

}  // namespace moka::update
