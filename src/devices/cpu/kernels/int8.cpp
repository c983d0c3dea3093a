// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/int8_weights.h"
#include "devices/cpu/kernels/family.h"
#include "kernel/parallel.h"
#include "ops/common/window.h"

namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::Int8Gemm;

constexpr int64_t kTiles = 8;  // tiles of rows that a panel multiplies before the next panel
constexpr int64_t kMostInt8Taps = 64;
// limit of products per result below which reading and writing take most of the time
constexpr int64_t kFewProducts = 24;
constexpr int64_t kFewForWinograd = 64;
constexpr double kFaster = 3;  // rough speedup over fp32

/// A product of rows of 8-bit integers and packed weights. The rows are those of a matrix, or the pixels of blocked
/// feature maps. In a convolution each pixel of the result reads one row of x per tap of the window.
struct Int8Blocking {
  bool blocked = false;
  Window w;  ///< of rank 3; only if blocked
  int64_t images = 1, in_pixels = 0, out_pixels = 0;
  int64_t depth = 0, columns = 0, taps = 1;
  int64_t step = 0;                          ///< bytes of a quantized row
  int64_t chunk = 0, chunks = 0, parts = 1;  ///< divisions of the rows of an image and of the panels

  int64_t quantized_bytes() const { return (images * in_pixels + 1) * step; }  ///< and a row of padding
};

/// Rounds up to whole cache lines.
int64_t lines(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// Quantizes one piece of x: a block of channels of an image, or a row of a matrix.
void quantize(const Int8Gemm& b, const Int8Blocking& p, const kernel::QuantizedActivation& q, const float* x,
              int64_t part, uint8_t* to) {
  const float factor = 1 / q.scale;
  if (p.blocked) {
    const int64_t groups = (p.depth + b.lanes - 1) / b.lanes, image = part / groups, group = part % groups;
    b.quantize(x + part * p.in_pixels * b.lanes, p.in_pixels * b.lanes, factor, q.low,
               to + image * p.in_pixels * p.step + group * b.lanes, p.step);
    return;
  }
  uint8_t* row = to + part * p.step;
  b.quantize(x + part * p.depth, p.depth, factor, q.low, row, b.lanes);
  std::memset(row + p.depth, 0, static_cast<size_t>(p.step - p.depth));
}

/// Finds the quantized row that each tap reads, for rows [first, end) of an image of the result, which form `tiles`
/// tiles.
void find_rows(const Int8Blocking& p, const uint8_t* quantized, int64_t image, int64_t first, int64_t end,
               int64_t tiles, const uint8_t** to) {
  const uint8_t* from = quantized + image * p.in_pixels * p.step;
  const uint8_t* padding = quantized + p.images * p.in_pixels * p.step;
  for (int64_t t = 0; t < tiles; t++) {
    const int64_t begin = first + (end - first) * t / tiles, count = first + (end - first) * (t + 1) / tiles - begin;
    for (int64_t i = 0; i < count; i++) {
      if (p.taps == 1 && p.in_pixels == p.out_pixels) {
        to[i] = from + (begin + i) * p.step;
        continue;
      }
      const Window& w = p.w;
      const int64_t x = (begin + i) % w.out[2], line = (begin + i) / w.out[2], y = line % w.out[1], z = line / w.out[1];
      const uint8_t** at = to + i;
      for (int64_t a = 0; a < w.kernel[0]; a++) {
        const int64_t plane = z * w.strides[0] - w.pads_begin[0] + a * w.dilations[0];
        for (int64_t b = 0; b < w.kernel[1]; b++) {
          const int64_t row = y * w.strides[1] - w.pads_begin[1] + b * w.dilations[1];
          const bool inside = plane >= 0 && plane < w.in[0] && row >= 0 && row < w.in[1];
          const int64_t start = (plane * w.in[1] + row) * w.in[2];
          for (int64_t c = 0; c < w.kernel[2]; c++, at += count) {
            const int64_t column = x * w.strides[2] - w.pads_begin[2] + c * w.dilations[2];
            *at = inside && column >= 0 && column < w.in[2] ? from + (start + column) * p.step : padding;
          }
        }
      }
    }
    to += count * p.taps;
  }
}

struct Task {
  Int8Blocking p;
  std::shared_ptr<Int8Weights> weights;
  std::vector<Activation> after;
  ir::Shape out;
  int x, bias, addend, threads;
  int64_t shift_at, rows_at, rows_bytes;  ///< offsets in scratch, and bytes per thread

  void chunk(const Int8Gemm& b, const KernelArgs& args, int64_t unit, int thread) const {
    const int64_t image = unit / p.parts / p.chunks, at = unit / p.parts % p.chunks, part = unit % p.parts;
    const int64_t first = at * p.chunk, end = std::min(p.out_pixels, first + p.chunk);
    const int64_t tiles = (end - first + b.rows - 1) / b.rows;
    auto** rows = reinterpret_cast<const uint8_t**>(args.own(thread));
    find_rows(p, reinterpret_cast<const uint8_t*>(args.scratch), image, first, end, tiles, rows);
    const auto* shift = reinterpret_cast<const float*>(args.scratch + shift_at);
    auto* y = args.out[0].as<float>();
    const int64_t last = weights->panels() * (part + 1) / p.parts;
    for (int64_t panel = weights->panels() * part / p.parts; panel < last; panel++) {
      const int64_t column = panel * b.panel, columns = std::min(b.panel, p.columns - column);
      const int64_t groups = weights->vectors(), plane = p.out_pixels * b.lanes;
      float* to = p.blocked ? y + (image * groups * p.out_pixels) * b.lanes + column * p.out_pixels : y + column;
      const vector::Int8Scaling sums{weights->first() + column, weights->scale() + column, shift + column};
      const uint8_t** from = rows;
      for (int64_t t = 0; t < tiles; t++) {
        const int64_t begin = first + (end - first) * t / tiles,
                      count = first + (end - first) * (t + 1) / tiles - begin;
        const int64_t step = p.blocked ? b.lanes : p.columns;
        b.multiply(from, count, p.taps, weights->quads(), weights->panel(panel), columns, !p.blocked, sums,
                   to + begin * step, step, p.blocked ? plane : b.lanes);
        from += count * p.taps;
      }
      finish(b, args, to - y, first, end, columns);
    }
  }

  /// Applies addend and epilogues to rows [first, end) of a panel's columns, which begin at element `at` of the result.
  void finish(const Int8Gemm& b, const KernelArgs& args, int64_t at, int64_t first, int64_t end,
              int64_t columns) const {
    auto* y = args.out[0].as<float>();
    const float* more = data_of(args, addend);
    if (p.blocked) {
      for (int64_t j = 0; j < columns; j += b.lanes, at += p.out_pixels * b.lanes)
        finish_blocked(out, more, after, y, at + first * b.lanes, at + end * b.lanes);
      return;
    }
    for (int64_t r = first; r < end; r++) {
      float* row = y + at + r * p.columns;
      if (more != nullptr) {
        const float* add = more + at + r * p.columns;
        vector::loops().binary(vector::Binary::add, row, 1, add, 1, row, columns);
      }
      apply_all(after, row, columns);
    }
  }

  Status run(const KernelArgs& args) const {
    const Int8Gemm& b = *vector::int8_gemm();
    auto* quantized = reinterpret_cast<uint8_t*>(args.scratch);
    std::memset(quantized + p.images * p.in_pixels * p.step, -weights->input().low, static_cast<size_t>(p.step));
    auto* shift = reinterpret_cast<float*>(args.scratch + shift_at);
    std::fill_n(shift, weights->vectors() * b.lanes, 0.0f);
    if (const float* given = data_of(args, bias)) std::copy_n(given, p.columns, shift);
    const float* from = args.in[static_cast<size_t>(x)].as<float>();
    const int64_t pieces = p.blocked ? p.images * ((p.depth + b.lanes - 1) / b.lanes) : p.in_pixels,
                  units = p.images * p.chunks * p.parts;
    kernel::parallel_for(threads, pieces,
                         [&](int64_t i, int) { quantize(b, p, weights->input(), from, i, quantized); });
    kernel::parallel_for(threads, units, [&](int64_t i, int thread) { chunk(b, args, i, thread); });
    return {};
  }
};

Match choose(const MatchCall& given, Int8Blocking p, std::string_view weight, int axis, const WeightSteps& steps,
             int bias, std::string_view name) {
  std::string refusal;
  auto weights = Int8Weights::of(given, given.call.arg_index("x"), given.call.arg_index(weight), axis, steps, refusal);
  if (!weights) return Match::no(std::move(refusal));
  const Int8Gemm& b = *vector::int8_gemm();
  const double flops = 2.0 * static_cast<double>(p.images * p.out_pixels) * static_cast<double>(p.columns) *
                       static_cast<double>(p.taps * p.depth);
  const MatchCall m = with_threads_for(given, flops / kFaster);
  p.step = p.blocked ? (p.depth + b.lanes - 1) / b.lanes * b.lanes : weights->quads() * 4;
  p.chunk = std::min(p.out_pixels, kTiles * b.rows);
  p.chunks = (p.out_pixels + p.chunk - 1) / p.chunk;
  p.parts = m.threads == 1 ? 1
                           : std::clamp<int64_t>((4 * m.threads + p.images * p.chunks - 1) / (p.images * p.chunks), 1,
                                                 weights->panels());
  Task task{p,
            weights,
            activations_of(m.epilogue),
            m.outputs[0].shape(),
            m.call.arg_index("x"),
            bias,
            m.call.arg_index("addend"),
            m.threads,
            0,
            0,
            0};
  task.shift_at = lines(p.quantized_bytes());
  task.rows_at = task.shift_at + lines(weights->vectors() * b.lanes * static_cast<int64_t>(sizeof(float)));
  task.rows_bytes = lines(p.chunk * p.taps * static_cast<int64_t>(sizeof(void*)));
  KernelChoice c;
  c.kernel = name;
  c.note = weights->describe();
  c.internally_parallel = true;
  c.epilogues = m.epilogue.size();
  c.scratch = static_cast<size_t>(task.rows_at);
  c.thread_scratch = static_cast<size_t>(task.rows_bytes);
  c.cost = cost_of(m, flops / kFaster, traffic(m));
  c.in_prepare_only.resize(m.call.all_args().size());
  c.in_prepare_only[static_cast<size_t>(m.call.arg_index(weight))] = true;
  if (p.blocked) {
    c.in = in_layouts(m, "x", blocked());
    if (task.addend >= 0) c.in[static_cast<size_t>(task.addend)] = blocked();
    c.out = {blocked()};
  }
  c.prepare = [weights](kernel::PrepareContext& context) { return weights->prepare(context); };
  c.run = [task](const KernelArgs& args) { return task.run(args); };
  return Match::yes(std::move(c));
}

/// Whether the window is 3 x 3 with stride 1 and the image fills some tiles.
bool is_for_winograd(const Window& w) {
  if (w.rank != 2 || w.out_count() < 256) return false;
  for (int i = 0; i < 2; i++)
    if (w.kernel[i] != 3 || w.strides[i] != 1 || w.dilations[i] != 1) return false;
  return true;
}

Match match_conv(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_window(m.call);
  if (!window.ok()) return Match::no("an invalid window");
  if (window->groups != 1) return Match::no("groups");
  const ir::Shape &x = m.call.shape("x"), &weight = m.call.shape("weight");
  Int8Blocking p;
  p.blocked = true;
  p.w = window->as_3d();
  p.images = x[0];
  p.depth = x[1];
  p.columns = weight[0];
  p.taps = p.w.taps();
  p.in_pixels = p.w.in_count();
  p.out_pixels = p.w.out_count();
  if (p.depth < channel_block() || p.depth * p.taps < kFewProducts) return Match::no("few channels");
  if (p.taps > kMostInt8Taps) return Match::no("a large window");
  if (is_for_winograd(*window) && p.depth < kFewForWinograd) return Match::no("a shape for which Winograd is faster");
  return choose(m, p, "weight", 0, {p.columns, p.taps, p.depth, p.depth * p.taps, 1, p.taps}, m.call.arg_index("bias"),
                "cpu.conv.int8");
}

Match product(const MatchCall& m, std::string_view weight, int axis, int bias, std::string_view name) {
  const ir::Shape& w = m.call.shape(weight);
  if (w.rank() != 2) return Match::no("weights that are not a matrix");
  Int8Blocking p;
  p.columns = w[axis];
  p.depth = w[1 - axis];
  p.in_pixels = p.out_pixels = m.outputs[0].shape().count() / p.columns;
  return choose(m, p, weight, axis, {p.columns, 1, p.depth, axis == 0 ? p.depth : 1, 0, axis == 0 ? 1 : p.columns},
                bias, name);
}

Match match_int8_linear(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  return product(m, "weight", 0, m.call.arg_index("bias"), "cpu.linear.int8");
}

Match match_int8_matmul(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "y", "bias"}); !why.empty()) return Match::no(why);
  auto tx = m.call.flag("transpose_x"), ty = m.call.flag("transpose_y");
  if (!tx.ok() || !ty.ok() || *tx || m.call.rank("x") < 2) return Match::no("a transposed x");
  return product(m, "y", *ty ? 0 : 1, m.call.arg_index("bias"), "cpu.matmul.int8");
}

}  // namespace

KernelFamily family_int8() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv.int8", .ops = {"conv"}, .match = match_conv, .addend = true},
      {.name = "cpu.linear.int8", .ops = {"linear"}, .match = match_int8_linear, .addend = true},
      {.name = "cpu.matmul.int8", .ops = {"matmul"}, .match = match_int8_matmul, .addend = true}};
  return {10, defs};
}

}  // namespace moka::devices::cpu
