// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/evaluate.h"
#include "ir/tensor.h"

namespace moka::conformance {

struct Named {
  std::string name;
  ir::Tensor tensor;
};

/// One entry of golden/<op>.json: a program, its inputs by name, and the expected outputs in order.
struct Case {
  std::string op, name, program;
  std::vector<Named> inputs, outputs;
  std::optional<double> tolerance;
};

/// Every case of every file of the folder, sorted by file. Throws std::runtime_error on a malformed file.
std::vector<Case> load_cases(const std::string& folder);

/// The allowed difference relative to max(1, |expected|) for an output of that element type.
double tolerance_of(const Case& c, ir::DType dtype);

/// Empty when equal within `tolerance`, otherwise a description of the first difference. Integers, booleans and strings
/// must be equal; NaN equals NaN; infinities must have the same sign.
std::string difference(const ir::Tensor& got, const ir::Tensor& expected, double tolerance);

/// One way to run a case.
struct Column {
  std::string name;
  Result<std::vector<ir::Tensor>> (*run)(const Case& c);
  bool exact = false;  ///< must equal the first column bit by bit
  /// computes float16 in float32, so where rounding matters its reference is widened_reference()
  bool widened = false;
  double least_tolerance = 0;
};

/// The first column is "reference".
std::vector<Column> columns();
/// The case with float16 computed in float32. Its inputs and results are float32 instead of float16.
Result<Case> widened(const Case& c);
/// The result of the first column for widened(c), converted to the element types that `c` declares.
Result<std::vector<ir::Tensor>> widened_reference(const Case& c);

/// The case's program, and its inputs in the order of its main function.
Result<ir::Program> read_program(const Case& c);
Result<std::vector<ir::RuntimeValue>> ordered_inputs(const Case& c, const ir::Function& f);

}  // namespace moka::conformance
