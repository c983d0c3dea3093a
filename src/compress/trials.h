#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "compress/constants.h"
#include "compress/encode_site.h"

namespace moka::compress {

/// The weight file of a value that is tried.
constexpr std::string_view kTriedFile = "weights/tried.bin";

/// Replaces one weight of a model at a time by what a compressed form would make of it. Not thread-safe, except for
/// `encode`.
class Trials {
 public:
  /// Errors: those of constants_of.
  static Result<Trials> of(const format::ModelSource& source);

  const std::vector<Site>& sites() const { return sites_; }
  /// The iOS version whose forms the weight can take.
  Form form(size_t site) const { return found_[site].form; }
  /// Errors: those of encode_site.
  Result<Made> encode(size_t site, const Recipe& recipe) const;

  /// The specification of a model in which the weight, and those that share it, have other elements.
  struct Changed {
    Bytes specification, file;  ///< `file` is kTriedFile
  };
  Result<Changed> with(size_t site, std::span<const float> values) const;
  /// The model as it is.
  Result<Bytes> unchanged() const;

 private:
  Trials(format::Message specification, std::vector<Found> found, format::WeightStore store);

  format::Message specification_;
  std::vector<Found> found_;
  format::WeightStore store_;
  std::vector<Site> sites_;
};

}  // namespace moka::compress
