#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compress/encoding.h"
#include "format/source.h"

namespace moka::compress {

/// A weight of an ML program that can be compressed: a constant of floats in a weight file, of rank 2 or more, that an
/// operation other than constexpr_* reads.
struct Site {
  std::string name;       ///< of the constant
  std::string operation;  ///< the type of the first operation that reads it
  Shape shape;
  bool half = false;
  bool shared = false;  ///< another constant has the same elements and use
  int64_t elements = 0;
};

/// How to compress a weight. Pruning with another form gives the joint form of iOS 18.
struct Recipe {
  std::optional<Prune> prune;
  std::variant<std::monostate, Linear, Palette> form;
  bool keeps() const { return !prune && std::holds_alternative<std::monostate>(form); }
};

/// What became of a weight.
struct Outcome {
  Site site;
  Recipe recipe;
  std::string skipped;  ///< why it was not compressed; empty: it was
  size_t bytes_before = 0, bytes_after = 0;
  double signal_to_noise = 0;  ///< in dB, of the weight itself; infinite: it is exact
  double largest_error = 0;
};

using Chooser = std::function<Recipe(const Site&)>;
/// Called on one thread when a weight is done.
using Progress = std::function<void(size_t done, size_t total)>;

/// Compresses the weights for which `choose` gives a recipe. Each is decoded again and compared with its source. All
/// weights are in one file afterwards. Errors: unsupported (no ML program, or one for iOS 15), malformed, and internal
/// if a decoded weight differs from its source by more than its form allows.
Result<std::vector<Outcome>> compress(format::ModelSource& source, const Chooser& choose,
                                      const Progress& progress = nullptr);

}  // namespace moka::compress
