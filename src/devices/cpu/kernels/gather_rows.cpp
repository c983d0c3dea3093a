// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/index_vectors.h"
#include "devices/cpu/kernels/family.h"
#include "ops/common/indexing.h"

namespace moka::devices::cpu {

namespace {

/// y[b][p][i] is the run of `inner` elements that index vector i of batch b addresses in part p of batch b.
struct GatherRows {
  IndexVectors vectors;
  int64_t batches, parts, n, inner, part_step;

  static constexpr int64_t kVectors = 512, kTile = 16384;
  /// Index vectors and parts of a tile.
  int64_t tall() const { return std::clamp<int64_t>(kTile / inner, 16, kVectors); }
  int64_t wide() const { return std::max<int64_t>(1, kTile / (tall() * inner)); }
  int64_t blocks() const { return (n + tall() - 1) / tall(); }
  int64_t bands() const { return (parts + wide() - 1) / wide(); }

  template <class Element>
  void run(const KernelArgs& args, size_t in, size_t at) const {
    int64_t positions[kVectors];
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t first = t % blocks() * tall(), count = std::min(tall(), n - first);
      const int64_t band = t / blocks() % bands(), b = t / blocks() / bands();
      vectors.nearest(args.in[at], b * n + first, count, positions);
      for (int64_t p = band * wide(); p < std::min(parts, (band + 1) * wide()); p++) {
        const Element* from = args.in[in].as<Element>() + (b * parts + p) * part_step;
        Element* to = args.out[0].as<Element>() + ((b * parts + p) * n + first) * inner;
        if (inner == 1)
          for (int64_t i = 0; i < count; i++) to[i] = from[positions[i]];
        else
          for (int64_t i = 0; i < count; i++) std::copy_n(from + positions[i], inner, to + i * inner);
      }
    }
  }
};

Match match_gather_rows(const MatchCall& m) {
  const ir::Shape x = m.call.shape("x"), indices = m.call.shape("indices");
  const ir::DType dtype = m.call.dtype("x");
  if (!has_bytes(dtype)) return Match::no(cat("element type ", dtype));
  if (m.outputs[0].shape().count() == 0) return Match::no("an empty result");
  const auto indexer = ops::Indexer::of(m.call);
  const auto given = ops::batch_dims_of(m.call);
  if (!indexer.ok() || !given.ok()) return Match::no("settings that are not constant");
  const int batch = *given;
  int axis = batch, depth = 1, last = indices.rank();
  if (m.call.version().def->name == "gather_nd") {
    depth = static_cast<int>(indices[--last]);
  } else {
    const auto a = m.call.integer("axis");
    if (!a.ok()) return Match::no("settings that are not constant");
    axis = static_cast<int>(*a < 0 ? *a + x.rank() : *a);
  }
  if (depth == 0) return Match::no("empty index vectors");
  GatherRows g{{}, x.count(0, batch), x.count(batch, axis), indices.count(batch, last), 0, x.count(axis, x.rank())};
  g.inner = x.count(axis + depth, x.rank());
  for (int d = 0; d < depth; d++) g.vectors.add(x[axis + d], x.count(axis + d + 1, x.rank()));
  const auto in = static_cast<size_t>(m.call.arg_index("x")), at = static_cast<size_t>(m.call.arg_index("indices"));
  KernelChoice c;
  c.kernel = "cpu.gather_rows";
  c.tiles = g.batches * g.bands() * g.blocks();
  c.cost = cost_of(m, 0, 3.0 * static_cast<double>(m.outputs[0].shape().count() * ir::bits(dtype) / 8));
  c.run = [=, indexer = *indexer, bytes = ir::bits(dtype) / 8](const KernelArgs& args) -> Status {
    if (args.begin == 0) MOKA_TRY(indexer.check(*args.call, args.in[at], x, axis, depth));
    switch (bytes) {
      case 1: g.run<uint8_t>(args, in, at); break;
      case 2: g.run<uint16_t>(args, in, at); break;
      case 4: g.run<uint32_t>(args, in, at); break;
      default: g.run<uint64_t>(args, in, at);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_gather_rows() {
  static const KernelDef defs[] = {
      {.name = "cpu.gather_rows", .ops = {"gather", "gather_nd"}, .match = match_gather_rows}};
  return {210, defs};
}

}  // namespace moka::devices::cpu
