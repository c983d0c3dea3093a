#pragma once

#include <memory>

#include "plan/choices.h"

namespace moka::runtime {

/// Runs the candidates in turns on random finite numbers, as the executor would: with the conversions that each needs,
/// weights not in a cache. The least time of each counts.
std::shared_ptr<plan::KernelTimer> kernel_timer();

}  // namespace moka::runtime
