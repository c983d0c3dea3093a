// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "outputs.h"

namespace moka::cli {

struct FromOnnxOptions {
  std::string model, destination, opset;
  std::vector<std::string> shapes, dimensions, lengths, absent;
  bool json = false;
};

/// `moka convert` of an ONNX model. Returns the exit code. Throws UsageError, and what the import throws.
int convert_from_onnx(const FromOnnxOptions& options, const Outputs& outputs);

}  // namespace moka::cli
