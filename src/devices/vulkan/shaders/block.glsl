// SPDX-License-Identifier: Apache-2.0
// For devices whose shared memory is no faster than buffers (Features::local_memory): an invocation computes a block of
// the result and reads what it needs from buffers itself.

uint block() {
  return (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
}

// Defines NAME(), which reads one side of a product: kStep elements of each of 8 lines, from element k on. Instead of lines
// beyond the last, it reads earlier lines again, whose results are not stored. FOURS: reads vectors of four from BUFFER4,
// along k if LINE, else across lines.
#define READ_SIDE(NAME, BUFFER, BUFFER4, FOURS, LINE)                                        \
  void NAME(uint base, uint first, uint lines, uint step, uint k, uint k_step, out float v[kSide]) { \
    if (FOURS && LINE) {                                                                      \
      [[unroll]] for (uint r = 0; r < 8; r++) {                                               \
        const vec4 four = vec4(BUFFER4[(base + min(first + r, lines - 1) * step + k) / 4]);   \
        [[unroll]] for (uint j = 0; j < kStep; j++) v[r * kStep + j] = four[j];               \
      }                                                                                       \
    } else if (FOURS) {                                                                       \
      [[unroll]] for (uint j = 0; j < kStep; j++)                                             \
        [[unroll]] for (uint r = 0; r < 8; r += 4) {                                          \
          const vec4 four = vec4(BUFFER4[(base + min(first + r, lines - 4) + (k + j) * k_step) / 4]); \
          [[unroll]] for (uint i = 0; i < 4; i++) v[(r + i) * kStep + j] = four[i];           \
        }                                                                                     \
    } else {                                                                                  \
      [[unroll]] for (uint r = 0; r < 8; r++)                                                 \
        [[unroll]] for (uint j = 0; j < kStep; j++)                                           \
          v[r * kStep + j] = float(BUFFER[base + min(first + r, lines - 1) * step + (k + j) * k_step]); \
    }                                                                                         \
  }
