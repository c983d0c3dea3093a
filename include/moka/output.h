// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "moka/error.h"

/// How Moka writes files: docs/writing.md.
namespace moka {

/// What a function that writes may replace. Every function replaces an absent or empty file or folder, and one of the
/// kind that it writes, and throws invalid_argument for everything else.
enum class Overwrite : uint8_t {
  own_kind,
  any,  ///< also other files and models; never a folder that is not a model
};

/// What Moka writes, which is recognized by content.
enum class FileKind : uint8_t {
  specification,   ///< .mlmodel
  package,         ///< .mlpackage, a folder
  compiled_model,  ///< .mlmodelc, a folder
  model,           ///< one of the three above
  onnx,
  onnx_data,  ///< NAME.onnx.data, to which NAME.onnx refers
  encrypted_model,
  identity,  ///< a secret key, which only Overwrite::any replaces
  trace,
  page,    ///< HTML
  report,  ///< JSON of moka report
  array,   ///< .npy
  picture,
  json,
  table,   ///< of predictions
  source,  ///< code of generate_interface
  property_list,
  folder,  ///< a folder for files of other kinds
  rates,
  kernel_times,
  capture,  ///< JSON of moka capture
};

/// Why a file or folder is not written.
struct OutputRefusal {
  std::string reason;
  bool can_force = true;  ///< whether Overwrite::any allows it
};
/// Nothing where `path` may be written. `inputs`: files and folders from which the output is made, none of which may be
/// replaced.
MOKA_EXPORT std::optional<OutputRefusal> refused_output(const std::filesystem::path& path, FileKind kind,
                                                        const std::vector<std::filesystem::path>& inputs = {});
template <std::same_as<std::string> Text>
std::optional<OutputRefusal> refused_output(const std::filesystem::path& path, FileKind kind,
                                            const std::vector<Text>& inputs) {
  return refused_output(path, kind, std::vector<std::filesystem::path>(inputs.begin(), inputs.end()));
}

/// Writes a file, which appears when it is complete; a failure leaves the previous one. Devices and pipes are written
/// directly. Throws invalid_argument (refused_output), io.
MOKA_EXPORT void write_file(const std::filesystem::path& path, FileKind kind, std::span<const std::byte> content,
                            Overwrite overwrite = Overwrite::own_kind);

}  // namespace moka
