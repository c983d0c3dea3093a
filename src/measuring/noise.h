// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "moka/model.h"

namespace moka::measuring {

/// The power of the difference of two outputs as a share of the reference's. Infinite: a value is not finite on one
/// side only, or shapes or keys differ. nullopt: there are no numbers, as in labels and whole numbers.
std::optional<double> noise_share(const FeatureValue& value, const FeatureValue& reference);

/// The answers that a changed model is compared with.
class OutputNoise {
 public:
  /// Predicts all inputs. Throws what predict throws; unsupported: no output has numbers.
  OutputNoise(const Model& model, std::vector<Features> inputs);

  size_t count() const { return inputs_.size(); }
  const Features& input(size_t i) const { return inputs_[i]; }
  /// The greatest noise share of the outputs, for each of these inputs.
  std::vector<double> shares(const Model& model, std::span<const size_t> which) const;
  /// The greatest of all inputs.
  double worst_share(const Model& model) const;

 private:
  std::vector<Features> inputs_, answers_;
};

/// In dB; infinite for no noise.
double signal_to_noise(double share);

}  // namespace moka::measuring
