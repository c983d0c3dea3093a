// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "format/onnx/read.h"
#include "ir/program.h"

/// ONNX models as ML programs.
namespace moka::import::onnx {

struct Options {
  /// The program uses the operations of this set. ios17 suffices for most models, weights below 8 bits need ios18.
  ir::Opset opset = ir::Opset::ios17;
  /// Sizes of named dimensions, or of inputs by name; the others stay flexible.
  std::map<std::string, int64_t> dimensions;
  std::map<std::string, std::vector<int64_t>> shapes;
  /// Inputs that become constants.
  std::map<std::string, ir::Tensor> constants;
  /// Numbers of elements of inputs that are sequences.
  std::map<std::string, int64_t> lengths;
  /// Optional inputs without a value.
  std::set<std::string> absent;
};

/// An input or output of the graph beside that of the program.
struct Feature {
  std::string name;  ///< in the graph
  ir::Value* value;  ///< whose name may differ where MIL does not allow the graph's
  format::onnx::DataType type;
  std::vector<std::string> dimensions = {};  ///< of an input: the names of its flexible sizes, else empty texts
  std::optional<int64_t> element = {};       ///< of a sequence: the position in it
};

struct Imported {
  ir::Program program;  ///< with the function `main`
  std::vector<Feature> inputs, outputs;
  /// The positions in `outputs` of a classifier's label and of its dictionary of probabilities.
  std::optional<size_t> label, probabilities;
  std::vector<std::string> remarks;
};

/// Operators become MIL operations that compute the same. int64 becomes int32, double float32; sizes that the graph
/// computes become constants where the shapes are known. Errors: malformed, unsupported (they name node and operator),
/// and those of reading weights.
Result<Imported> import_model(const format::onnx::ModelFile& file, const Options& options = {});

/// The operators that are imported, sorted, with their domain: "ai.onnx.Conv".
std::vector<std::string> operators();

}  // namespace moka::import::onnx
