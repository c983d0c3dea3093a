// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/broadcast.h"
#include "devices/cpu/kernels/family.h"

namespace moka::devices::cpu {

namespace {

using vector::Binary;
using vector::loops;

void tell(const Chunks& chunks, kernel::Facts& facts) {
  facts.add("chunks", chunks.tiles(), " of up to ", chunks.first(1), " numbers");
}

Match match_unary(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x"}); !why.empty()) return Match::no(why);
  const auto f = activation_of(m.call);
  if (!f) return Match::no("a parameter that is NaN or not constant");
  const ir::Shape shape = m.outputs[0].shape();
  const Layout layout = layout_of(m, "x");
  const Chunks chunks{storage_count(shape, layout)};
  const auto x = static_cast<size_t>(m.call.arg_index("x"));
  KernelChoice c;
  c.kernel = "cpu.unary";
  c.in = in_layouts(m, "x", layout);
  c.out = {layout};
  c.in_place = static_cast<int>(x);
  c.tiles = chunks.tiles();
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, 0, traffic(m));
  c.facts = [=](kernel::Facts& facts) { tell(chunks, facts); };
  c.run = [=, f = *f, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t first = chunks.first(t), n = chunks.first(t + 1) - first;
      float* y = args.out[0].as<float>() + first;
      f.apply(args.in[x].as<float>() + first, y, n);
      apply_all(after, y, n);
      clear_padding(shape, layout, args.out[0].as<float>(), first, first + n);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

struct BinaryEntry {
  std::string_view op;
  Binary f;
  bool compares = false;
};

constexpr BinaryEntry kBinary[] = {{"add", Binary::add},
                                   {"sub", Binary::sub},
                                   {"mul", Binary::mul},
                                   {"real_div", Binary::div},
                                   {"maximum", Binary::max},
                                   {"minimum", Binary::min},
                                   {"pow", Binary::pow},
                                   {"equal", Binary::equal, true},
                                   {"not_equal", Binary::not_equal, true},
                                   {"less", Binary::less, true},
                                   {"less_equal", Binary::less_equal, true},
                                   {"greater", Binary::greater, true},
                                   {"greater_equal", Binary::greater_equal, true}};

/// How an operation with a blocked result reads an input: the layout to request, and the steps along the axes [images,
/// blocks, pixels..., lanes].
struct Operand {
  Layout layout;
  bool possible = false;
  std::array<int64_t, ir::kMaxRank + 1> steps{};
};

Operand operand_of(const ir::Shape& in, const ir::Shape& out, Layout layout) {
  Operand o;
  const int rank = out.rank();
  const int64_t block = layout.block;
  if (in.count() == 1) {
    o.possible = true;
    return o;
  }
  if (in.rank() == rank && in[1] == out[1]) {
    o.layout = layout;
    o.possible = true;
    o.steps[static_cast<size_t>(rank)] = 1;
    int64_t step = block;
    for (int i = rank - 1; i >= 2; i--, step *= in[i + 1]) o.steps[static_cast<size_t>(i)] = in[i] == 1 ? 0 : step;
    step = block * in.count(2, rank);
    o.steps[1] = out[1] <= block ? 0 : step;
    o.steps[0] = in[0] == 1 ? 0 : step * ((in[1] + block - 1) / block);
    return o;
  }
  // One value per channel.
  const int axis = 1 - (rank - in.rank());
  if (axis >= 0 && in.count() == out[1] && in[axis] == out[1] && out[1] % block == 0) {
    o.possible = true;
    o.steps[1] = block;
    o.steps[static_cast<size_t>(rank)] = 1;
    return o;
  }
  // The same values for every channel.
  if (in.rank() == rank && in[1] == 1) {
    o.possible = true;
    const auto strides = in.strides();
    for (int i = 0; i < rank; i++) o.steps[static_cast<size_t>(i)] = in[i] == 1 ? 0 : strides[static_cast<size_t>(i)];
  }
  return o;
}

/// The layout of an input that has the result's shape and arrives blocked; row-major if no input does.
Layout arriving(const MatchCall& m, std::initializer_list<std::string_view> params, const ir::Shape& out) {
  for (std::string_view p : params)
    if (m.call.shape(p) == out && out.rank() >= 3 && layout_of(m, p).kind == Layout::Kind::channel_blocked)
      return layout_of(m, p);
  return {};
}

struct Pair {
  Layout out;
  std::vector<Layout> in;
  Broadcast walk;
};

Pair pair_of(const MatchCall& m, std::string_view a, std::string_view b, bool may_block) {
  const ir::Shape &x = m.call.shape(a), &y = m.call.shape(b), &out = m.outputs[0].shape();
  Pair p;
  p.in.resize(m.call.all_args().size());
  const Layout layout = may_block ? arriving(m, {a, b}, out) : Layout{};
  if (!layout.is_row_major()) {
    const Operand first = operand_of(x, out, layout), second = operand_of(y, out, layout);
    if (first.possible && second.possible) {
      p.out = layout;
      p.in[static_cast<size_t>(m.call.arg_index(a))] = first.layout;
      p.in[static_cast<size_t>(m.call.arg_index(b))] = second.layout;
      for (int i = 0; i <= out.rank(); i++) {
        const auto k = static_cast<size_t>(i);
        const int64_t size = i == 1            ? (out[1] + layout.block - 1) / layout.block
                             : i == out.rank() ? layout.block
                                               : out[i];
        p.walk.add(size, {first.steps[k], second.steps[k], 0});
      }
      return p;
    }
  }
  const ir::Shape shapes[] = {x, y};
  p.walk = Broadcast::of(out, shapes);
  return p;
}

/// An operand of a blocked operation that has one value per channel or one per pixel. The images can share the values.
struct Gate {
  int operand = -1;         ///< 0: first, 1: second, -1: none
  bool per_pixel = false;   ///< else per channel
  int64_t plane = 0;        ///< elements of a block of channels
  int64_t groups = 0;       ///< blocks of an image
  bool own_values = false;  ///< whether each image has values of its own
};

Gate gate_of(const MatchCall& m, std::string_view a, std::string_view b, Layout layout) {
  const ir::Shape& out = m.outputs[0].shape();
  if (layout.is_row_major()) return {};
  const int64_t groups = (out[1] + layout.block - 1) / layout.block, pixels = out.count(2, out.rank());
  for (int k = 0; k < 2; k++) {
    const ir::Shape &given = m.call.shape(k == 0 ? a : b), &other = m.call.shape(k == 0 ? b : a);
    ir::Shape gate;
    for (int i = given.rank(); i < out.rank(); i++) gate.push_back(1);
    for (int i = 0; i < given.rank(); i++) gate.push_back(given[i]);
    if (other != out || gate.count() == 1 || (gate[0] != out[0] && gate[0] != 1)) continue;
    const bool per_channel = gate[1] == out[1] && gate.count(2, gate.rank()) == 1;
    const bool per_pixel = gate[1] == 1 && out[1] != 1 && gate.count(2, gate.rank()) == pixels;
    if (per_channel || per_pixel)
      return {k, per_pixel, pixels * layout.block, groups, gate[0] == out[0] && out[0] != 1};
  }
  return {};
}

/// Computes elements [begin, end). Repeats the gate's values in a buffer, because that makes the vector loops longer.
void run_gated(const Gate& g, int64_t block, Binary f, const float* a, const float* b, float* y, int64_t begin,
               int64_t end) {
  constexpr int64_t kRun = 512;
  float repeated[kRun];
  const float* values = g.operand == 0 ? a : b;
  while (begin < end) {
    const int64_t group = begin / g.plane, stop = std::min(end, (group + 1) * g.plane), start = group * g.plane;
    const int64_t wanted = std::min(kRun, stop - begin), image = g.own_values ? group / g.groups : 0;
    if (!g.per_pixel) {
      std::copy_n(values + (image * g.groups + group % g.groups) * block, block, repeated);
      for (int64_t n = block; n < wanted; n *= 2) std::copy_n(repeated, std::min(n, wanted - n), repeated + n);
    }
    for (; begin < stop; begin += kRun) {
      const int64_t n = std::min(kRun, stop - begin);
      if (g.per_pixel)
        for (int64_t i = 0; i < n; i += block)
          std::fill_n(repeated + i, block, values[(image * g.plane + begin - start + i) / block]);
      loops().binary(f, g.operand == 0 ? repeated : a + begin, 1, g.operand == 1 ? repeated : b + begin, 1, y + begin,
                     n);
    }
    begin = stop;
  }
}

Match binary_choice(const MatchCall& m, std::string_view kernel, std::string_view a, std::string_view b, Pair p,
                    Binary f, bool compares) {
  const ir::Shape out = m.outputs[0].shape();
  const Layout layout = p.out;
  const Chunks chunks{storage_count(out, layout)};
  const auto x = static_cast<size_t>(m.call.arg_index(a)), y = static_cast<size_t>(m.call.arg_index(b));
  KernelChoice c;
  c.kernel = kernel;
  c.in = std::move(p.in);
  c.out = {layout};
  if (!compares)
    c.in_place = m.call.shape(a) == out ? static_cast<int>(x) : m.call.shape(b) == out ? static_cast<int>(y) : -1;
  c.tiles = chunks.tiles();
  c.epilogues = compares ? 0 : m.epilogue.size();
  c.cost = cost_of(m, 0, traffic(m));
  const Gate gate = compares ? Gate{} : gate_of(m, a, b, layout);
  c.facts = [=](kernel::Facts& facts) {
    tell(chunks, facts);
    if (gate.operand >= 0) facts.add("gate", gate.per_pixel ? "a number for each pixel" : "a number for each channel");
  };
  c.run = [=, walk = p.walk, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    const float *v = args.in[x].as<float>(), *w = args.in[y].as<float>();
    auto* to = args.out[0].as<std::byte>();
    const int64_t size = compares ? 1 : 4;
    const int64_t begin = chunks.first(args.begin), end = chunks.first(args.end);
    if (gate.operand >= 0)
      run_gated(gate, layout.block, f, v, w, args.out[0].as<float>(), begin, end);
    else
      walk.each(begin, end, [&](int64_t first, const auto& from, int64_t n) {
        loops().binary(f, v + from[0], walk.step(0), w + from[1], walk.step(1), to + first * size, n);
      });
    if (!compares) {
      float* z = args.out[0].as<float>();
      apply_all(after, z + begin, end - begin);
      clear_padding(out, layout, z, begin, end);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_binary(const MatchCall& m) {
  const BinaryEntry* entry = nullptr;
  for (const BinaryEntry& e : kBinary)
    if (e.op == m.call.version().def->name) entry = &e;
  for (std::string_view p : {"x", "y"}) {
    const ir::Type& t = m.call.type(p);
    if (t.dtype() != ir::DType::fp32) return Match::no(cat("element type ", t.dtype()));
  }
  if (m.outputs[0].shape().count() == 0) return Match::no("an empty tensor");
  return binary_choice(m, "cpu.binary", "x", "y", pair_of(m, "x", "y", !entry->compares), entry->f, entry->compares);
}

Match match_prelu(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "alpha"}); !why.empty()) return Match::no(why);
  const ir::Shape& x = m.call.shape("x");
  ir::Shape alpha{x[1]};
  for (int i = 2; i < x.rank(); i++) alpha.push_back(1);
  const Layout layout = arriving(m, {"x"}, x);
  Pair p;
  p.in.resize(m.call.all_args().size());
  const Operand slopes = layout.is_row_major() ? Operand{} : operand_of(alpha, x, layout);
  if (slopes.possible && x[1] % layout.block == 0 && m.call.shape("alpha").count() == x[1]) {
    p.out = p.in[static_cast<size_t>(m.call.arg_index("x"))] = layout;
    p.walk.add(x[0], {storage_count(x, layout) / x[0], 0, 0});
    const int64_t pixels = x.count(2, x.rank());
    p.walk.add(x[1] / layout.block, {pixels * layout.block, slopes.steps[1], 0});
    p.walk.add(pixels, {layout.block, 0, 0});
    p.walk.add(layout.block, {1, 1, 0});
  } else {
    if (m.call.shape("alpha").count() == 1) alpha = ir::Shape{};
    const ir::Shape shapes[] = {x, alpha};
    p.walk = Broadcast::of(x, shapes);
  }
  return binary_choice(m, "cpu.prelu", "x", "alpha", std::move(p), Binary::prelu, false);
}

Match match_select(const MatchCall& m) {
  for (std::string_view p : {"a", "b"})
    if (m.call.dtype(p) != ir::DType::fp32) return Match::no(cat("element type ", m.call.dtype(p)));
  const ir::Shape out = m.outputs[0].shape();
  if (out.count() == 0) return Match::no("an empty tensor");
  const ir::Shape shapes[] = {m.call.shape("cond"), m.call.shape("a"), m.call.shape("b")};
  const Chunks chunks{out.count()};
  const auto k = static_cast<size_t>(m.call.arg_index("cond")), a = static_cast<size_t>(m.call.arg_index("a")),
             b = static_cast<size_t>(m.call.arg_index("b"));
  KernelChoice c;
  c.kernel = "cpu.select";
  c.tiles = chunks.tiles();
  c.cost = cost_of(m, 0, traffic(m));
  c.facts = [=](kernel::Facts& facts) { tell(chunks, facts); };
  c.run = [=, walk = Broadcast::of(out, shapes)](const KernelArgs& args) -> Status {
    const auto* cond = args.in[k].as<uint8_t>();
    const float *v = args.in[a].as<float>(), *w = args.in[b].as<float>();
    float* y = args.out[0].as<float>();
    walk.each(chunks.first(args.begin), chunks.first(args.end), [&](int64_t first, const auto& from, int64_t n) {
      loops().select(cond + from[0], walk.step(0), v + from[1], walk.step(1), w + from[2], walk.step(2), y + first, n);
    });
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_elementwise() {
  static const KernelDef defs[] = {{.name = "cpu.unary", .ops = activation_operations(), .match = match_unary},
                                   {.name = "cpu.binary",
                                    .ops = {"add", "sub", "mul", "real_div", "maximum", "minimum", "pow", "equal",
                                            "not_equal", "less", "less_equal", "greater", "greater_equal"},
                                    .match = match_binary},
                                   {.name = "cpu.prelu", .ops = {"prelu"}, .match = match_prelu},
                                   {.name = "cpu.select", .ops = {"select"}, .match = match_select}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
