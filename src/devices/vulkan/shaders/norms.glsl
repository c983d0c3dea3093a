// SPDX-License-Identifier: Apache-2.0
// Multiplies and shifts each channel of a result behind its functions, as a batch norm does. The shader that includes this
// declares `norms`, a factor and an addend for each channel, and `norms_at`. Shaders for weights that are bytes do neither:
// they have scales in that binding.
#ifdef TO_u8
bool has_norm() { return false; }
vec2 norm_of(uint channel) { return vec2(1.0, 0.0); }
#else
bool has_norm() { return (has & HAS_NORM) != 0; }
vec2 norm_of(uint channel) { return has_norm() ? norms[norms_at + channel] : vec2(1.0, 0.0); }
#endif

float normed(float v, vec2 n) { return has_norm() ? v * n.x + n.y : v; }
