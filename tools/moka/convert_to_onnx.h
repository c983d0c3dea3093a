// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "outputs.h"

namespace moka::cli {

struct ToOnnxOptions {
  std::string model, destination, function;
  int opset = 0;
  bool external_data = false;
  bool check = false;  ///< write nothing that onnx.checker refuses
  bool list = false;   ///< list what ONNX cannot express, and write nothing
  bool json = false;
};

/// `moka convert` of a Core ML model to ONNX. Returns the exit code: 1 when the list is not empty.
int convert_to_onnx(const ToOnnxOptions& options, const Outputs& outputs);

}  // namespace moka::cli
