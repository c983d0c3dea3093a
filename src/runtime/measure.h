// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "plan/choices.h"

namespace moka::runtime {

/// Runs the candidates alternately on random finite numbers, as the executor would, with the conversions that each
/// needs. A candidate's time is the mean of two minima: one with its weights evicted from the caches, one with its
/// weights as the previous run left them. One measurement runs at a time.
std::shared_ptr<plan::KernelTimer> kernel_timer();

}  // namespace moka::runtime
