// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "format/onnx/model.h"
#include "import/description.h"
#include "ir/program.h"

/// Writes functions of programs as ONNX graphs. docs/onnx.md describes the mapping.
namespace moka::compiler::onnx {

inline constexpr int kOldestOpset = 17, kNewestOpset = 23;

struct ExportOptions {
  int opset = 0;  ///< kOldestOpset to kNewestOpset; 0: the oldest that has every operation of the model
  std::string producer_version;
};

/// An operation that ONNX cannot express.
struct Unexpressed {
  std::string name, type, reason;
};

struct Exported {
  format::onnx::Model model;             ///< refers to the constants of the program
  std::vector<Unexpressed> unexpressed;  ///< not empty: `model` is incomplete
  int operations = 0;                    ///< without constants
  int nodes = 0;                         ///< of the graph and its inner graphs
};

/// `described`: the function's inputs and outputs, in its order. Errors: invalid_argument (the opset), unsupported (a
/// feature at the boundary).
Result<Exported> export_function(const ir::Function& function, const import::FunctionDescription& described,
                                 const import::ModelDescription& model, const ExportOptions& options);

}  // namespace moka::compiler::onnx
