// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "conformance/grid_util.h"

/// Random networks of several operations, in the combinations that passes, planner and kernels treat specially:
/// scales and shifts around layers with weights, activations, moved dimensions, branches that meet again, attention,
/// functions written as chains of simpler ones, activations of 8 bits, conditions, loops, and a state.
///
///     SeededChoices choices("network 7");
///     const Case c = random_network(choices);
///     EXPECT_EQ(network_disagreement(c), "") << c.program;
namespace moka::conformance {

/// A network of up to 14 parts, some of which have blocks with parts of their own, with its inputs, without outputs.
/// All sizes are known, except in networks that are drawn with flexible inputs.
Case random_network(Choices& choices);

/// Runs the case in every column. Returns an empty string when all columns agree with the first. Otherwise it names the
/// column, the result and the difference. The tolerance allows for the rounding of the column and for sums in another
/// order (movements()). Results of a program with float16 are only compared for columns that compute it in float32.
std::string network_disagreement(const Case& c);

}  // namespace moka::conformance
