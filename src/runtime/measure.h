#pragma once

#include <memory>

#include "plan/choices.h"

namespace moka::runtime {

/// Runs the candidates in turns on random finite numbers, as the executor would, with the conversions that each needs.
/// Each counts with the mean of two times: its least time with weights out of the caches, and with weights where they
/// were left.
std::shared_ptr<plan::KernelTimer> kernel_timer();

}  // namespace moka::runtime
