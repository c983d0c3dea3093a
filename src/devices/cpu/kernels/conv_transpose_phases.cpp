#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/half.h"
#include "devices/cpu/common/dense_windows.h"
#include "devices/cpu/kernels/family.h"

/// Computes a transposed convolution as several ordinary ones. All results whose positions have the same remainders by
/// the strides (a phase) need the same taps. Each phase is therefore an ordinary convolution without the zeros between
/// input pixels, and the results of all phases are interleaved.
namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::dense;

constexpr int64_t kPhasePixels = 8 * 12;  // pixels of a panel that stay in the L1 cache until they are interleaved

/// Where the taps and the results of a phase lie along an axis: tap i of the phase is tap first + i * step of the
/// window, and result m is result place + m * stride.
struct PhaseTaps {
  int64_t first, step, place;
};

/// One phase. A phase without taps has no input channels, so its results are the bias.
struct Phase {
  DenseBlocking p;
  std::array<PhaseTaps, 3> axes;
  bool empty;
  int64_t weight = 0;  ///< of its first element in the packed weights
};

/// Sets an axis of the phase with remainder r by the stride. Result r + m * stride is the sum over i of tap
/// first + i * step times an input, the last one first, and inputs are `dilations` apart.
void set_phase_axis(const Window& w, int i, int64_t r, Phase& phase, Window& to) {
  const int64_t stride = w.strides[i], dilation = w.dilations[i], both = std::gcd(stride, dilation);
  const int64_t step = stride / both, at = r + w.pads_begin[i];
  int64_t first = 0;
  while (first < step && (at - first * dilation) % stride != 0) first++;
  const int64_t taps = first < std::min(step, w.kernel[i]) ? (w.kernel[i] - first - 1) / step + 1 : 0;
  phase.axes[static_cast<size_t>(i)] = {first, step, r};
  phase.empty |= taps == 0;
  to.kernel[i] = std::max<int64_t>(taps, 1);
  to.strides[i] = 1;
  to.dilations[i] = dilation / both;
  to.out[i] = (w.out[i] - r - 1) / stride + 1;
  to.pads_begin[i] = taps == 0 ? 0 : -(at - (first + (taps - 1) * step) * dilation) / stride;
  to.pads_end[i] = (to.out[i] - 1) + to.extent(i) - w.in[i] - to.pads_begin[i];
}

struct PhasesBlocking {
  Window w;  ///< of rank 3
  std::vector<Phase> phases;
  int64_t images, in, out;  ///< in, out: channels per group
  int64_t chunks = 1, parts = 1;
  int64_t weights = 0;  ///< of all phases

  const DenseBlocking& any() const { return phases[0].p; }
  int64_t out_plane() const { return w.out_count() * dense().block; }
  int64_t most(int64_t (*of)(const DenseBlocking&)) const {
    int64_t found = 0;
    for (const Phase& phase : phases) found = std::max(found, of(phase.p));
    return found;
  }
  int64_t table() const {
    return most([](const DenseBlocking& p) { return p.table(); });
  }
  int64_t weights_at_once() const {
    return most([](const DenseBlocking& p) { return p.weights_at_once(); });
  }
  /// Results of a panel that wait until they are interleaved.
  static int64_t piece(const DenseBlocking& p) { return p.deep < p.in_groups ? p.most_pixels() : kPhasePixels; }
  int64_t made() const { return most(piece) * kMostDensePanel; }
};

PhasesBlocking phases_of(const Window& w, int64_t images, int64_t x, int64_t y, int threads) {
  PhasesBlocking b{.w = w, .phases = {}, .images = images, .in = x / w.groups, .out = y / w.groups};
  std::array<int64_t, 3> many{};
  for (int i = 0; i < 3; i++) many[static_cast<size_t>(i)] = std::min(w.strides[i], w.out[i]);
  for (int64_t n = 0; n < many[0] * many[1] * many[2]; n++) {
    Phase phase{};
    Window of = w;
    set_phase_axis(w, 0, n / many[2] / many[1], phase, of);
    set_phase_axis(w, 1, n / many[2] % many[1], phase, of);
    set_phase_axis(w, 2, n % many[2], phase, of);
    phase.p = dense_blocking_of(of, images, phase.empty ? 0 : x, y);
    phase.p.in_groups = std::max<int64_t>(phase.p.in_groups, 1);
    phase.weight = b.weights;
    divide_dense(phase.p, threads);
    b.weights += phase.p.weights();
    b.chunks = std::max(b.chunks, phase.p.chunks);
    b.parts = std::max(b.parts, phase.p.parts);
    b.phases.push_back(std::move(phase));
  }
  for (Phase& phase : b.phases) {
    phase.p.chunks = b.chunks;
    phase.p.parts = b.parts;
  }
  return b;
}

/// Gathers the taps of a phase from [in][columns][window] as [columns][in][taps], the last tap first.
void gather_taps(const PhasesBlocking& b, const Phase& phase, const float* from, int64_t columns, float* to) {
  const Window &w = b.w, &of = phase.p.w;
  const auto tap = [&](int axis, int64_t i) {
    const PhaseTaps& t = phase.axes[static_cast<size_t>(axis)];
    return t.first + (of.kernel[axis] - 1 - i) * t.step;
  };
  const int64_t taps = w.taps();
  for (int64_t o = 0; o < columns; o++)
    for (int64_t c = 0; c < b.in; c++) {
      const float* window = from + (c * columns + o) * taps;
      for (int64_t i = 0; i < of.kernel[0]; i++)
        for (int64_t j = 0; j < of.kernel[1]; j++) {
          const float* line = window + (tap(0, i) * w.kernel[1] + tap(1, j)) * w.kernel[2];
          for (int64_t k = 0; k < of.kernel[2]; k++) *to++ = line[tap(2, k)];
        }
    }
}

/// Packs weights as [phase][group][panel][block of input channels][tap][channel][width], and behind them 1 if all are
/// finite, else 0.
void pack_weights(const PhasesBlocking& b, const DenseWeights::Read& read, const DenseWeights::Put& put) {
  const int64_t taps = b.w.taps();
  const auto count = static_cast<size_t>(b.in * kMostDensePanel * taps);
  std::vector<float> panel_rows(count), rows(count), room(static_cast<size_t>(kMostDensePanel * taps));
  bool finite = true;
  for (int64_t group = 0; group < b.w.groups; group++)
    for (int64_t panel = 0; panel < b.any().panels_of_group(); panel++) {
      const int64_t column = b.any().column(panel), columns = b.any().used(panel), n = columns * taps;
      for (int64_t c = 0; c < b.in; c++) {
        const float* from = read(((group * b.in + c) * b.out + column) * taps, n, room.data());
        std::copy_n(from, n, panel_rows.data() + c * n);
      }
      finite = finite &&
               std::all_of(panel_rows.data(), panel_rows.data() + b.in * n, [](float v) { return std::isfinite(v); });
      for (const Phase& phase : b.phases) {
        if (phase.empty) continue;
        const DenseBlocking& p = phase.p;
        gather_taps(b, phase, panel_rows.data(), columns, rows.data());
        put(phase.weight + group * p.weights_of_group() + column * p.in * p.taps(), p.width(panel) * p.in * p.taps(),
            [&](float* to) { pack_dense_panel(p, panel, rows.data(), to); });
      }
    }
  put(b.weights, 1, [&](float* to) { *to = finite ? 1 : 0; });
}

template <int block>
void copy_pixels(const float* from, int64_t n, int64_t step, float* to) {
  for (int64_t i = 0; i < n; i++, from += block, to += step) std::memcpy(to, from, block * sizeof(float));
}

/// Writes n results of a phase from number `first` on to their places. `used` channels of the block are not padding.
void interleave(const PhasesBlocking& b, const Phase& phase, const float* from, int64_t first, int64_t n, int64_t used,
                float* plane) {
  const Window &w = b.w, &of = phase.p.w;
  const int64_t block = dense().block, step = w.strides[2] * block;
  const auto place = [&](int axis, int64_t m) {
    return phase.axes[static_cast<size_t>(axis)].place + m * w.strides[axis];
  };
  for (int64_t i = first, some; i < first + n; i += some, from += some * block) {
    const int64_t column = i % of.out[2], row = i / of.out[2];
    some = std::min(of.out[2] - column, first + n - i);
    float* to =
        plane +
        ((place(0, row / of.out[1]) * w.out[1] + place(1, row % of.out[1])) * w.out[2] + place(2, column)) * block;
    if (used < block) {
      for (int64_t j = 0; j < some; j++)
        std::fill_n(std::copy_n(from + j * block, used, to + j * step), block - used, 0);
    } else if (block == 16) {
      copy_pixels<16>(from, some, step, to);
    } else {
      copy_pixels<8>(from, some, step, to);
    }
  }
}

/// Runs tiles of one transposed convolution.
struct PhasesRun {
  PhasesBlocking b;
  size_t in;
  int bias;
  std::vector<Activation> after;
  std::optional<Limits> limits;
  std::shared_ptr<const DenseWeights> weights;

  int64_t room() const { return weights->room(b.weights_at_once()); }
  int64_t scratch() const { return (room() + b.made()) * static_cast<int64_t>(sizeof(float)) + b.table(); }

  Status operator()(const KernelArgs& args) const {
    auto* table = reinterpret_cast<std::byte*>(args.own<float>() + room() + b.made());
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t part = t % b.parts, chunk = t / b.parts % b.chunks, image = t / b.parts / b.chunks;
      for (const Phase& phase : b.phases) {
        const DenseBlocking& p = phase.p;
        const int64_t first = p.first_pixel(chunk), pixels = p.first_pixel(chunk + 1) - first;
        if (pixels == 0) continue;
        const DensePlaces places(p, table);
        places.find(p, first, pixels);
        for (int64_t panel = p.first_panel(part); panel < p.first_panel(part + 1); panel++)
          multiply(args, phase, places, image, panel, first, pixels);
      }
    }
    return {};
  }

 private:
  bool finite() const {
    return weights->is_half() ? *weights->at<uint16_t>(b.weights) != 0 : *weights->at<float>(b.weights) != 0;
  }

  void multiply(const KernelArgs& args, const Phase& phase, const DensePlaces& places, int64_t image, int64_t panel,
                int64_t first, int64_t pixels) const {
    const DenseBlocking& p = phase.p;
    const int64_t block = dense().block, group = panel / p.panels_of_group(), of_group = panel % p.panels_of_group();
    const int64_t column = p.column(of_group), in_groups = (b.in + block - 1) / block;
    std::array<float, kMostDensePanel> start{};
    if (bias >= 0) std::copy_n(data_of(args, bias) + group * p.out + column, p.used(of_group), start.begin());
    const DenseTask task{.p = p,
                         .places = places,
                         .weights = *weights,
                         .x = args.in[in].as<float>() + (image * p.w.groups + group) * in_groups * p.in_plane(),
                         .of_group = of_group,
                         .weight = phase.weight + group * p.weights_of_group() + column * p.in * p.taps(),
                         .room = args.own<float>(),
                         .bias = start.data(),
                         .limits = limits ? limits->data() : nullptr,
                         .y = args.own<float>() + room(),
                         .y_step = b.piece(p) * block};
    float* plane =
        args.out[0].as<float>() + ((image * p.w.groups + group) * p.out_groups + column / block) * b.out_plane();
    const auto finish = [&](int64_t done, int64_t count, float* made) {
      for (int64_t k = 0; k < p.width(of_group); k += block) {
        float* from = made + k / block * task.y_step;
        apply_all(after, from, count * block);
        interleave(b, phase, from, first + done, count, std::clamp<int64_t>(p.out - column - k, 0, block),
                   plane + k / block * b.out_plane());
      }
    };
    if (finite())
      task.run(pixels, kPhasePixels, true, finish);
    else
      for (int64_t i = 0; i < pixels; i++) {
        task.run_inside(i);
        finish(i, 1, task.y);
      }
  }
};

/// Why another kernel was measured to be faster; empty: none was.
std::string why_slower(const PhasesBlocking& b) {
  if (b.out < 3) return "few output channels";
  return {};
}

Match match_phases(const MatchCall& given) {
  if (std::string why = require_fp32(given, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_transpose_window(given.call);
  if (!window.ok()) return Match::no("an invalid window");
  if (!given.is_constant("weight")) return Match::no("weights that are not constant");
  const ir::Shape &x = given.call.shape("x"), y = given.outputs[0].shape();
  const Window w = window->as_3d();
  constexpr int64_t kMostPhases = 1 << 12;
  int64_t many = 1;
  for (int i = 0; i < 3; i++) many = std::min(kMostPhases + 1, many * std::min(w.strides[i], w.out[i]));
  if (many > kMostPhases) return Match::no("very large strides");
  const double flops = 2.0 * static_cast<double>(x.count() * y[1] / w.groups * w.taps());
  const MatchCall m = with_threads_for(given, flops);
  PhasesRun run{.b = phases_of(w, x[0], x[1], y[1], m.threads),
                .in = static_cast<size_t>(m.call.arg_index("x")),
                .bias = m.call.arg_index("bias"),
                .after = activations_of(m.epilogue),
                .limits = {},
                .weights = {}};
  const PhasesBlocking& b = run.b;
  if (w.groups > 1 && (b.in % channel_block() != 0 || b.out % channel_block() != 0))
    return Match::no("groups that span blocks");
  for (const Phase& phase : b.phases)
    if (std::string why = too_large_for_dense(phase.p); !why.empty()) return Match::no(why);
  if (std::string why = why_slower(b); !given.asked && !why.empty()) return Match::no(why);
  run.limits = take_limits(run.after);
  std::string key = cat("phases of ", dense().lanes, " ", dense().block, ", ", w.groups, " groups");
  for (int i = 0; i < 3; i++)
    key += cat(", ", w.strides[i], " ", w.dilations[i], " ", w.pads_begin[i], " ", std::min(w.strides[i], w.out[i]));
  KernelChoice c;
  c.kernel = "cpu.conv_transpose.phases";
  c.in = in_layouts(m, "x", blocked());
  c.out = {blocked()};
  c.tiles = b.images * b.chunks * b.parts;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, flops, traffic(m));
  run.weights = DenseWeights::of(
      c, m, m.call.arg_index("weight"), std::move(key), b.weights + 1,
      [b](const DenseWeights::Read& read, const DenseWeights::Put& put) { pack_weights(b, read, put); });
  c.thread_scratch = static_cast<size_t>(run.scratch());
  c.run = std::move(run);
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_transpose_phases() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv_transpose.phases", .ops = {"conv_transpose"}, .match = match_phases, .measured = true}};
  return {100, defs};
}

}  // namespace moka::devices::cpu
