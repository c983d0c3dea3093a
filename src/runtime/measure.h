#pragma once

#include <memory>

#include "plan/choices.h"

namespace moka::runtime {

/// Runs the candidates in turns on random finite numbers, as the executor would, with the conversions that each needs.
/// What counts of each is the mean of its least time with weights in no cache and of that with weights as left behind.
std::shared_ptr<plan::KernelTimer> kernel_timer();

}  // namespace moka::runtime
