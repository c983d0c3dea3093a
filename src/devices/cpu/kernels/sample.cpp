// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include "devices/cpu/kernels/family.h"
#include "ops/common/sampling.h"

namespace moka::devices::cpu {

namespace {

using ops::Sampling;

/// The inputs of a row or column of the result: row or column `low` of x, mixed with `part` of `high`. With low =
/// kNowhere the result is the constant.
struct Tap {
  int32_t low = 0, high = 0;
  float part = 0;
};
constexpr int32_t kNowhere = -1;

struct Grid {
  std::vector<Tap> rows, columns;
  bool linear = false;
  float constant = 0;
};

int32_t narrow(int64_t i) { return static_cast<int32_t>(i); }

std::vector<Tap> nearest_taps(int64_t in, int64_t out, const auto& index) {
  std::vector<Tap> taps;
  for (int64_t i = 0; i < out; i++) taps.push_back({narrow(index(in, out, i)), 0, 0});
  return taps;
}

std::vector<Tap> linear_taps(Sampling mode, int64_t in, int64_t out) {
  std::vector<Tap> taps;
  for (int64_t i = 0; i < out; i++) {
    const ops::Tap t = ops::tap_at(ops::grid_point(mode, static_cast<double>(in), out, i), in);
    taps.push_back({narrow(t.low), narrow(t.high), static_cast<float>(t.part)});
  }
  return taps;
}

/// The taps of a padded axis.
std::vector<Tap> margin_taps(std::string_view mode, int64_t in, int64_t before, int64_t after) {
  std::vector<Tap> taps;
  for (int64_t i = -before; i < in + after; i++) {
    int64_t from = i;
    if (mode == "constant") {
      from = i < 0 || i >= in ? kNowhere : i;
    } else if (mode == "replicate") {
      from = std::clamp<int64_t>(i, 0, in - 1);
    } else {
      from = ops::mirrored(i, in);
    }
    taps.push_back({narrow(from), 0, 0});
  }
  return taps;
}

/// Fills `g`, or returns a refusal.
std::string grid_of(const ir::OpCall& call, const ir::Shape& x, const ir::Shape& y, Grid& g) {
  const std::string& op = call.version().def->name;
  const int r = x.rank();
  const int64_t ih = x[r - 2], iw = x[r - 1], oh = y[r - 2], ow = y[r - 1];
  auto both = [&](const auto& taps) {
    g.rows = taps(ih, oh);
    g.columns = taps(iw, ow);
  };
  auto linear = [&](const Result<Sampling>& mode) -> std::string {
    if (!mode.ok()) return "an unknown sampling mode";
    g.linear = true;
    both([&](int64_t in, int64_t out) { return linear_taps(*mode, in, out); });
    return {};
  };
  if (op == "pad") {
    auto mode = call.text("mode");
    const ir::TensorView* pad = call.value("pad");
    if (!mode.ok() || pad == nullptr) return "margins that are known only while running";
    const int64_t n = pad->count();
    for (int64_t i = 0; i + 4 < n; i++)
      if (ir::load_i64(*pad, i) != 0) return "margins of more than the last two axes";
    auto margin = [&](int64_t from_end) { return from_end > n ? 0 : ir::load_i64(*pad, n - from_end); };
    if (*mode == "constant") g.constant = static_cast<float>(ir::load_f64(*call.value("constant_val"), 0));
    g.rows = margin_taps(*mode, ih, margin(4), margin(3));
    g.columns = margin_taps(*mode, iw, margin(2), margin(1));
    return {};
  }
  if (op == "upsample_nearest_neighbor") {
    both([](int64_t in, int64_t out) { return nearest_taps(in, out, ops::nearest_top_left); });
    return {};
  }
  if (op == "resize_nearest_neighbor") {
    both([](int64_t in, int64_t out) { return nearest_taps(in, out, ops::nearest_half_pixel); });
    return {};
  }
  if (op == "upsample_bilinear") return linear(ops::upsampling_of(call));
  if (op == "resize_bilinear") return linear(ops::sampling_of(call));
  auto text = call.text("interpolation_mode");
  auto mode = ops::sampling_of(call);
  if (!text.ok() || !mode.ok()) return "an unknown sampling mode";
  // Some modes also shift axes that keep their size, so they are not skipped.
  if (auto resized = call.integer("resized_dims"); !resized.ok() || *resized != 2)
    return "resizing other than the last two dimensions";
  if (*text == "LINEAR") return linear(mode);
  both([&](int64_t from, int64_t to) {
    return nearest_taps(from, to, [&](int64_t in, int64_t out, int64_t i) {
      if (*mode == Sampling::default_) return ops::nearest_half_pixel(in, out, i);
      return ops::nearest_at(ops::grid_point(*mode, static_cast<double>(in), out, i), in);
    });
  });
  return {};
}

/// Columns of the result that are consecutive columns of x.
struct Run {
  int64_t to, from, count;
};

std::vector<Run> runs_of(std::span<const Tap> columns) {
  std::vector<Run> runs;
  for (size_t i = 0; i < columns.size(); i++) {
    const int64_t low = columns[i].low;
    if (!runs.empty()) {
      Run& last = runs.back();
      if (low == kNowhere ? last.from == kNowhere : last.from != kNowhere && last.from + last.count == low) {
        last.count++;
        continue;
      }
    }
    runs.push_back({static_cast<int64_t>(i), low, 1});
  }
  return runs;
}

template <int64_t kLanes>
void copy_row(std::span<const Run> runs, const float* x, float* y, float constant) {
  for (const Run& r : runs) {
    if (r.from == kNowhere)
      std::fill_n(y + r.to * kLanes, r.count * kLanes, constant);
    else if (r.count == 1)
      std::memcpy(y + r.to * kLanes, x + r.from * kLanes, sizeof(float) * kLanes);
    else
      std::memcpy(y + r.to * kLanes, x + r.from * kLanes, static_cast<size_t>(r.count * kLanes) * sizeof(float));
  }
}

/// Does not read b if part is 0, because b may be infinite.
void blend(const float* a, const float* b, float part, float* y, int64_t n) {
  if (part == 0) {
    std::memcpy(y, a, static_cast<size_t>(n) * sizeof(float));
    return;
  }
  const float rest = 1 - part;
  for (int64_t i = 0; i < n; i++) y[i] = a[i] * rest + b[i] * part;
}

constexpr int64_t kRowFloats = 8192;  // largest blended row, on the stack

template <int64_t kLanes>
void blend_row(const Grid& g, const Tap& row, const float* plane, int64_t width, float* y) {
  float blended[kRowFloats];
  blend(plane + row.low * width * kLanes, plane + row.high * width * kLanes, row.part, blended, width * kLanes);
  for (size_t i = 0; i < g.columns.size(); i++) {
    const Tap& t = g.columns[i];
    if constexpr (kLanes == 1) {
      const float low = blended[t.low], mixed = low * (1 - t.part) + blended[t.high] * t.part;
      y[i] = t.part == 0 ? low : mixed;
    } else {
      blend(blended + t.low * kLanes, blended + t.high * kLanes, t.part, y + static_cast<int64_t>(i) * kLanes, kLanes);
    }
  }
}

template <int64_t kLanes>
auto runner(Grid grid, const ir::Shape& y, Layout layout, int64_t height, int64_t width, size_t in) {
  const auto runs = runs_of(grid.columns);
  return [=, g = std::move(grid)](const KernelArgs& args) -> Status {
    const auto rows = static_cast<int64_t>(g.rows.size()), columns = static_cast<int64_t>(g.columns.size());
    for (int64_t t = args.begin; t < args.end; t++) {
      const Tap& row = g.rows[static_cast<size_t>(t % rows)];
      const float* plane = args.in[in].as<float>() + t / rows * height * width * kLanes;
      float* to = args.out[0].as<float>() + t * columns * kLanes;
      if (g.linear)
        blend_row<kLanes>(g, row, plane, width, to);
      else if (row.low == kNowhere)
        std::fill_n(to, columns * kLanes, g.constant);
      else
        copy_row<kLanes>(runs, plane + row.low * width * kLanes, to, g.constant);
    }
    if (g.constant != 0)
      clear_padding(y, layout, args.out[0].as<float>(), args.begin * columns * kLanes, args.end * columns * kLanes);
    return {};
  };
}

constexpr int64_t kRowsTogether = 64;  // of a plane, by one tile

int64_t tiles_of_planes(const ir::Shape& y) {
  const int64_t rows = y[y.rank() - 2], parts = (rows + kRowsTogether - 1) / kRowsTogether;
  return y.count(0, y.rank() - 2) * parts;
}

/// The columns of the result in one row of x, whose values are kLanes apart.
template <int64_t kLanes>
void interpolate_columns(std::span<const Tap> columns, const float* x, float* y) {
  for (const Tap& t : columns) {
    const float low = x[t.low * kLanes];
    *y++ = t.part == 0 ? low : low * (1 - t.part) + x[t.high * kLanes] * t.part;
  }
}

/// Writes planes with more rows than x has. Rows of x are interpolated along the columns once, and serve all rows of
/// the result between them.
template <int64_t kLanes>
decltype(KernelChoice::run) runner_to_planes(Grid grid, const ir::Shape& y, int64_t height, int64_t width, size_t in) {
  const int64_t channels = kLanes == 1 ? 1 : y[1];
  return [=, g = std::move(grid)](const KernelArgs& args) -> Status {
    const auto rows = static_cast<int64_t>(g.rows.size()), columns = static_cast<int64_t>(g.columns.size());
    const int64_t groups = (channels + kLanes - 1) / kLanes, parts = (rows + kRowsTogether - 1) / kRowsTogether;
    float* const held[] = {args.own<float>(), args.own<float>() + columns};
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t plane = t / parts, channel = plane % channels, first = t % parts * kRowsTogether;
      const float* x = args.in[in].as<float>() +
                       (plane / channels * groups + channel / kLanes) * height * width * kLanes + channel % kLanes;
      int32_t held_row[] = {kNowhere, kNowhere};
      const auto across = [&](int32_t row, int32_t other) -> const float* {
        for (int k = 0; k < 2; k++)
          if (held_row[k] == row) return held[k];
        const int k = held_row[0] == other ? 1 : 0;
        held_row[k] = row;
        interpolate_columns<kLanes>(g.columns, x + row * width * kLanes, held[k]);
        return held[k];
      };
      for (int64_t r = first; r < std::min(rows, first + kRowsTogether); r++) {
        const Tap& row = g.rows[static_cast<size_t>(r)];
        const float* low = across(row.low, row.high);
        blend(low, row.part == 0 ? low : across(row.high, row.low), row.part,
              args.out[0].as<float>() + (plane * rows + r) * columns, columns);
      }
    }
    return {};
  };
}

Match match_sample(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x"}); !why.empty()) return Match::no(why);
  const ir::Shape &x = m.call.shape("x"), &y = m.outputs[0].shape();
  if (x.rank() < 2) return Match::no("a vector");
  const int64_t height = x[x.rank() - 2], width = x[x.rank() - 1];
  if (std::max({x.count(), y.count()}) > INT32_MAX) return Match::no("more elements than are counted in 32 bits");
  Grid g;
  if (std::string why = grid_of(m.call, x, y, g); !why.empty()) return Match::no(why);
  if (static_cast<int64_t>(g.rows.size()) != y[y.rank() - 2] ||
      static_cast<int64_t>(g.columns.size()) != y[y.rank() - 1])
    return Match::no("another shape than planned");
  Layout layout = x.rank() == 4 ? layout_of(m, "x") : Layout{};
  if (layout.kind != Layout::Kind::channel_blocked) layout = {};
  const int64_t lanes = layout.is_row_major() ? 1 : layout.block;
  if (g.linear && width * lanes > kRowFloats) return Match::no("rows that are too long to interpolate between");
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  KernelChoice c;
  c.kernel = "cpu.sample";
  c.in = in_layouts(m, "x", layout);
  c.out = {layout};
  c.tiles = storage_count(y, layout) / (lanes * y[y.rank() - 1]);
  c.cost = cost_of(m, 0, traffic(m));
  // Converting blocks here moves less memory than converting the larger result.
  if (g.linear && (lanes > 1 ? m.reshaped && y.count() > x.count() : y[y.rank() - 2] > height)) {
    c.out = {Layout{}};
    c.tiles = tiles_of_planes(y);
    c.thread_scratch = 2 * static_cast<size_t>(y[y.rank() - 1]) * sizeof(float);
    c.run = lanes == 16  ? runner_to_planes<16>(std::move(g), y, height, width, in)
            : lanes == 8 ? runner_to_planes<8>(std::move(g), y, height, width, in)
                         : runner_to_planes<1>(std::move(g), y, height, width, in);
    return Match::yes(std::move(c));
  }
  if (lanes == 16)
    c.run = runner<16>(std::move(g), y, layout, height, width, in);
  else if (lanes == 8)
    c.run = runner<8>(std::move(g), y, layout, height, width, in);
  else
    c.run = runner<1>(std::move(g), y, layout, height, width, in);
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_sample() {
  static const KernelDef defs[] = {{.name = "cpu.sample",
                                    .ops = {"pad", "resize", "resize_bilinear", "resize_nearest_neighbor",
                                            "upsample_bilinear", "upsample_nearest_neighbor"},
                                    .match = match_sample}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
