#pragma once

#include <memory>

#include "moka/model.h"

namespace moka {

struct StreamOptions {
  size_t ahead = 4;  ///< inputs that wait or are predicted before push waits; at least 1
  /// Predictions at the same time: with two, values of one are copied while a device computes the other. With a state
  /// it is one.
  int at_once = 2;
  PredictionOptions prediction;  ///< of all inputs
};

/// Predictions one behind the other. While they run, on threads of the stream, its user makes the next inputs: pictures
/// are decoded and resized while a net computes. Results come in the order of the inputs.
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
  /// Throws invalid_argument: `ahead` of 0, `at_once` below 1.
  explicit Stream(Model model, StreamOptions options = {});
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  /// Waits for predictions that run; inputs that wait are dropped.
  ~Stream();

  /// Starts a prediction; waits while `ahead` others are not done.
  void push(Features inputs);
  /// The result of the oldest input; waits until it is there. Throws what its prediction throws, naming its number in
  /// the stream, and invalid_argument where there is none. The stream goes on afterwards.
  Features pop();
  /// Inputs whose results were not popped yet.
  size_t size() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace moka
