// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions, lambdas and member functions of vector loops. They are always inlined and create no symbols, because a
// symbol could be shared with a file that is compiled for another instruction set.
#define MOKA_INLINE static inline __attribute__((always_inline))
#define MOKA_INLINE_LAMBDA __attribute__((always_inline))
#define MOKA_INLINE_MEMBER inline __attribute__((always_inline))
