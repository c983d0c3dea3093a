// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/budget.h"
#include "ir/program.h"

namespace moka::ir {

/// A value at run time: a tensor (for a state: its storage, written in place), a list or a dictionary.
struct RuntimeValue {
  Tensor tensor;
  std::shared_ptr<List> list;
  std::shared_ptr<Dict> dict;

  RuntimeValue() = default;
  RuntimeValue(Tensor t) : tensor(std::move(t)) {}
  RuntimeValue(List l) : list(std::make_shared<List>(std::move(l))) {}
  RuntimeValue(Dict d) : dict(std::make_shared<Dict>(std::move(d))) {}
  /// Borrowed. For lists and dictionaries the dtype is none.
  TensorView view() const;
  /// Concrete for tensors. `declared` supplies what the value cannot tell, such as the element type of an empty list.
  Type type(const Type& declared) const;
};

/// Errors: unsupported for a tuple.
Result<RuntimeValue> runtime_value(const Constant& constant);

struct EvaluateOptions {
  const OpTable* table = nullptr;      ///< resolves epilogues; needed only for operations that have one
  RandomSource* random = nullptr;      ///< null: a fixed stream
  MemoryBudget* budget = nullptr;      ///< charged for every computed tensor and never refunded; null: no limit
  int64_t max_iterations = 1'000'000;  ///< limit per while_loop
};

/// Runs one operation other than `const` and control flow with its reference kernel. `inputs` holds all operands in
/// order. Errors: unsupported (no reference kernel), those of inference and of the kernel.
Result<std::vector<RuntimeValue>> evaluate_op(const Op& op, std::span<const RuntimeValue> inputs,
                                              const EvaluateOptions& options = {});

/// Runs a function operation by operation. `inputs` follow the order of its inputs. States are written in place.
/// Errors: invalid_argument (inputs), data, and those of evaluate_op; they name the operation.
Result<std::vector<RuntimeValue>> evaluate(const Function& function, std::span<const RuntimeValue> inputs,
                                           const EvaluateOptions& options = {});

}  // namespace moka::ir
