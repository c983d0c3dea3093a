#pragma once

#include "kernel/kernel.h"

namespace moka::kernel {

/// What a device does that may compute an operation only while the one reader of its result runs: it also is one of
/// these. The planner then keeps the inputs of the first until the second is done.
class Fusing {
 public:
  virtual ~Fusing() = default;
  virtual bool may_join(const KernelChoice& first, const KernelChoice& reader) const = 0;
};

}  // namespace moka::kernel
