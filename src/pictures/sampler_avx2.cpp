// SPDX-License-Identifier: Apache-2.0
#define MOKA_SAMPLER sampler_avx2
#include "pictures/sampler.inc"
