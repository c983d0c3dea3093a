#pragma once

#include <string>
#include <vector>

#include "import/onnx/node.h"

/// Images read at computed positions.
namespace moka::import::onnx {

/// How a sampler treats positions, and the image it reads as [batch, channels, all elements].
struct Sampler {
  Value* image;
  std::vector<int64_t> sizes;  ///< of the sampled axes
  std::string padding;         ///< zeros, border, reflection
  bool align;
};

Value* clamped(const Node& n, Value* x, double low, double high);
/// Positions mirrored at the borders, or at the outermost elements if `align`.
Value* reflected(const Node& n, Value* x, int64_t size, bool align);
/// The elements around positions, in units of elements, times their weights in an interpolation: each [batch, channels,
/// points]. positions: one [batch, points] per axis. mode: nearest, linear, cubic.
std::vector<Value*> weighted_neighbors(const Node& n, const Sampler& s, const std::vector<Value*>& positions,
                                       const std::string& mode);
/// Their sum.
Value* sampled(const Node& n, const Sampler& s, const std::vector<Value*>& positions, const std::string& mode);

}  // namespace moka::import::onnx
