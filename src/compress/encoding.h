// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "format/weights/blob.h"

/// Makes the weights of a model smaller, in the forms of Core ML's constexpr operations.
namespace moka::compress {

using Shape = std::vector<int64_t>;
/// The number of elements.
int64_t count_of(const Shape& shape);
/// Why these values cannot be compressed in any form; empty if they are finite.
std::string refusal(std::span<const float> values);

/// A weight to compress: elements in row-major order, which are halves (then they are exact) or floats.
struct Weight {
  Shape shape;
  bool half = false;
  std::span<const float> values;
  int64_t input_axis = 1, output_axis = 0;  ///< of the operations that use it
};

/// A constant argument of an operation of an encoding.
struct Part {
  format::BlobType type;
  Shape shape;  ///< empty: a scalar
  Bytes data;   ///< packed from the lowest bit up
};

/// One parameter: a constant, or output `output` of an earlier operation of the same encoding.
struct Earlier {
  size_t operation, output;
};
struct Parameter {
  std::string name;
  std::variant<Part, Earlier> value;
};

struct Output {
  format::BlobType type;
  Shape shape;
};

/// An operation of the program: constexpr_affine_dequantize and its like. The last one of an encoding gives the weight.
struct ConstexprOp {
  std::string type;
  std::vector<Parameter> parameters;
  std::vector<Output> outputs;
};

struct Encoding {
  std::vector<ConstexprOp> operations;
  size_t bytes = 0;            ///< of all parts
  std::vector<float> decoded;  ///< the weight that the parts stand for, read back from them
};

enum class Granularity : uint8_t { tensor, channel, group, block };

struct Linear {
  unsigned bits = 8;  ///< 4 or 8
  bool symmetric = true, is_signed = true;
  Granularity granularity = Granularity::channel;  ///< tensor, channel or block
  int64_t block = 32;
};

struct Palette {
  unsigned bits = 4;  ///< 1, 2, 3, 4, 6 or 8
  enum class Mode : uint8_t { kmeans, uniform, unique } mode = Mode::kmeans;
  Granularity granularity = Granularity::tensor;  ///< tensor or group
  int64_t group = 32;                             ///< channels that share a palette
  int64_t vector = 1;                             ///< elements of one entry, along the output channels
  bool scales = false;                            ///< normalizes by a scale of each position across output channels
};

/// Numbers of 16 bits instead of 32, in neural networks.
struct Half {};

struct Prune {
  double sparsity = 0;          ///< fraction of the smallest values that become zero; 0: other rules
  double threshold = -1;        ///< values up to this size become zero; negative: other rules
  int64_t n = 0, m = 0;         ///< of m neighbors along the input channels, the n smallest become zero
  int64_t block = 0;            ///< with sparsity: neighbors along the output channels fall together
  double least_sparsity = 0.5;  ///< with a threshold: weights with a smaller fraction of zeros are refused
};

/// The iOS version whose forms of the operations are written.
enum class Form : uint8_t { ios16, ios18 };

/// Why the weight cannot have this form, for example because blocks do not divide a size or values are infinite. Empty:
/// it can.
std::string refusal(const Weight& weight, const Linear& linear, Form form);
std::string refusal(const Weight& weight, const Palette& palette, Form form);
std::string refusal(const Weight& weight, const Prune& prune, Form form);
/// Why a threshold leaves too few zeros; empty: it does not.
std::string refusal(const std::vector<bool>& kept, const Prune& prune);

/// Each follows coremltools.optimize.coreml in ranges, rounding and layout. Precondition: refusal is empty. `kept`: a
/// mask of elements that are not zero, for joint forms (ios18); empty: all are kept.
Encoding encode(const Weight& weight, const Linear& linear, Form form, const std::vector<bool>& kept = {});
Encoding encode(const Weight& weight, const Palette& palette, Form form, const std::vector<bool>& kept = {});
/// The elements that pruning keeps, and the form that stores them as they are.
std::vector<bool> kept_by(const Weight& weight, const Prune& prune);
Encoding encode_sparse(const Weight& weight, const std::vector<bool>& kept, Form form);

}  // namespace moka::compress
