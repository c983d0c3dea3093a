// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "moka/build.h"

namespace moka {

struct OnnxImportOptions {
  /// The operation set of the program, such as "ios17". Empty: the oldest one, from ios17 on, that has what the model
  /// needs.
  std::string opset;
  /// Sizes of dimensions by name. The others stay flexible.
  std::map<std::string, int64_t> dimensions;
  /// Shapes of inputs by name.
  std::map<std::string, std::vector<int64_t>> shapes;
  /// Values of inputs by name. These inputs become constants, which Core ML requires for many parameters.
  std::map<std::string, MultiArray> constants;
  /// Lengths of inputs that are sequences, by name. Each element of `x` becomes an input, `x_0` and so on, whose shape
  /// may be given under its own name. The elements of an output that is a sequence are outputs, too.
  std::map<std::string, int64_t> lengths;
  /// Optional inputs that have no value. The other optional inputs become ordinary inputs.
  std::set<std::string> absent;
};

/// An input or output of an ONNX graph, and what it is in the program.
struct OnnxFeature {
  std::string name;                ///< in the graph
  std::string feature;             ///< in the program; differs where MIL does not allow the name
  std::string type;                ///< ONNX's element type: "int64", "float"
  std::optional<int64_t> element;  ///< its position in the sequence `name`
};

struct OnnxImport {
  ModelSource source;
  std::vector<OnnxFeature> inputs, outputs;
  std::vector<std::string> remarks;  ///< what changed: integers of 64 bits, and the like
};

/// Converts an ONNX model to an ML program. Weights stay in the mapped file until the model is saved.
/// docs/onnx.md lists what is supported. Throws Exception: not_found, io, malformed; unsupported (names the node and
/// the operator); invalid_argument (options).
MOKA_EXPORT OnnxImport import_onnx(const std::filesystem::path& path, const OnnxImportOptions& options = {});
/// The same for a model in memory, without external data. Copies the bytes.
MOKA_EXPORT OnnxImport import_onnx(std::span<const std::byte> model, const OnnxImportOptions& options = {});

/// The operators that are imported, sorted: "ai.onnx.Conv".
MOKA_EXPORT std::vector<std::string> imported_onnx_operators();

}  // namespace moka
