// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "compress/value_ranges.h"
#include "format/source.h"

namespace moka::compress {

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
