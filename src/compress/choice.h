// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace moka::compress {

/// A form that a weight could take.
struct Option {
  size_t bytes = 0;
  double noise = 0;  ///< of the model's outputs, as a share of their power
};
/// The options of each weight, at least one.
using Options = std::vector<std::vector<Option>>;

/// One option for each weight. The noises of the weights add up, because their errors count as independent.
struct Choice {
  std::vector<size_t> options;
  size_t bytes = 0;
  double noise = 0;
};

/// Choices from the least noise to the fewest bytes. Each changes one weight of the choice before: the weight that
/// saves the most bytes for the noise it adds. The choices form a convex curve, so no mixture of two of them beats
/// another.
std::vector<Choice> curve_of(const Options& options);

/// The fewest bytes that were found for this noise. If every choice has more, the one with the least noise.
Choice choose_by_noise(const Options& options, double noise);
/// The least noise that was found for so many bytes. If every choice has more bytes, the one with the fewest.
Choice choose_by_bytes(const Options& options, size_t bytes);

}  // namespace moka::compress
