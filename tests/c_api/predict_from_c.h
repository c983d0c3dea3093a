// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef __cplusplus
extern "C" {
#endif
/* Adds `y` to each of `x`, two numbers, with a model made here, in C; returns a moka_status. */
int add_from_c(const float x[2], float y, float result[2]);
#ifdef __cplusplus
}
#endif
