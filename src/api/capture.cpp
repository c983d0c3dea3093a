// SPDX-License-Identifier: Apache-2.0
#include "explaining/capture.h"

#include <algorithm>

#include "api/internal.h"
#include "base/clock.h"
#include "base/utc.h"

namespace moka {

namespace {

double middle_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// Runs the predictions of a capture.
class CapturedRun {
 public:
  CapturedRun(const Model::Impl& impl, const Features& inputs, const PredictionOptions& options,
              const CaptureOptions& settings)
      : impl_(impl), inputs_(inputs), options_(options), settings_(settings), capturer_(keeper()) {}

  Capture run() {
    predict(nullptr);  // plans what depends on values, and does one-time work
    const double prediction = middle_of(repeat(nullptr));
    capture(false);  // compiles regions so that they tell of their commands
    const double captured = middle_of(repeat(&capturer_));
    if (settings_.values) {
      capturer_.begin_values();
      predict(&capturer_);
    }
    Capture out = capturer_.take();
    out.prediction = prediction;
    out.captured = captured;
    out.predictions = settings_.predictions;
    return out;
  }

 private:
  void predict(explaining::Capturer* capturer) {
    Status status = impl_.predict(inputs_, outputs_, options_, nullptr, nullptr, false, capturer);
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    api::unwrap(std::move(status));
  }
  void capture(bool counts) {
    capturer_.begin();
    predict(&capturer_);
    capturer_.end(counts);
  }
  std::vector<double> repeat(explaining::Capturer* capturer) {
    std::vector<double> seconds;
    for (int i = 0; i < settings_.predictions; i++) {
      const auto start = Clock::now();
      if (capturer == nullptr)
        predict(nullptr);
      else
        capture(true);
      seconds.push_back(seconds_since(start));
    }
    return seconds;
  }

  explaining::KeepValue keeper() {
    return [this](CapturedCommand& command, size_t number, size_t buffer, const ir::TensorView& content) -> Status {
      CapturedBuffer& b = command.buffers[buffer];
      const MultiArray array = MOKA_TRY(api::to_array(content));
      b.summary = summary_of(array);
      if (!settings_.on_value) return {};
      try {
        b.file = settings_.on_value(command, number, b, buffer, array);
      } catch (...) {  // this may be a thread of the device
        failure_ = std::current_exception();
        return fail(ErrorCode::io, "a value that cannot be kept");
      }
      return {};
    };
  }

  const Model::Impl& impl_;
  const Features& inputs_;
  const PredictionOptions& options_;
  const CaptureOptions& settings_;
  std::exception_ptr failure_;  ///< what CaptureOptions::on_value threw
  explaining::Capturer capturer_;
  Features outputs_;
};

}  // namespace

Capture Model::capture(const Features& inputs, const CaptureOptions& settings, const PredictionOptions& options) const {
  if (settings.predictions < 1)
    throw Exception(ErrorKind::invalid_argument, cat("predictions: expected at least 1, got ", settings.predictions));
  const Features given = inputs.empty() ? random_inputs() : inputs;
  PredictionOptions with_state = options;
  std::optional<State> state;
  if (options.state == nullptr && !impl_->function.states.empty()) with_state.state = &state.emplace(new_state());
  Capture out = CapturedRun(*impl_, given, with_state, settings).run();
  out.version = MOKA_VERSION;
  out.date = utc_now();
  out.model = impl_->source->path;
  out.function = impl_->configuration.function_name;
  return out;
}

}  // namespace moka
