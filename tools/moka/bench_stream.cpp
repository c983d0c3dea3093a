// SPDX-License-Identifier: Apache-2.0
#include "bench_stream.h"

#include <algorithm>
#include <optional>

#include "clock.h"
#include "moka/stream.h"

namespace moka::cli {

namespace {

/// The rate of `once` per second, measured for `seconds` and at least three runs. Sets `runs` to the number of runs.
template <class Once>
double rate(double seconds, size_t& runs, Once once) {
  const auto start = Clock::now();
  double took = 0;
  for (runs = 0; runs < 3 || took < seconds; runs++) {
    once();
    took = seconds_since(start);
  }
  return static_cast<double>(runs) / took;
}

}  // namespace

double StreamRates::share() const { return stream / std::min(reading, predicting); }

StreamRates measure_stream(const Model& model, const InputOptions& options, double seconds) {
  StreamRates out;
  const auto read = [&] { return std::move(read_inputs(model, options).rows[0]); };
  std::optional<State> state;
  if (!model.function().states.empty()) state = model.new_state();
  PredictionOptions prediction;
  if (state) prediction.state = &*state;
  Features inputs = read();
  (void)model.predict(inputs, prediction);
  size_t runs = 0;
  out.reading = rate(seconds, runs, [&] { inputs = read(); });
  out.predicting = rate(seconds, runs, [&] { (void)model.predict(inputs, prediction); });

  constexpr size_t kAhead = 4;
  Stream stream(model, {.ahead = kAhead, .prediction = prediction});
  // Fills the stream before timing, because a long stream is always full.
  for (size_t i = 0; i < kAhead; i++) stream.push(read());
  out.stream = rate(seconds, out.predictions, [&] {
    stream.push(read());
    (void)stream.pop();
  });
  while (stream.size() > 0) (void)stream.pop();
  return out;
}

}  // namespace moka::cli
