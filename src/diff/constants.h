// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "ir/program.h"
#include "moka/comparison.h"

/// Compares two programs (moka/comparison.h).
namespace moka::diff {

/// The value of a constant, or of operations on constants. nullopt: it is none, or larger than a few gigabytes.
std::optional<ir::Tensor> tensor_of(const ir::Value& value);

/// Some elements of a constant, enough to tell whether it resembles another one.
struct Sample {
  std::vector<double> elements;
  int64_t count = 0;
  std::string text;  ///< of constants without numbers
};
Sample sample_of(const ir::Tensor& tensor);
/// Whether they are equal up to compression and rounding. Short ones must be equal up to rounding.
bool resembles(const Sample& a, const Sample& b);

/// What differs; nullopt: nothing. Sets everything but the operations and the parameter. Null: absent.
std::optional<ModelComparison::Difference> difference_of(const ir::Tensor* a, const ir::Tensor* b);

/// A list or a dictionary as MIL text, of which long ones lose the end.
std::string list_text(const ir::Constant& constant);
/// How the operations that expand a constant store it: "4-bit palette"; empty: none does.
std::string form_of(const ir::Value& value);
/// "[1, 1]", or "fp32 64 x 3 x 7 x 7" for more than a few elements.
std::string text_of(const ir::Tensor& tensor);

}  // namespace moka::diff
