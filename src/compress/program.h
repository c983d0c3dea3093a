#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compress/encoding.h"
#include "format/source.h"

namespace moka::compress {

/// A weight that can be compressed, of rank 2 or more: in an ML program a constant of floats in a weight file that an
/// operation other than constexpr_* reads, in a neural network a weight of floats.
struct Site {
  std::string name;       ///< of the constant; of the layer and its field, "conv1.weights"
  std::string operation;  ///< the type of the first operation that reads it, or of the layer
  Shape shape;
  bool half = false;
  bool shared = false;  ///< another constant has the same elements and use
  int64_t elements = 0;
};

/// How to compress a weight. Pruning with another form gives the joint form of iOS 18. Neural networks have linear
/// forms and palettes of 1 to 8 bits, and halves.
struct Recipe {
  std::optional<Prune> prune;
  std::variant<std::monostate, Linear, Palette, Half> form;
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

/// The bytes that the weight has before it is compressed.
inline size_t bytes_of(const Site& site) { return static_cast<size_t>(site.elements) * (site.half ? 2 : 4); }

using Chooser = std::function<Recipe(const Site&)>;
/// Called on one thread when a weight is done.
using Progress = std::function<void(size_t done, size_t total)>;

/// Compresses the weights for which `choose`, which is called for each in order, gives a recipe. Each is decoded again
/// and compared with its source. All weights of programs are in one file afterwards. Errors: unsupported (no ML program
/// or neural network, or a program for iOS 15), malformed, and internal if a decoded weight differs from its source by
/// more than its form allows.
Result<std::vector<Outcome>> compress(format::ModelSource& source, const Chooser& choose,
                                      const Progress& progress = nullptr);

/// The two parts of `compress`, for the programs and for the networks in a model.
Result<std::vector<Outcome>> compress_programs(format::ModelSource& source, const Chooser& choose,
                                               const Progress& progress);
Result<std::vector<Outcome>> compress_networks(format::ModelSource& source, const Chooser& choose,
                                               const Progress& progress);

}  // namespace moka::compress
