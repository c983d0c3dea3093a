// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compress/encoding.h"
#include "format/source.h"

namespace moka::compress {

/// The least and the greatest element of a value.
struct ValueRange {
  double least = 0, greatest = 0;
  bool is_finite() const { return std::isfinite(least) && std::isfinite(greatest); }
};
/// By the names of values in the program.
using ValueRanges = std::map<std::string, ValueRange, std::less<>>;

struct Activations {
  bool symmetric = true, is_signed = true;
  /// Whether an operation keeps its inputs as they are, by its name and its type. Null: none does.
  std::function<bool(std::string_view name, std::string_view type)> keeps;
};

/// A value that the program rounds to integers of 8 bits.
struct QuantizedValue {
  std::string name;
  ValueRange range;  ///< values that are concatenated with each other share one
  double scale = 1;
  int zero_point = 0;
};

/// Inserts quantize and dequantize where coremltools.optimize.coreml.linear_quantize_activations does: before conv,
/// linear, avg_pool, max_pool and additions of two values, and after them or the activation function behind them. Each
/// value is quantized once, and each of these operations has a dequantize of its own. Values without a finite
/// range, constants and what the program returns stay. Errors: unsupported (another kind of model, several functions, a
/// program for iOS 16), malformed.
Result<std::vector<QuantizedValue>> quantize_activations(format::ModelSource& source, const ValueRanges& ranges,
                                                         const Activations& activations);

}  // namespace moka::compress
