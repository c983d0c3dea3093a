#pragma once

#include <utility>
#include <vector>

#include "moka/feature.h"
#include "runtime/frame.h"

namespace moka::api {

/// Arrays into which a frame computes its outputs. They are released after the prediction, whether or not it succeeds,
/// while the frame is kept.
class PlacedOutputs {
 public:
  explicit PlacedOutputs(runtime::Frame& frame) : frame_(frame) {}
  PlacedOutputs(const PlacedOutputs&) = delete;
  PlacedOutputs& operator=(const PlacedOutputs&) = delete;
  ~PlacedOutputs() {
    for (const auto& [i, array] : arrays_) frame_.place_output(i, nullptr);
    for (size_t i = 0; given_ >> i != 0 && i < kMostGiven; i++)
      if (is_given(i)) frame_.place_output(i, nullptr);
  }
  void add(size_t i, MultiArray array) {
    if (array.data() == nullptr) return;
    frame_.place_output(i, array.data());
    arrays_.emplace_back(i, std::move(array));
  }
  /// The caller's own array for the output, which outlives this.
  void give(size_t i, void* data) {
    frame_.place_output(i, data);
    given_ |= uint64_t{1} << i;
  }
  bool is_given(size_t i) const { return i < kMostGiven && (given_ >> i & 1) != 0; }
  static constexpr size_t kMostGiven = 64;
  MultiArray* find(size_t i) {
    for (auto& [of, array] : arrays_)
      if (of == i) return &array;
    return nullptr;
  }

 private:
  runtime::Frame& frame_;
  std::vector<std::pair<size_t, MultiArray>> arrays_;
  uint64_t given_ = 0;  ///< bit i: output i
};

}  // namespace moka::api
