// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel.h"
#include "plan/resolve.h"

namespace moka::plan {

/// The size of a block, without the blocks inside it.
kernel::ProgramFacts program_facts(const Resolved& resolved);

}  // namespace moka::plan
