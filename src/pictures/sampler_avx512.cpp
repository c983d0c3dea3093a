// SPDX-License-Identifier: Apache-2.0
#define MOKA_SAMPLER sampler_avx512
#include "pictures/sampler.inc"
