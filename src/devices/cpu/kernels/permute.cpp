// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>
#include <optional>

#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/loops.h"
#include "ops/common/common.h"

namespace moka::devices::cpu {

namespace {

/// An axis of the dense result. Adjacent elements along it are `step` elements apart in x.
struct PermuteAxis {
  int64_t size, step;
};
using Axes = std::vector<PermuteAxis>;

/// Drops axes of one element and merges axes that are contiguous in x.
Axes joined(const Axes& axes) {
  Axes out;
  for (const PermuteAxis& a : axes) {
    if (a.size == 1) continue;
    if (!out.empty() && out.back().step == a.step * a.size)
      out.back() = {out.back().size * a.size, a.step};
    else
      out.push_back(a);
  }
  if (out.empty()) out.push_back({1, 1});
  return out;
}

/// The axes of x in memory. Blocked channels are two axes: blocks, and `inner`, the channels of a block.
struct Stored {
  Axes axes;
  std::optional<PermuteAxis> inner;
};
Stored stored(const ir::Shape& x, Layout layout) {
  Stored s;
  const int64_t block = layout.is_row_major() ? 1 : layout.block;
  int64_t step = block;
  for (int i = x.rank() - 1; i >= 0; i--) {
    const int64_t size = i == 1 && block > 1 ? x[i] / block : x[i];
    s.axes.insert(s.axes.begin(), {size, step});
    step *= size;
  }
  if (block > 1) s.inner = PermuteAxis{block, 1};
  return s;
}

/// The result's axes, as steps in x. nullopt: the parameters are not known.
std::optional<Axes> axes_of(const MatchCall& m, Layout in, Layout out) {
  const std::string_view op = m.call.version().def->name;
  const ir::Shape& x = m.call.shape("x");
  if (op == "transpose") {
    auto perm = ops::axes_of(m.call, "perm", x.rank());
    if (!perm.ok()) return std::nullopt;
    const Stored s = stored(x, in);
    Axes axes;
    std::optional<PermuteAxis> last;
    for (int i = 0; i < perm->size(); i++) {
      const auto from = static_cast<size_t>((*perm)[i]);
      PermuteAxis a = s.axes[from];
      if (i == 1 && !out.is_row_major()) {  // x is row-major
        last = PermuteAxis{out.block, a.step};
        a = {a.size / out.block, a.step * out.block};
      }
      axes.push_back(a);
      if (from == 1 && s.inner) axes.push_back(*s.inner);
    }
    if (last) axes.push_back(*last);
    return axes;
  }
  const bool to_pixels = op == "pixel_shuffle" || op == "depth_to_space",
             channel_first = op == "pixel_shuffle" || op == "pixel_unshuffle";
  const char* param = op == "pixel_shuffle"     ? "upscale_factor"
                      : op == "pixel_unshuffle" ? "downscale_factor"
                                                : "block_size";
  auto given = m.call.integer(param);
  if (!given.ok() || x.rank() != 4) return std::nullopt;
  const int64_t b = *given, plane = x[2] * x[3];
  if (to_pixels) {
    const int64_t made = x[1] / (b * b), position = channel_first ? plane : made * plane;
    return Axes{
        {x[0], x[1] * plane}, {made, channel_first ? b * b * plane : plane}, {x[2], x[3]}, {b, b * position}, {x[3], 1},
        {b, position}};
  }
  const PermuteAxis of_block[] = {{b, x[3]}, {b, 1}};
  Axes axes{{x[0], x[1] * plane}};
  if (channel_first) axes.push_back({x[1], plane});
  axes.insert(axes.end(), std::begin(of_block), std::end(of_block));
  if (!channel_first) axes.push_back({x[1], plane});
  axes.insert(axes.end(), {{x[2] / b, b * x[3]}, {x[3] / b, b}});
  return axes;
}

template <class T>
void transpose(const T* from, int64_t from_step, int64_t rows, int64_t columns, T* to, int64_t to_step) {
  constexpr int64_t kSide = 16;
  for (int64_t r = 0; r < rows; r += kSide)
    for (int64_t c = 0; c < columns; c++)
      for (int64_t i = r; i < std::min(rows, r + kSide); i++) to[c * to_step + i] = from[i * from_step + c];
}

/// A permutation as copies of runs, if the last axis is dense in x too (`run`). Otherwise it transposes squares of the
/// last axis and `across`, the axis that is dense in x.
struct Copy {
  Axes outer;               ///< the other axes
  std::vector<int64_t> at;  ///< their steps in the result
  PermuteAxis last{1, 1}, across{1, 1};
  int64_t across_at = 0;  ///< step of `across` in the result
  int64_t rows = 1;       ///< elements of `outer`
  bool run = false;
};

constexpr int64_t kPermuteTile = 64;  // elements of `across` per tile, so that the tile's data stays in the cache

Copy copy_of(const Axes& axes) {
  Copy c;
  std::vector<int64_t> at(axes.size(), 1);
  for (size_t i = axes.size() - 1; i > 0; i--) at[i - 1] = at[i] * axes[i].size;
  c.last = axes.back();
  c.run = c.last.step == 1;
  size_t dense = axes.size() - 1;
  for (size_t i = 0; i + 1 < axes.size(); i++)
    if (!c.run && axes[i].step < axes[dense].step) dense = i;
  for (size_t i = 0; i + 1 < axes.size(); i++) {
    if (!c.run && i == dense) continue;
    c.outer.push_back(axes[i]);
    c.at.push_back(at[i]);
    c.rows *= axes[i].size;
  }
  if (!c.run && dense + 1 < axes.size()) {
    c.across = axes[dense];
    c.across_at = at[dense];
  }
  return c;
}

/// Calls f(offset in x, offset in the result) for elements [begin, end) of `outer`.
template <class F>
void for_rows(const Copy& c, int64_t begin, int64_t end, F f) {
  int64_t k[ir::Ints::kCapacity + 1] = {}, from = 0, to = 0;
  for (int64_t i = static_cast<int64_t>(c.outer.size()) - 1, rest = begin; i >= 0; i--) {
    const auto a = static_cast<size_t>(i);
    k[a] = rest % c.outer[a].size;
    rest /= c.outer[a].size;
    from += k[a] * c.outer[a].step;
    to += k[a] * c.at[a];
  }
  for (int64_t row = begin; row < end; row++) {
    f(from, to);
    for (size_t a = c.outer.size(); a-- > 0;) {
      from += c.outer[a].step;
      to += c.at[a];
      if (++k[a] < c.outer[a].size) break;
      from -= k[a] * c.outer[a].step;
      to -= k[a] * c.at[a];
      k[a] = 0;
    }
  }
}

template <class T, class F>
void run_squares(const Copy& c, int64_t begin, int64_t end, const std::byte* x, std::byte* y, F transpose) {
  const int64_t parts = (c.across.size + kPermuteTile - 1) / kPermuteTile;
  for (int64_t t = begin; t < end;) {
    const int64_t row = t / parts, stop = std::min(end, (row + 1) * parts);
    for_rows(c, row, row + 1, [&](int64_t from, int64_t to) {
      for (; t < stop; t++) {
        const int64_t first = t % parts * kPermuteTile;
        transpose(reinterpret_cast<const T*>(x) + from + first, c.last.step, c.last.size,
                  std::min(kPermuteTile, c.across.size - first), reinterpret_cast<T*>(y) + to + first * c.across_at,
                  c.across_at);
      }
    });
  }
}

/// Copies runs of `bytes` bytes; 0: of any length.
template <size_t bytes>
void run_rows(const Copy& c, size_t size, int64_t begin, int64_t end, const std::byte* x, std::byte* y) {
  const size_t run = static_cast<size_t>(c.last.size) * size;
  for_rows(c, begin, end, [&](int64_t from, int64_t to) {
    std::memcpy(y + static_cast<size_t>(to) * size, x + static_cast<size_t>(from) * size, bytes == 0 ? run : bytes);
  });
}

void run_tiles(const Copy& c, size_t size, int64_t begin, int64_t end, const std::byte* x, std::byte* y) {
  if (c.run) {
    const size_t run = static_cast<size_t>(c.last.size) * size;
    (run == 64 ? run_rows<64> : run == 32 ? run_rows<32> : run_rows<0>)(c, size, begin, end, x, y);
  } else if (size == 4) {
    run_squares<float>(c, begin, end, x, y, vector::loops().transpose);
  } else if (size == 1) {
    run_squares<uint8_t>(c, begin, end, x, y, transpose<uint8_t>);
  } else if (size == 2) {
    run_squares<uint16_t>(c, begin, end, x, y, transpose<uint16_t>);
  } else {
    run_squares<uint64_t>(c, begin, end, x, y, transpose<uint64_t>);
  }
}

Match match_permute(const MatchCall& m) {
  const ir::Shape &x = m.call.shape("x"), &y = m.outputs[0].shape();
  const ir::DType dtype = m.call.dtype("x");
  const int64_t bits = ir::bits(dtype);
  if (!has_bytes(dtype) || bits > 64) return Match::no(cat("element type ", dtype));
  if (x.count() == 0) return Match::no("an empty tensor");
  Layout in = layout_of(m, "x"), out;
  const bool splits = m.call.version().def->name == "transpose" && dtype == ir::DType::fp32;
  if (!splits || in.kind != Layout::Kind::channel_blocked || x[1] % in.block != 0) in = {};
  // The result of a conversion from channels last to channels first usually goes to a convolution, which prefers
  // blocks.
  if (splits && in.is_row_major() && m.epilogue.empty() && y.rank() == 4 && y[1] % channel_block() == 0) {
    auto perm = ops::axes_of(m.call, "perm", x.rank());
    if (perm.ok() && std::ranges::equal(perm->span(), std::array{0, 3, 1, 2}) && y[2] * y[3] > 1) out = blocked();
  }
  auto axes = axes_of(m, in, out);
  if (!axes) return Match::no("parameters that are known only while running");
  Copy copy = copy_of(joined(*axes));
  const auto at = static_cast<size_t>(m.call.arg_index("x"));
  KernelChoice c;
  c.kernel = "cpu.permute";
  c.in = in_layouts(m, "x", in);
  c.out = {out};
  c.tiles = copy.rows * (copy.run ? 1 : (copy.across.size + kPermuteTile - 1) / kPermuteTile);
  c.cost = cost_of(m, 0, traffic(m));
  c.run = [copy = std::move(copy), at, size = static_cast<size_t>(bits / 8)](const KernelArgs& args) -> Status {
    run_tiles(copy, size, args.begin, args.end, args.in[at].as<std::byte>(), args.out[0].as<std::byte>());
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_permute() {
  static const KernelDef defs[] = {
      {.name = "cpu.permute",
       .ops = {"transpose", "pixel_shuffle", "pixel_unshuffle", "depth_to_space", "space_to_depth"},
       .match = match_permute}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
