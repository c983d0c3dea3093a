// SPDX-License-Identifier: Apache-2.0
// The slope of the activation of a gate where its value is y.
float slope_of(uint f, float y, float a, float b) {
  switch (f) {
    case F_TANH: return 1.0 - y * y;
    case F_SCALED_TANH: return a == 0.0 ? 0.0 : b * (a - y * y / a);
    case F_SIGMOID: return y * (1.0 - y);
    case F_SIGMOID_HARD: return y > 0.0 && y < 1.0 ? a : 0.0;
    case F_RELU: return y > 0.0 ? 1.0 : 0.0;
    default: return a;  // F_LINEAR
  }
}
