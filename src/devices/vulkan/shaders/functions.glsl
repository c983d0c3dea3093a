// SPDX-License-Identifier: Apache-2.0
// The elementwise functions of src/base/scalar_math.h. exp() and tanh() of some drivers overflow to NaN, so their arguments
// are limited to the range in which the result changes. asin() and acos() may be off by 4e-4.
float tanh_of(float x) { return isnan(x) ? x : tanh(clamp(x, -15.0, 15.0)); }

float expm1_of(float x) {
  // The series where e^x - 1 would cancel.
  if (abs(x) < 0.25) return x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0 + x / 720.0)))));
  return exp(x) - 1.0;
}

float log1p_of(float x) {
  if (abs(x) < 0.05) return x * (1.0 - x * (0.5 - x * (1.0 / 3.0 - x * (0.25 - x * (0.2 - x / 6.0)))));
  return log(1.0 + x);
}

// Drivers differ about numbers that are not normal.
float log_of(float x) { return x < 1.2e-38 ? log(x * 16777216.0) - 16.635532333438687 : log(x); }

// pow() is undefined for a negative base in GLSL, and for NaN in some drivers. It uses logarithms, so products are more
// exact for small whole exponents.
float power_of(float p, float q) {
  if (q == 0.0 || p == 1.0) return 1.0;
  if (isnan(p) || isnan(q)) return NAN;
  if (q == floor(q) && abs(q) < 8.0) {
    const uint n = uint(abs(q));
    const float p2 = p * p;
    const float m = ((n & 1u) != 0u ? p : 1.0) * ((n & 2u) != 0u ? p2 : 1.0) * ((n & 4u) != 0u ? p2 * p2 : 1.0);
    return q < 0.0 ? 1.0 / m : m;
  }
  if (p == -1.0 && isinf(q)) return 1.0;
  const bool extreme = p == 0.0 || isinf(p);
  const float m = !extreme ? pow(abs(p), q) : (p == 0.0) == (q > 0.0) ? 0.0 : INF;
  if (floatBitsToInt(p) >= 0) return m;
  if (q != floor(q)) return extreme ? m : NAN;
  return mod(abs(q), 2.0) == 1.0 ? -m : m;
}

// Abramowitz and Stegun 7.1.26 beyond 0.5, the Taylor series before it: 1.5e-7 at most.
float erf_of(float x) {
  if (isnan(x)) return x;
  const float a = abs(x);
  if (a < 0.5) {
    const float s = x * x;
    return 1.1283791670955126 * x *
           (1.0 - s * (1.0 / 3.0 - s * (1.0 / 10.0 - s * (1.0 / 42.0 - s * (1.0 / 216.0 - s / 1320.0)))));
  }
  const float t = 1.0 / (1.0 + 0.3275911 * a);
  const float p =
      t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  const float y = 1.0 - p * exp(-min(a * a, 80.0));
  return x < 0.0 ? -y : y;
}

// Without isnan(), some drivers compile these to max() and min(), which return the other operand for NaN.
float at_least(float x, float low) { return x >= low || isnan(x) ? x : low; }
float at_most(float x, float high) { return x <= high || isnan(x) ? x : high; }

float clip_of(float x, float a, float b) { return at_most(at_least(x, a), b); }

float hard_swish_of(float x) {
  const float y = x / 6.0 + 0.5;
  return x < -3.0 ? 0.0 : x * at_most(y, 1.0);
}

float sigmoid_of(float x) { return 1.0 / (1.0 + exp(-x)); }

float function_of(uint f, float x, float a, float b) {
  switch (f) {
    case F_ABS: return abs(x);
    case F_ACOS: return !(abs(x) <= 1.0) ? NAN : atan(sqrt((1.0 - x) * (1.0 + x)), x);
    case F_ASIN: return !(abs(x) <= 1.0) ? NAN : atan(x, sqrt((1.0 - x) * (1.0 + x)));
    case F_ATAN: return isnan(x) ? x : atan(x);
    case F_ATANH: return 0.5 * log((1.0 + x) / (1.0 - x));
    case F_CEIL: return ceil(x);
    case F_CLAMPED_RELU: return at_most(x < 0.0 ? a * x : x, b);
    case F_CLIP: return clip_of(x, a, b);
    case F_COS: return cos(x);
    case F_COSH: return 0.5 * (exp(x) + exp(-x));
    case F_ELU: return x < 0.0 ? a * expm1_of(x) : x;
    case F_ERF: return erf_of(x);
    case F_EXP: return exp(x);
    case F_EXP2: return exp2(x);
    case F_FLOOR: return floor(x);
    case F_GELU: return 0.5 * x * (1.0 + erf_of(x * 0.70710678118654752));
    case F_GELU_SIGMOID: return x / (1.0 + exp(-1.702 * x));
    case F_GELU_TANH: return 0.5 * x * (1.0 + tanh_of(0.79788456080286536 * (x + 0.044715 * x * x * x)));
    case F_HARD_SWISH: return hard_swish_of(x);
    case F_INVERSE: return 1.0 / (x + a);
    case F_LEAKY_RELU: return x < 0.0 ? a * x : x;
    case F_LIMITS: return a > b ? hard_swish_of(x) : clip_of(x, a, b);
    case F_LINEAR: return a * x + b;
    case F_LOG: return x == 0.0 ? b : log_of(x + a);
    case F_RELU: return at_least(x, 0.0);
    case F_RELU6: return clip_of(x, 0.0, 6.0);
    case F_ROUND: return roundEven(x);
    case F_RSQRT: return 1.0 / sqrt(x + a);
    case F_SCALED_TANH: return a * tanh_of(b * x);
    case F_SIGMOID: return sigmoid_of(x);
    case F_SIGMOID_HARD: return clip_of(a * x + b, 0.0, 1.0);
    case F_SIGN: return isnan(x) ? x : sign(x);
    case F_SILU: return x / (1.0 + exp(-x));
    case F_SIN: return sin(x);
    case F_SINH: return abs(x) < 1.0 ? 0.5 * (expm1_of(x) - expm1_of(-x)) : 0.5 * (exp(x) - exp(-x));
    case F_SOFTPLUS: return log1p_of(exp(-abs(x))) + at_least(x, 0.0);
    case F_SOFTSIGN: return x / (1.0 + abs(x));
    case F_SQRT: return sqrt(x);
    case F_SQUARE: return x * x;
    case F_TAN: return tan(x);
    case F_TANH: return tanh_of(x);
    case F_THRESHOLD: return at_least(x, a);
    case F_THRESHOLDED_RELU: return x >= a || isnan(x) ? x : 0.0;
    default: return x;
  }
}

float binary_of(uint f, float p, float q) {
  switch (f) {
    case B_ADD: return p + q;
    case B_SUB: return p - q;
    case B_MUL: return p * q;
    case B_MAX: return p >= q || isnan(p) ? p : q;
    case B_MIN: return p <= q || isnan(p) ? p : q;
    case B_DIV: return p / q;
    case B_PRELU: return p < 0.0 ? q * p : p;
    case B_POW: return power_of(p, q);
    default: return 0.0;
  }
}
