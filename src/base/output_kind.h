// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace moka {

/// What Moka writes. docs/writing.md says how each kind is recognized.
enum class OutputKind : uint8_t {
  specification,   ///< .mlmodel
  package,         ///< .mlpackage, a folder
  compiled_model,  ///< .mlmodelc, a folder
  model,           ///< one of the three above
  onnx,
  onnx_data,  ///< NAME.onnx.data, to which NAME.onnx refers
  encrypted_model,
  identity,  ///< a secret key, which nothing replaces
  trace,
  page,    ///< HTML
  report,  ///< JSON of moka report
  array,   ///< .npy
  picture,
  json,
  table,   ///< of predictions
  source,  ///< code that moka generate writes
  property_list,
  folder,  ///< a folder for files of other kinds
  rates,
  kernel_times,
  capture,  ///< JSON of moka capture
  packed_weights,
  digests,    ///< of a model's files, beside packed weights
  pipelines,  ///< of a GPU
};

/// With an article: "a trace".
std::string_view describe(OutputKind kind);
/// Whether a folder has this kind. `model` may be a folder.
bool is_folder(OutputKind kind);
/// Whether the file or folder at `path` has this kind, as far as its content tells. False where it cannot be read.
bool holds(const std::string& path, OutputKind kind);
/// What is at `path`, with an article: "a Core ML specification", "a folder", "another file".
std::string described_content(const std::string& path);

}  // namespace moka
