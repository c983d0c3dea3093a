// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "plan/plan.h"

namespace moka {
class FileReader;
}

namespace moka::plan {

/// An operation whose kernel must still pack its weights, and the constants among its inputs.
struct Preparation {
  struct Input {
    const ir::Value* value = nullptr;  ///< null: not a constant
    bool pooled = false;               ///< the constant pool has it
    ir::Tensor tensor;                 ///< the constant, if the plan holds it
  };
  const ir::Op* op;
  const kernel::Device* device;
  std::shared_ptr<kernel::KernelChoice> choice;
  std::vector<Input> inputs;  ///< per input of the kernel
};

/// Prepares one kernel on the calling thread. `reader` reads the weights to pack; null: through the file's mapping.
Status prepare_kernel(Preparation& p, const PlanOptions& options, FileReader* reader);
/// Prepares one kernel from weights that are packed already. Weights that are not packed yet are an error.
Status prepare_from_packed(Preparation& p, const PlanOptions& options);
/// Prepares every kernel, on as many threads as the options allow. Returns the error of the first that fails.
Status prepare_kernels(std::vector<Preparation>& all, const PlanOptions& options);
/// Prepares the kernels of a renewable plan and of the plans of its blocks again from the new values of parameters, in
/// the memory where their packed forms are. Precondition: the pool of constants is renewed, and the plan is not
/// running.
Status renew(const Plan& plan, const PlanOptions& options);

}  // namespace moka::plan
