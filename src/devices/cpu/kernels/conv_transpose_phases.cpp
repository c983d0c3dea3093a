#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/gemm.h"
#include "ops/common/window.h"

/// Computes a transposed convolution as several ordinary ones. All results whose positions have the same remainder by
/// the stride (a phase) need the same taps, every stride-th one of the window. Each phase is therefore an ordinary
/// convolution without the zeros between input pixels, and the results of all phases are interleaved.
namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::Gemm;

/// The phase with remainder r along one axis. Result r + m * stride is the sum over t of tap first + t * stride times
/// input at + m - t.
struct Phase {
  int64_t outputs, taps, first, at;
};

struct PhaseAxis {
  int64_t in, out, stride;
  int64_t before = 0, behind = 0;  ///< zeros that are read around the input
  std::vector<Phase> phases;

  int64_t padded() const { return before + in + behind; }
  int64_t taps() const {
    int64_t sum = 0;
    for (const Phase& p : phases) sum += p.taps;
    return sum;
  }
  int64_t most_outputs() const { return phases[0].outputs; }
};

PhaseAxis phase_axis_of(const Window& w, int i) {
  PhaseAxis a{w.in[i], w.out[i], w.strides[i], 0, 0, {}};
  for (int64_t r = 0; r < std::min(a.stride, a.out); r++) {
    const int64_t first = (r + w.pads_begin[i]) % a.stride, at = (r + w.pads_begin[i]) / a.stride;
    const int64_t taps = first < w.kernel[i] ? (w.kernel[i] - first - 1) / a.stride + 1 : 0;
    a.phases.push_back({(a.out - r - 1) / a.stride + 1, taps, first, at});
    if (taps == 0) continue;
    a.before = std::max(a.before, taps - 1 - at);
    a.behind = std::max(a.behind, at + a.phases.back().outputs - a.in);
  }
  a.behind = std::max(a.behind, a.most_outputs() - a.before - a.in);
  return a;
}

struct PhaseBlocking {
  const Gemm* gemm;
  PhaseAxis down, across;
  int64_t kernel[2];
  int64_t images, in, out, in_groups, out_groups;
  int64_t rows, bands;  ///< rows of a phase per band; bands per image
  int64_t parts;        ///< divisions of the panels

  int64_t columns() const { return out_groups * channel_block(); }
  int64_t panels() const { return (columns() + gemm->panel - 1) / gemm->panel; }
  int64_t width(int64_t panel) const { return std::min(gemm->panel, columns() - panel * gemm->panel); }
  int64_t first_panel(int64_t part) const { return panels() * part / parts; }
  int64_t taps() const { return down.taps() * across.taps(); }
  int64_t weight_count() const { return columns() * taps() * in; }
  int64_t line() const { return across.padded() * in; }
  /// The input lines that the phases of a band read.
  int64_t first_line() const { return lines_of(false); }
  int64_t lines() const { return rows + lines_of(true) - lines_of(false); }
  int64_t copy() const { return lines() * line(); }
  int64_t sums() const { return rows * across.padded() * gemm->panel; }

 private:
  int64_t lines_of(bool last) const {
    int64_t found = down.phases[0].at;
    for (const Phase& p : down.phases)
      if (p.taps > 0) found = last ? std::max(found, p.at) : std::min(found, p.at - p.taps + 1);
    return found;
  }
};

/// Packs weights as [panel][pair of phases][tap, last one first][input channel], and behind them 1 if all are finite,
/// else 0.
void pack_weights(const PhaseBlocking& p, const float* w, float* to) {
  const int64_t taps = p.kernel[0] * p.kernel[1];
  for (int64_t panel = 0; panel < p.panels(); panel++) {
    const int64_t first = panel * p.gemm->panel, width = p.width(panel), used = std::min(width, p.out - first);
    for (const Phase& v : p.down.phases)
      for (const Phase& h : p.across.phases)
        for (int64_t i = v.taps - 1; i >= 0; i--)
          for (int64_t j = h.taps - 1; j >= 0; j--) {
            const int64_t tap = (v.first + i * p.down.stride) * p.kernel[1] + h.first + j * p.across.stride;
            for (int64_t c = 0; c < p.in; c++, to += width) {
              for (int64_t o = 0; o < used; o++) to[o] = w[(c * p.out + first + o) * taps + tap];
              std::fill_n(to + used, width - used, 0.0f);
            }
          }
  }
  *to = std::all_of(w, w + p.in * p.out * taps, [](float v) { return std::isfinite(v); }) ? 1 : 0;
}

/// Copies lines [first, first + lines) of an image, channels last, with zeros around the image.
void copy_lines(const PhaseBlocking& p, const float* image, int64_t first, int64_t lines, float* to) {
  const int64_t block = channel_block(), plane = p.down.in * p.across.in * block;
  for (int64_t i = first; i < first + lines; i++, to += p.line()) {
    if (i < 0 || i >= p.down.in) {
      std::fill_n(to, p.line(), 0.0f);
      continue;
    }
    std::fill_n(to, p.across.before * p.in, 0.0f);
    float* pixels = to + p.across.before * p.in;
    std::fill_n(pixels + p.across.in * p.in, p.across.behind * p.in, 0.0f);
    for (int64_t g = 0; g < p.in_groups; g++) {
      const float* from = image + g * plane + i * p.across.in * block;
      const int64_t here = std::min(block, p.in - g * block);
      for (int64_t j = 0; j < p.across.in; j++) std::copy_n(from + j * block, here, pixels + j * p.in + g * block);
    }
  }
}

/// Adds one pair of phases to `sums`, whose rows are `across.padded()` apart. `x` is the input line v.at - v.taps + 1.
void multiply(const PhaseBlocking& p, const Phase& v, const Phase& h, const float* x, const float* weight, int64_t rows,
              int64_t width, float* sums) {
  const int64_t pitch = p.across.padded(), first = p.across.before + h.at - h.taps + 1;
  for (int64_t i = 0; i < v.taps; i++, weight += h.taps * p.in * width)
    p.gemm->multiply(x + i * p.line() + first * p.in, p.in, weight, (rows - 1) * pitch + h.outputs, width,
                     h.taps * p.in, sums, width, nullptr, true);
}

/// Does the same, but skips zeros around the image, whose products with non-finite weights are NaN. `top` is the number
/// of line x in the image.
void multiply_inside(const PhaseBlocking& p, const Phase& v, const Phase& h, const float* x, int64_t top,
                     const float* weight, int64_t rows, int64_t width, float* sums) {
  const int64_t step = p.in * width;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < v.taps; i++) {
      if (top + r + i < 0 || top + r + i >= p.down.in) continue;
      for (int64_t m = 0; m < h.outputs; m++) {
        const int64_t left = h.at + m - h.taps + 1;
        const int64_t begin = std::clamp<int64_t>(-left, 0, h.taps),
                      end = std::clamp(p.across.in - left, begin, h.taps);
        if (begin == end) continue;
        p.gemm->multiply(x + (r + i) * p.line() + (p.across.before + left + begin) * p.in, p.in,
                         weight + (i * h.taps + begin) * step, 1, width, (end - begin) * p.in,
                         sums + (r * p.across.padded() + m) * width, width, nullptr, true);
      }
    }
}

/// Writes the rows of one pair of phases to their places. `to` is the first place in the first block of `panel`.
void interleave(const PhaseBlocking& p, const Phase& h, const float* sums, int64_t rows, int64_t panel, float* to) {
  const int64_t block = channel_block(), width = p.width(panel), plane = p.down.out * p.across.out * block;
  for (int64_t k = 0; k < width; k += block, to += plane) {
    const int64_t here = std::clamp<int64_t>(p.out - panel * p.gemm->panel - k, 0, block);
    for (int64_t r = 0; r < rows; r++) {
      const float* from = sums + r * p.across.padded() * width + k;
      float* pixel = to + r * p.down.stride * p.across.out * block;
      for (int64_t m = 0; m < h.outputs; m++, from += width, pixel += p.across.stride * block) {
        std::copy_n(from, here, pixel);
        std::fill_n(pixel + here, block - here, 0.0f);
      }
    }
  }
}

PhaseBlocking phase_blocking_of(const Window& w, const ir::Shape& x, int64_t out, int threads) {
  constexpr int64_t kFits = 256 << 10;  // bytes of lines and sums that stay in the L2 cache
  const int64_t block = channel_block();
  PhaseBlocking p{};
  p.down = phase_axis_of(w, 1);
  p.across = phase_axis_of(w, 2);
  std::copy_n(w.kernel.begin() + 1, 2, p.kernel);
  p.images = x[0];
  p.in = x[1];
  p.out = out;
  p.in_groups = (p.in + block - 1) / block;
  p.out_groups = (p.out + block - 1) / block;
  p.gemm = &vector::gemm_for(p.columns());
  if (p.gemm->panel % block != 0) p.gemm = &vector::gemm();
  const int64_t each = p.across.padded() * (p.in + p.gemm->panel) * static_cast<int64_t>(sizeof(float));
  p.rows = std::clamp<int64_t>(kFits / each, 1, p.down.most_outputs());
  p.bands = (p.down.most_outputs() + p.rows - 1) / p.rows;
  p.parts = threads == 1 ? 1 : std::clamp<int64_t>((2 * threads + p.bands - 1) / p.bands, 1, p.panels());
  return p;
}

Match match_phases(const MatchCall& given) {
  if (std::string why = require_fp32(given, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_transpose_window(given.call);
  if (!window.ok()) return Match::no("an invalid window");
  if (window->rank > 2) return Match::no(cat(window->rank, " spatial dimensions"));
  if (window->groups != 1) return Match::no("groups");
  if (!given.is_constant("weight")) return Match::no("weights that are not constant");
  const Window w = window->as_3d();
  for (int i = 1; i < 3; i++) {
    if (w.dilations[i] != 1 && w.kernel[i] != 1) return Match::no("dilated windows");
    if (w.pads_begin[i] < 0) return Match::no("results before the first window");
    if (-w.pads_end[i] > w.extent(i)) return Match::no("results far beyond the last window");
  }
  const ir::Shape &x = given.call.shape("x"), y = given.outputs[0].shape();
  if (!given.asked && y[1] < 3) return Match::no("few output channels");
  const double flops = 2.0 * static_cast<double>(x.count() * y[1] * w.taps());
  const MatchCall m = with_threads_for(given, flops);
  const PhaseBlocking p = phase_blocking_of(w, x, y[1], m.threads);
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  const int weight = m.call.arg_index("weight"), bias = m.call.arg_index("bias");
  KernelChoice c;
  c.kernel = "cpu.conv_transpose.phases";
  c.in = in_layouts(m, "x", blocked());
  c.out = {blocked()};
  c.tiles = p.images * p.bands * p.parts;
  c.epilogues = m.epilogue.size();
  c.thread_scratch = static_cast<size_t>(p.copy() + p.sums()) * sizeof(float);
  c.cost = cost_of(m, flops, traffic(m));
  const auto weights =
      packed_before(c, m, weight,
                    cat("phases of ", p.gemm->panel, " ", w.pads_begin[1], " ", w.pads_begin[2], " ", w.strides[1], " ",
                        w.strides[2], " ", p.down.phases.size(), " ", p.across.phases.size()),
                    p.weight_count() + 1, [p](const float* value, float* to) { pack_weights(p, value, to); });
  c.run = [=, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    const int64_t block = channel_block(), pitch = p.across.padded(), panel_size = p.gemm->panel;
    const bool finite = weights->data()[p.weight_count()] == 1;
    float* lines = args.own<float>();
    float* sums = lines + p.copy();
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t part = t % p.parts, band = t / p.parts % p.bands, image = t / p.parts / p.bands;
      const int64_t top = band * p.rows, first = top + p.first_line();
      copy_lines(p, args.in[in].as<float>() + image * p.in_groups * p.down.in * p.across.in * block, first, p.lines(),
                 lines);
      for (int64_t panel = p.first_panel(part); panel < p.first_panel(part + 1); panel++) {
        const int64_t width = p.width(panel), column = panel * panel_size;
        const float* w = weights->data() + column * p.taps() * p.in;
        std::array<float, 64> start{};
        if (bias >= 0) std::copy_n(data_of(args, bias) + column, std::min(width, p.out - column), start.begin());
        for (size_t i = 0; i < p.down.phases.size(); i++) {
          const Phase& v = p.down.phases[i];
          const int64_t rows = std::min(p.rows, v.outputs - top), line = top + v.at - v.taps + 1;
          for (size_t j = 0; j < p.across.phases.size(); j++) {
            const Phase& h = p.across.phases[j];
            const float* from = w;
            w += v.taps * h.taps * p.in * width;
            if (rows <= 0) continue;
            const int64_t pixels = (rows - 1) * pitch + h.outputs;
            for (int64_t k = 0; k < pixels; k++) std::copy_n(start.begin(), width, sums + k * width);
            if (v.taps > 0 && h.taps > 0) {
              const float* x = lines + (line - first) * p.line();
              if (finite)
                multiply(p, v, h, x, from, rows, width, sums);
              else
                multiply_inside(p, v, h, x, line, from, rows, width, sums);
            }
            apply_all(after, sums, pixels * width);
            interleave(
                p, h, sums, rows, panel,
                args.out[0].as<float>() + (image * p.out_groups + column / block) * p.down.out * p.across.out * block +
                    ((static_cast<int64_t>(i) + top * p.down.stride) * p.across.out + static_cast<int64_t>(j)) * block);
          }
        }
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_transpose_phases() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv_transpose.phases", .ops = {"conv_transpose"}, .match = match_phases, .measured = true}};
  return {100, defs};
}

}  // namespace moka::devices::cpu
