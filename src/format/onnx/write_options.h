// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace moka::format::onnx {

struct WriteOptions {
  /// The name, relative to the model, of the file for raw data of `external_from` bytes or more; empty: none.
  std::string data_file;
  size_t external_from = 1024;
};

}  // namespace moka::format::onnx
