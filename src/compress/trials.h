// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "compress/constants.h"
#include "compress/encode_site.h"
#include "compress/network.h"

namespace moka::compress {

/// The weight file of a value that is tried.
constexpr std::string_view kTriedFile = "weights/tried.bin";

/// Replaces one weight of a model at a time by the decoded elements of a compressed form. Not thread-safe, except for
/// `encode`.
class Trials {
 public:
  /// Errors: those of constants_of.
  static Result<Trials> of(const format::ModelSource& source);

  /// Those of programs, then those of networks.
  const std::vector<Site>& sites() const { return sites_; }
  bool is_network(size_t site) const { return site >= found_.size(); }
  /// The iOS version whose forms the weight of a program can take.
  Form form(size_t site) const { return found_[site].form; }
  /// A weight that was encoded and decoded again; nullopt: it was skipped.
  struct Tried {
    Outcome outcome;
    std::optional<std::vector<float>> values;
  };
  /// Errors: those of encode_site.
  Result<Tried> encode(size_t site, const Recipe& recipe) const;

  /// A copy of the model in which the weight, and all weights that share its elements, have other elements.
  struct Changed {
    Bytes specification, file;  ///< `file` is kTriedFile; empty for a network
  };
  Result<Changed> with(size_t site, std::span<const float> values) const;
  /// The model as it is.
  Result<Bytes> unchanged() const;

 private:
  Trials(format::Message specification, std::vector<Found> found, std::vector<NetworkWeight> networks,
         format::WeightStore store);
  Result<Changed> with_network_weight(const NetworkWeight& weight, std::span<const float> values) const;

  format::Message specification_;
  std::vector<Found> found_;
  std::vector<NetworkWeight> networks_;
  format::WeightStore store_;
  std::vector<Site> sites_;
};

}  // namespace moka::compress
