// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/panel_weights.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/pointwise.h"
#include "ops/common/window.h"

/// Transposed convolutions to few channels. A pointwise convolution computes what each input pixel gives to each tap of
/// each output channel (the columns), and these values are added to the rows of the result.
namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::pointwise;

constexpr int64_t kColumnsFit = 32 << 10;  // floats of columns that stay in the L2 cache until they are added
constexpr int64_t kColumnsPart = 256;      // inputs of a line that are added before the next ones

/// Positions [begin, end) along an axis.
struct Span {
  int64_t begin, end;
  int64_t count() const { return end - begin; }
};

struct ColumnsBlocking {
  Window w;  ///< of rank 3
  int64_t images, in, out;
  int axis;       ///< the first of more than one position; it is divided into bands
  int64_t bands;  ///< of its results

  int64_t columns() const { return out * w.taps(); }
  int64_t padded() const { return (columns() + pointwise().block - 1) / pointwise().block * pointwise().block; }
  /// The columns of the panel from column `first` on: two vectors, or three in the first panel if their number is odd.
  int64_t width(int64_t first) const {
    const int64_t lanes = pointwise().lanes, odd = padded() / lanes % 2;
    return std::min(padded() - first, (first == 0 ? 2 + odd : 2) * lanes);
  }
  int64_t widest() const { return width(0); }
  /// Whether the last vector is at most half full. Its columns are then stored twice, and two pixels share the vector.
  bool twice() const {
    const int64_t lanes = pointwise().lanes;
    return padded() > lanes && columns() - (padded() - lanes) <= pointwise().half;
  }
  /// Pixels of a position of the axis.
  int64_t in_inside() const { return inside(w.in); }
  int64_t out_inside() const { return inside(w.out); }
  int64_t lines() const { return w.in_count() / w.in[2]; }

  Span results(int64_t band) const { return {w.out[axis] * band / bands, w.out[axis] * (band + 1) / bands}; }
  /// The inputs that results read.
  Span inputs(Span of) const {
    const int64_t pad = w.pads_begin[axis], stride = w.strides[axis], before = of.begin + pad - w.extent(axis) + 1;
    Span s{before > 0 ? (before + stride - 1) / stride : 0, of.end - 1 + pad < 0 ? 0 : (of.end - 1 + pad) / stride + 1};
    s.end = std::min(s.end, w.in[axis]);
    if (s.begin >= s.end) return {0, 0};
    // A single pixel is summed in another order, and the bands depend on the threads.
    if (s.count() * in_inside() == 1 && w.in[axis] > 1) (s.end < w.in[axis] ? s.end++ : s.begin--);
    return s;
  }
  int64_t most_pixels() const {
    int64_t most = 0;
    for (int64_t band = 0; band < bands; band++) most = std::max(most, inputs(results(band)).count());
    return most * in_inside();
  }

 private:
  int64_t inside(const ir::Ints& sizes) const {
    int64_t count = 1;
    for (int i = axis + 1; i < 3; i++) count *= sizes[i];
    return count;
  }
};

/// Packs weights as [panel][in][width]. A column is a tap of an output channel.
void pack_weights(const ColumnsBlocking& b, const PanelWeights::Read& read, const PanelWeights::Put& put) {
  const int64_t columns = b.columns();
  std::vector<float> room(static_cast<size_t>(b.widest()));
  for (int64_t first = 0, width; first < b.padded(); first += width) {
    width = b.width(first);
    const int64_t used = std::min(width, columns - first);
    put(first * b.in, width * b.in, [&](float* to) {
      for (int64_t c = 0; c < b.in; c++) {
        to = std::copy_n(read(c * columns + first, used, room.data()), used, to);
        to = std::fill_n(to, width - used, 0.0f);
        if (first + width == b.padded() && b.twice())
          std::copy_n(to - 2 * pointwise().half, pointwise().half, to - pointwise().half);
      }
    });
  }
}

/// Adds the columns of inputs [begin, end) of a line to the results along an axis: of tap k, input i to result
/// i * stride + k * dilation - pad. Taps are in descending order, so that a result gets its inputs in ascending order.
void add_line(const Window& w, int64_t begin, int64_t end, const float* columns, const int64_t* at, float* y) {
  const int64_t stride = w.strides[2], block = pointwise().block;
  for (int64_t k = w.kernel[2] - 1; k >= 0; k--) {
    const int64_t place = k * w.dilations[2] - w.pads_begin[2];
    const int64_t first = std::max(begin, place < 0 ? (-place + stride - 1) / stride : 0);
    const int64_t last = std::min(end, place < w.out[2] ? (w.out[2] - 1 - place) / stride + 1 : 0);
    const float* from = columns + at[k];
    for (int64_t i = first; i < last; i++) y[i * stride + place] += from[i * block];
  }
}

struct ColumnsRun {
  ColumnsBlocking b;
  size_t in;
  int bias;
  std::vector<Activation> after;
  std::shared_ptr<const PanelWeights> weights;
  std::vector<int64_t> at;  ///< where each column begins among the columns of a pixel
  int64_t step;             ///< floats from block to block of columns

  int64_t room() const { return weights->room(b.widest() * b.in); }

  Status operator()(const KernelArgs& args) const {
    float* columns = args.own<float>() + room();
    const int64_t plane = b.w.out_count(), inside = b.out_inside();
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t band = t % b.bands, image = t / b.bands;
      const Span results = b.results(band), inputs = b.inputs(results);
      float* y = args.out[0].as<float>() + image * b.out * plane;
      if (inputs.count() > 0) multiply(args, image, inputs, columns);
      for (int64_t c = 0; c < b.out; c++) {
        const float start = bias < 0 ? 0 : data_of(args, bias)[c];
        std::fill_n(y + c * plane + results.begin * inside, results.count() * inside, start);
      }
      add(inputs, results, columns, y);
      for (int64_t c = 0; c < b.out; c++)
        apply_all(after, y + c * plane + results.begin * inside, results.count() * inside);
    }
    return {};
  }

 private:
  void multiply(const KernelArgs& args, int64_t image, Span inputs, float* columns) const {
    constexpr std::array<float, 64> kZeros{};
    const int64_t block = pointwise().block, plane = b.w.in_count() * block, in_groups = (b.in + block - 1) / block;
    vector::Pointwise::Call call{};
    call.x = args.in[in].as<float>() + image * in_groups * plane + inputs.begin * b.in_inside() * block;
    call.x_step = plane;
    call.in = b.in;
    call.bias = kZeros.data();
    call.pixels = inputs.count() * b.in_inside();
    call.y_step = step;
    for (int64_t first = 0; first < b.padded(); first += call.width) {
      call.width = b.width(first);
      call.used = std::min(call.width, b.columns() - first);
      call.twice = first + call.width == b.padded() && b.twice();
      call.widened = args.own<float>();
      call.halves = weights->is_half() ? weights->at<uint16_t>(first * b.in) : nullptr;
      call.weight = weights->is_half() ? call.widened : weights->at<float>(first * b.in);
      call.ahead = weights->at((first + call.width) * b.in);
      call.ahead_lines = call.width * weights->element() / vector::Pointwise::kLineBytes + 1;
      call.y = columns + first / block * step;
      pointwise().multiply(call);
    }
  }

  /// Adds the columns of all inputs to the results.
  void add(Span inputs, Span results, const float* columns, float* y) const {
    Window w = b.w;
    const int64_t block = pointwise().block;
    w.in[b.axis] = inputs.count();
    w.pads_begin[b.axis] += results.begin - inputs.begin * w.strides[b.axis];
    w.out[b.axis] = results.count();
    y += results.begin * b.out_inside();
    for (int64_t line = 0; line < w.in[0] * w.in[1]; line++, columns += w.in[2] * block)
      for (int64_t i = 0; i < w.in[2]; i += kColumnsPart)
        add_part(w, line, i, std::min(w.in[2], i + kColumnsPart), columns, y);
  }

  /// Adds the columns of inputs [begin, end) of a line.
  void add_part(const Window& w, int64_t line, int64_t begin, int64_t end, const float* columns, float* y) const {
    for (int64_t d = 0; d < w.kernel[0]; d++)
      for (int64_t h = 0; h < w.kernel[1]; h++) {
        const int64_t slice = line / w.in[1] * w.strides[0] + d * w.dilations[0] - w.pads_begin[0];
        const int64_t row = line % w.in[1] * w.strides[1] + h * w.dilations[1] - w.pads_begin[1];
        if (slice < 0 || slice >= w.out[0] || row < 0 || row >= w.out[1]) continue;
        for (int64_t c = 0; c < b.out; c++)
          add_line(w, begin, end, columns, at.data() + ((c * w.kernel[0] + d) * w.kernel[1] + h) * w.kernel[2],
                   y + c * b.w.out_count() + (slice * w.out[1] + row) * w.out[2]);
      }
  }
};

ColumnsBlocking columns_blocking_of(const Window& w, const ir::Shape& x, int64_t out, int threads) {
  ColumnsBlocking b{.w = w, .images = x[0], .in = x[1], .out = out, .axis = 0, .bands = 1};
  while (b.axis < 2 && w.in[b.axis] == 1 && w.out[b.axis] == 1) b.axis++;
  const int64_t size = w.out[b.axis], stride = w.strides[b.axis];
  const int64_t positions = std::max<int64_t>(1, kColumnsFit / (b.in_inside() * b.padded()));
  const int64_t results = std::max(stride, positions * stride - w.extent(b.axis) + 1);
  b.bands = (size + results - 1) / results;
  if (threads > 1) {
    const int64_t wanted = (4 * threads + b.images - 1) / b.images, least = 4 * w.extent(b.axis);
    b.bands = std::max(b.bands, std::min(wanted, (size + least - 1) / least));
  }
  return b;
}

/// Why another kernel was measured to be faster; empty: none was.
std::string why_slower(const ColumnsBlocking& b) {
  constexpr int64_t kFewOutputs = 7, kAdjacent = 4;
  if (b.out > kFewOutputs) return "many output channels";
  if (b.w.strides[2] == 1 && b.w.kernel[2] > kAdjacent) return "many sums of adjacent results";
  return {};
}

Match match_columns(const MatchCall& given) {
  if (std::string why = require_fp32(given, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_transpose_window(given.call);
  if (!window.ok()) return Match::no("an invalid window");
  if (window->groups != 1) return Match::no("groups");
  if (!given.is_constant("weight")) return Match::no("weights that are not constant");
  const ir::Shape &x = given.call.shape("x"), y = given.outputs[0].shape();
  const double flops = 2.0 * static_cast<double>(x.count() * y[1] * window->taps());
  const MatchCall m = with_threads_for(given, flops);
  ColumnsRun run{.b = columns_blocking_of(window->as_3d(), x, y[1], m.threads),
                 .in = static_cast<size_t>(m.call.arg_index("x")),
                 .bias = m.call.arg_index("bias"),
                 .after = activations_of(m.epilogue),
                 .weights = {},
                 .at = {},
                 .step = 0};
  const ColumnsBlocking& b = run.b;
  if (std::string why = why_slower(b); !given.asked && !why.empty()) return Match::no(why);
  constexpr int64_t kMost = int64_t{1} << 28;
  const int64_t pixels = b.most_pixels();
  if (b.columns() > kMost || pixels > kMost / b.padded()) return Match::no("a very large window");
  const int64_t block = pointwise().block;
  run.step =
      ((pixels * block / 16 + 1) | 1) * 16;  // an odd number of cache lines keeps blocks out of each other's sets
  for (int64_t i = 0; i < b.columns(); i++) run.at.push_back(i / block * run.step + i % block);
  KernelChoice c;
  c.kernel = "cpu.conv_transpose.columns";
  c.in = in_layouts(m, "x", blocked());
  c.tiles = b.images * b.bands;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, flops, traffic(m));
  run.weights = PanelWeights::of(
      c, m, m.call.arg_index("weight"), cat("columns of ", pointwise().lanes), b.padded() * b.in,
      [b](const PanelWeights::Read& read, const PanelWeights::Put& put) { pack_weights(b, read, put); });
  c.thread_scratch = static_cast<size_t>(run.room() + b.padded() / block * run.step) * sizeof(float);
  c.run = std::move(run);
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_transpose_columns() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv_transpose.columns", .ops = {"conv_transpose"}, .match = match_columns, .measured = true}};
  return {92, defs};
}

}  // namespace moka::devices::cpu
