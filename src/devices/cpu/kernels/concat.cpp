// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "devices/cpu/common/mixed_channels.h"
#include "devices/cpu/kernels/family.h"
#include "ops/common/common.h"

namespace moka::devices::cpu {

namespace {

/// Tensors joined along an axis, seen as `rows` rows of bytes. Every row of the whole holds one run of each part.
struct Rows {
  int64_t rows = 1, whole = 0;    // bytes per row of the whole
  std::vector<int64_t> runs, at;  // bytes per row of each part, and their offset in the whole's row

  void add(int64_t run) {
    runs.push_back(run);
    at.push_back(whole);
    whole += run;
  }
};

/// Joins blocked tensors block by block. All parts but the last must fill their blocks; else nullopt.
std::optional<Rows> blocked_rows(std::span<const ir::Shape> parts, Layout layout) {
  Rows r;
  r.rows = parts[0][0];
  for (const ir::Shape& s : parts) {
    if (&s != &parts.back() && s[1] % layout.block != 0) return std::nullopt;
    r.add(s[0] == 0 ? 0 : storage_count(s, layout) / s[0] * static_cast<int64_t>(sizeof(float)));
  }
  return r;
}

Rows plain_rows(std::span<const ir::Shape> parts, int axis, ir::DType dtype) {
  Rows r;
  r.rows = parts[0].count(0, axis);
  for (const ir::Shape& s : parts) r.add(s.count(axis, s.rank()) * ir::bits(dtype) / 8);
  return r;
}

/// Tile t is row t / parts of part t % parts. Calls copy(part, offset in the whole, offset in the part, bytes).
template <class Copy>
void copy_rows(const Rows& r, const KernelArgs& args, Copy copy) {
  const auto n = static_cast<int64_t>(r.runs.size());
  for (int64_t t = args.begin; t < args.end; t++) {
    const auto part = static_cast<size_t>(t % n);
    copy(part, t / n * r.whole + r.at[part], t / n * r.runs[part], static_cast<size_t>(r.runs[part]));
  }
}

constexpr int64_t kInterleavedRows = 1024;  // rows per tile

/// Rows [begin, end) of `n` parts of one element a row.
template <class T>
void interleave(const KernelArgs& args, size_t first, size_t n, int64_t begin, int64_t end) {
  T* y = args.out[0].as<T>();
  if (n == 2) {
    const T *a = args.in[first].as<T>(), *b = args.in[first + 1].as<T>();
    for (int64_t i = begin; i < end; i++) {
      y[2 * i] = a[i];
      y[2 * i + 1] = b[i];
    }
    return;
  }
  for (size_t p = 0; p < n; p++) {
    const T* x = args.in[first + p].as<T>();
    for (int64_t i = begin; i < end; i++) y[static_cast<size_t>(i) * n + p] = x[i];
  }
}

/// Joins along the last dimension of parts that have one entry there.
KernelChoice interleaving(const MatchCall& m, size_t first, size_t n, int64_t rows, int64_t bytes) {
  KernelChoice c;
  c.kernel = "cpu.concat";
  c.in.resize(m.call.all_args().size());
  c.out = {Layout{}};
  c.tiles = (rows + kInterleavedRows - 1) / kInterleavedRows;
  c.cost = cost_of(m, 0, traffic(m));
  const auto run = bytes == 1   ? interleave<uint8_t>
                   : bytes == 2 ? interleave<uint16_t>
                   : bytes == 4 ? interleave<uint32_t>
                                : interleave<uint64_t>;
  c.run = [=](const KernelArgs& args) -> Status {
    run(args, first, n, args.begin * kInterleavedRows, std::min(rows, args.end * kInterleavedRows));
    return {};
  };
  return c;
}

/// Whether to mix the channels of blocked parts [N, C, ...] that do not fill their blocks. Converting everything to
/// row-major and back takes longer, unless the result is wanted row-major.
bool pays_to_mix(const MatchCall& m, Layout layout, int axis, int64_t blocked_channels, int64_t channels) {
  return layout.kind == Layout::Kind::channel_blocked && axis == 1 && !m.reshaped && 2 * blocked_channels >= channels;
}

/// Joins `parts` into `whole`, or with `cut` splits `whole` into `parts`. The first input is number `first`.
KernelChoice mix(const MatchCall& m, std::string_view kernel, Layout layout, size_t first, const ir::Shape& whole,
                 std::span<const ir::Shape> parts, bool cut) {
  std::vector<int64_t> begins{0};
  for (const ir::Shape& s : parts) begins.push_back(begins.back() + s[1]);
  const auto part_of = [&](int64_t channel) {
    return static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), channel) - begins.begin() - 1);
  };
  const MatchCall fed = with_threads_for(m, 0);
  const std::span<const ir::Shape> one(&whole, 1);
  MixedChannels mixed(cut ? parts : one, layout.block, fed.threads, [&](size_t part, int64_t channel) {
    if (cut) return MixedChannels::Channel{0, begins[part] + channel};
    const size_t from = part_of(channel);
    return MixedChannels::Channel{from, channel - begins[from]};
  });
  KernelChoice c;
  c.kernel = kernel;
  c.in.resize(m.call.all_args().size());
  for (size_t i = 0; i < (cut ? 1 : parts.size()); i++) c.in[first + i] = layout;
  c.out.assign(m.outputs.size(), layout);
  c.tiles = mixed.tiles();
  c.cost = cost_of(m, 0, traffic(m));
  c.run = [first, mixed = std::move(mixed)](const KernelArgs& args) -> Status {
    mixed.run(args, first);
    return {};
  };
  return c;
}

Match match_concat(const MatchCall& m) {
  const auto values = m.call.args("values");
  const ir::Shape& out = m.outputs[0].shape();
  const ir::DType dtype = m.outputs[0].dtype();
  const bool stack = m.call.version().def->name == "stack";
  if (!has_bytes(dtype)) return Match::no(cat("element type ", dtype));
  if (!stack) {
    auto interleave = m.call.flag("interleave");
    if (!interleave.ok() || *interleave) return Match::no("interleaving");
  }
  auto axis =
      ops::axis_of(m.call, "axis", out.rank());  // also for stack, whose axis counts from the end of the result's shape
  if (!axis.ok() || out.count() == 0) return Match::no("nothing to join");
  const auto first = static_cast<size_t>(m.call.arg_index("values"));
  std::vector<ir::Shape> shapes;
  Layout layout;
  int64_t blocked_channels = 0;
  for (size_t i = 0; i < values.size(); i++) {
    if (values[i].type->dtype() != dtype) return Match::no("several element types");
    shapes.push_back(out);
    const ir::Shape& part = values[i].type->shape();
    shapes.back()[*axis] = part.rank() < out.rank() ? 1 : part[*axis];  // concat also joins scalars
    if (stack || m.layouts[first + i].kind != Layout::Kind::channel_blocked) continue;
    layout = m.layouts[first + i];
    if (part.rank() > 1) blocked_channels += part[1];
  }
  std::optional<Rows> rows;
  if (!layout.is_row_major() && *axis == 1) rows = blocked_rows(shapes, layout);
  if (!rows && pays_to_mix(m, layout, *axis, blocked_channels, out[1]))
    return Match::yes(mix(m, "cpu.concat.mixed", layout, first, out, shapes, false));
  if (!rows) {
    layout = {};
    rows = plain_rows(shapes, *axis, dtype);
    const int64_t bytes = ir::bits(dtype) / 8;
    if (rows->rows > 1 && bytes <= 8 &&
        std::all_of(rows->runs.begin(), rows->runs.end(), [&](int64_t run) { return run == bytes; }))
      return Match::yes(interleaving(m, first, values.size(), rows->rows, bytes));
  }
  KernelChoice c;
  c.kernel = layout.is_row_major() ? "cpu.concat" : "cpu.concat.blocked";
  c.in.resize(m.call.all_args().size());
  for (size_t i = 0; i < values.size(); i++) c.in[first + i] = layout;
  c.out = {layout};
  c.tiles = rows->rows * static_cast<int64_t>(values.size());
  c.cost = cost_of(m, 0, traffic(m));
  for (size_t i = 0; rows->rows == 1 && i < values.size(); i++)
    c.joins.push_back({static_cast<int>(first + i), 0, static_cast<size_t>(rows->at[i])});
  c.run = [first, r = std::move(*rows)](const KernelArgs& args) -> Status {
    copy_rows(r, args, [&](size_t part, int64_t at, int64_t from, size_t bytes) {
      std::byte* to = args.out[0].as<std::byte>() + at;
      const std::byte* x = args.in[first + part].as<std::byte>() + from;
      if (x != to && bytes > 0) std::memcpy(to, x, bytes);
    });
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_split(const MatchCall& m) {
  const ir::Shape& x = m.call.shape("x");
  const ir::DType dtype = m.call.dtype("x");
  if (!has_bytes(dtype)) return Match::no(cat("element type ", dtype));
  auto axis = ops::axis_of(m.call, "axis", x.rank());
  if (!axis.ok() || x.count() == 0) return Match::no("nothing to cut");
  std::vector<ir::Shape> shapes;
  for (const ir::Type& t : m.outputs) shapes.push_back(t.shape());
  Layout layout = layout_of(m, "x");
  std::optional<Rows> rows;
  if (layout.kind == Layout::Kind::channel_blocked && *axis == 1) rows = blocked_rows(shapes, layout);
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  if (!rows && pays_to_mix(m, layout, *axis, x[1], x[1]))
    return Match::yes(mix(m, "cpu.split.mixed", layout, in, x, shapes, true));
  if (!rows) {
    layout = {};
    rows = plain_rows(shapes, *axis, dtype);
  }
  KernelChoice c;
  c.kernel = layout.is_row_major() ? "cpu.split" : "cpu.split.blocked";
  c.in = in_layouts(m, "x", layout);
  c.out.assign(m.outputs.size(), layout);
  c.tiles = rows->rows * static_cast<int64_t>(m.outputs.size());
  c.cost = cost_of(m, 0, traffic(m));
  for (size_t i = 0; rows->rows == 1 && i < m.outputs.size(); i++)
    c.cuts.push_back({static_cast<int>(in), static_cast<int>(i), static_cast<size_t>(rows->at[i])});
  c.run = [in, r = std::move(*rows)](const KernelArgs& args) -> Status {
    copy_rows(r, args, [&](size_t part, int64_t at, int64_t to, size_t bytes) {
      if (bytes > 0) std::memcpy(args.out[part].as<std::byte>() + to, args.in[in].as<std::byte>() + at, bytes);
    });
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_concat() {
  static const KernelDef defs[] = {{.name = "cpu.concat", .ops = {"concat", "stack"}, .match = match_concat},
                                   {.name = "cpu.split", .ops = {"split"}, .match = match_split}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
