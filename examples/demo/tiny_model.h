// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "moka/program.h"

namespace demo {

/// A listener without training, built in code for when Basic Pitch cannot be downloaded: a bank of windowed sines and
/// cosines at the 88 pitches, their power relative to neighboring pitches, and its rise. Inputs and outputs have the
/// names and shapes of Basic Pitch's: input_2 [1, 43844, 1], Identity_1 (notes) and Identity_2 (onsets) [1, 172, 88].
moka::ProgramBuilder tiny_model();

}  // namespace demo
