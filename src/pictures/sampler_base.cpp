// SPDX-License-Identifier: Apache-2.0
#define MOKA_SAMPLER sampler_base
#include "pictures/sampler.inc"
