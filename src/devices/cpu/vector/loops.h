// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Loops over fp32 arrays, compiled once for each instruction set.
namespace moka::devices::cpu::vector {

enum class Unary : uint8_t {
  abs,
  ceil,
  clamped_relu,
  clip,
  elu,
  erf,
  exp,
  exp2,
  floor,
  gelu,
  gelu_sigmoid,
  gelu_tanh,
  hard_swish,
  fake_quantize_int8,  ///< a is the scale, b the zero point
  inverse,
  leaky_relu,
  linear,
  log,
  relu,
  relu6,
  round,
  rsqrt,
  scaled_tanh,
  sigmoid,
  sigmoid_hard,
  sign,
  silu,
  softplus,
  softsign,
  sqrt,
  square,
  tanh,
  threshold,
  thresholded_relu,
  fake_quantize_uint8,
  acos,
  asin,
  atan,
  cos,
  sin,
  tan,
};

enum class Binary : uint8_t {
  add,
  div,
  max,
  min,
  mul,
  pow,
  prelu,
  sub,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  floor_div,
  mod
};

/// Functions of two int32. Sums, differences and products wrap. A zero divisor gives 0.
enum class Integers : uint8_t {
  floor_div,
  mod,
  add,
  sub,
  mul,
  max,
  min,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
};

/// Functions of two booleans, where every byte but 0 is true.
enum class Booleans : uint8_t { both, either, one };

/// The smallest key of Loops::select_at_least, and that of the worst infinity.
constexpr int32_t kKeyOfNaN = -0x7fffffff - 1, kKeyOfWorst = kKeyOfNaN + 0x7fffff;
constexpr int64_t kMostStripes = 2048;   ///< of Loops::best_of_stripes
constexpr int64_t kStandardized = 4096;  ///< of Loops::standardize_rows
constexpr int64_t kMostRows = 5;         ///< of Loops::divide_by_window

enum class Reduce : uint8_t { sum, sum_square, sum_abs, max, min };

/// Input and output arrays may be the same but must not overlap otherwise. Results of exp, log, tanh, erf,
/// trigonometric functions and of functions made of them are within a few units in the last place.
struct Loops {
  /// y[i] = f(x[i]). a and b are the parameters of the operation of that name (for inverse, log and rsqrt, a is
  /// epsilon).
  void (*unary)(Unary f, const float* x, float* y, int64_t n, float a, float b);
  /// y[i] = f(a[i], b[i]). A step of 0 repeats the first element. Comparisons write bytes of 0 and 1 to y.
  void (*binary)(Binary f, const float* a, int a_step, const float* b, int b_step, void* y, int64_t n);
  void (*select)(const uint8_t* cond, int cond_step, const float* a, int a_step, const float* b, int b_step, float* y,
                 int64_t n);
  /// y[i] = x[i] * scale[i] + shift[i]. A step of 0 repeats the first scale and shift.
  void (*scale_shift)(const float* x, const float* scale, const float* shift, int step, float* y, int64_t n);
  /// f of n >= 1 numbers. Sums of blocks are added in double. Maximum and minimum return NaN if there is one.
  double (*reduce)(Reduce f, const float* x, int64_t n);
  /// acc[i] = f(acc[i], x[i]).
  void (*accumulate)(Reduce f, float* acc, const float* x, int64_t n);
  /// y[lane] = sum of x[pixel * lanes + lane]; lanes is 8 or 16.
  void (*sum_pixels)(const float* x, int64_t pixels, int lanes, float* y);
  /// y[lane] = sum of (x[pixel * lanes + lane] - center[lane])^2; lanes is 8 or 16.
  void (*square_pixels)(const float* x, int64_t pixels, int lanes, const float* center, float* y);
  /// y[pixel * lanes + lane] = (x[pixel * lanes + lane] - center[lane]) * scale[lane] + shift[lane]; lanes is 8 or 16.
  void (*center_pixels)(const float* x, int64_t pixels, int lanes, const float* center, const float* scale,
                        const float* shift, float* y);
  /// Sum of x[i] - shift.
  double (*sum_from)(const float* x, int64_t n, float shift);
  /// Sum of (x[i] - mean)^2.
  double (*deviation)(const float* x, int64_t n, double mean);
  /// Sliding maximum: y[o] is the maximum of `taps` pixels from x[o * stride - pad] on, for o in [0, outs). A pixel is
  /// `lanes` (1, 8 or 16) values. NaN counts as the maximum. Every window must have a pixel inside [0, pixels).
  void (*max_slide)(const float* x, int64_t pixels, int lanes, int64_t outs, int64_t stride, int64_t pad, int64_t taps,
                    float* y);
  /// y[i] = e^(x[i] - shift[i * step]) for differences that are at most 0 or NaN. Returns the sum. Results below the
  /// normal range of float are 0.
  double (*exp_minus)(const float* x, const float* shift, int step, float* y, int64_t n);
  /// A step of online softmax over a row or a part of it: raises `top` to the maximum of x, replaces x[i] by
  /// e^(x[i] - top) and returns their sum. The sum is NaN if x has a NaN. While top is -infinity, all results are 0.
  float (*softmax_block)(float* x, int64_t n, float* top);
  /// y[i] = (x[i] - mean) * scale * gamma[i] + beta[i]; null gamma: all ones;
  /// null beta: all zeros.
  void (*center)(const float* x, double mean, float scale, const float* gamma, const float* beta, float* y, int64_t n);
  /// center() of each row of n <= kStandardized numbers, with the row's own mean and standard deviation.
  void (*standardize_rows)(const float* x, const float* gamma, const float* beta, float* y, int64_t n, int64_t rows,
                           double epsilon);
  /// y[r] = sum of w[r * step + i] * x[i], r in [0, rows).
  void (*dot_rows)(const float* w, int64_t step, int64_t rows, int64_t n, const float* x, float* y);
  /// y[i] += sum of w[r * step + i] * x[r], r in [0, rows).
  void (*add_rows)(const float* w, int64_t step, int64_t rows, int64_t n, const float* x, float* y);
  /// y[pixel * lanes + lane] = a[pixel * lanes + i], i = from[lane], or b[pixel * lanes + i - lanes] where i >= lanes,
  /// or 0 if i is negative. lanes is 8 or 16. y may be a or b.
  void (*mix_lanes)(const float* a, const float* b, const int32_t* from, int64_t pixels, int lanes, float* y);
  /// to[c * to_step + r] = from[r * from_step + c].
  void (*transpose)(const float* from, int64_t from_step, int64_t rows, int64_t columns, float* to, int64_t to_step);
  /// y[i] += sum of w[t] * x[at[t] + i] over taps t, in double.
  void (*filter)(const float* x, const int64_t* at, const float* w, int64_t taps, float* y, int64_t n);
  /// y[i] = round(x[i] / scale) + zero, ties to even, clamped to the range of int8 or uint8. NaN gives 0.
  void (*quantize)(const float* x, int64_t n, float scale, float zero, bool is_signed, uint8_t* y);
  /// y[i] = (x[i] - zero) * scale.
  void (*dequantize)(const uint8_t* x, int64_t n, float scale, float zero, bool is_signed, float* y);
  void (*multiply_add)(const float* a, const float* b, const float* c, float* y, int64_t n);  ///< y = a * b + c
  /// y[i] = x[i] / (scale * s + shift)^0.75, s the sum of the squares of window[r * step + i], r in [0, rows), for rows
  /// from 1 to kMostRows. y must not overlap the inputs.
  void (*divide_by_window)(const float* x, const float* window, int64_t step, int64_t rows, float scale, float shift,
                           float* y, int64_t n);
  /// Running sums in double of `columns` columns: y[k * step + i] is the sum of x[j * step + i] for all j up to k, or
  /// below k if `exclusive`. x and y may be the same.
  void (*running_sums)(const float* x, int64_t step, int64_t rows, int64_t columns, bool exclusive, float* y);
  /// Writes the keys among n <= 256 numbers that are `least` or larger, and their positions. Returns how many there
  /// are. Larger keys are larger numbers, or smaller ones if `flip` is -1. NaN has the key kKeyOfNaN in both cases, and
  /// both zeros have the same key.
  int64_t (*select_at_least)(const float* x, int64_t n, int32_t flip, int32_t least, int32_t* keys, int32_t* places);
  /// best[i] = the largest key of x[i], x[i + stripes], x[i + 2 * stripes] and so on, or kKeyOfWorst if all are NaN.
  /// Some numbers after the last whole stripes may count. `stripes` is a multiple of 16, at most kMostStripes and n.
  void (*best_of_stripes)(const float* x, int64_t n, int32_t flip, int64_t stripes, int32_t* best);
  /// y[i] = f(a[i], b[i]). A step of 0 repeats the first element. Comparisons write bytes of 0 and 1 to y.
  void (*integers)(Integers f, const int32_t* a, int a_step, const int32_t* b, int b_step, void* y, int64_t n);
  void (*booleans)(Booleans f, const uint8_t* a, int a_step, const uint8_t* b, int b_step, uint8_t* y, int64_t n);
};

/// The table for this processor.
const Loops& loops();

const Loops& loops_base();
const Loops& loops_avx2();
const Loops& loops_avx512();

}  // namespace moka::devices::cpu::vector
