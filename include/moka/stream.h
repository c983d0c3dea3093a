// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "moka/model.h"

namespace moka {

struct StreamOptions {
  size_t ahead = 4;  ///< inputs in the queue or in progress before push blocks; at least 1
  /// Number of concurrent predictions. With two, the stream copies values of one while a device computes the other.
  /// With a state only one runs at a time.
  int at_once = 2;
  PredictionOptions prediction;  ///< options of all predictions
};

/// A queue of predictions that run on threads of the stream while the caller prepares the next inputs: it decodes and
/// resizes pictures while a network computes. Results come in the order of the inputs.
///
///     Stream stream(model);
///     while (std::optional<Image> picture = camera.next()) {
///       stream.push({{"image", std::move(*picture)}});
///       if (stream.size() > 4) show(stream.pop());
///     }
///     while (stream.size() > 0) show(stream.pop());
///
/// One thread may push while another pops.
class MOKA_EXPORT Stream {
 public:
  /// Throws invalid_argument when `ahead` is 0, or `at_once` is below 1 or above 1024.
  explicit Stream(Model model, StreamOptions options = {});
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  /// Waits for running predictions and drops the inputs that have not started.
  ~Stream();

  /// Queues a prediction. Blocks while `ahead` predictions are unfinished.
  void push(Features inputs);
  /// Returns the result of the oldest input and waits for it if necessary. Throws what the prediction throws, with its
  /// number in the stream, and invalid_argument when the stream is empty. The stream stays usable afterwards.
  Features pop();
  /// Number of inputs whose results have not been popped.
  size_t size() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace moka
