// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "moka/model.h"
#include "moka/output.h"

namespace moka {

struct OnnxExportOptions {
  bool check = false;    ///< write nothing, and list all operations that ONNX cannot express
  int opset = 0;         ///< 17 to 23; 0: the oldest one, from 17 on, in which ONNX has the operations of the model
  std::string function;  ///< of an ML program; empty: the default
  bool external_data = false;  ///< write weights to a file of their own; models above 64 MB always have one
  Overwrite overwrite = Overwrite::own_kind;
};

/// An operation that ONNX cannot express.
struct UnsupportedOperation {
  std::string name;  ///< in the model
  std::string type;  ///< its type in MIL: "crop_resize"
  std::string reason;
};

struct OnnxExport {
  int opset = 0;
  int64_t operations = 0;  ///< of the model, without constants
  int64_t nodes = 0;       ///< of the graph
  std::vector<UnsupportedOperation> unsupported;
  std::vector<std::string> files;  ///< that were written
};

/// Writes a model of any kind as ONNX: `destination`, and where weights have a file of their own, destination.data.
/// docs/onnx.md describes the graph. Throws Exception: what opening the model throws; unsupported, naming the first
/// operation or feature that ONNX cannot express; invalid_argument (the opset), not_found (the function), io.
MOKA_EXPORT OnnxExport export_onnx(const std::filesystem::path& path, const std::filesystem::path& destination,
                                   const OnnxExportOptions& options = {});
MOKA_EXPORT OnnxExport export_onnx(const ModelAssetView& model, const std::filesystem::path& destination,
                                   const OnnxExportOptions& options = {});
/// As above, for a program in the text form of MIL, as Model::from_mil takes it.
MOKA_EXPORT OnnxExport export_mil_onnx(const std::string& text, const std::filesystem::path& destination,
                                       const OnnxExportOptions& options = {},
                                       const std::map<std::string, std::vector<std::byte>>& weights = {});

}  // namespace moka
