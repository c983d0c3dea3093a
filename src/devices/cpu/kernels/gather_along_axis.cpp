// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/kernels/family.h"
#include "ops/common/indexing.h"

namespace moka::devices::cpu {

namespace {

/// Elements of x by their own indices along an axis of `size` entries, `inner` elements apart.
struct AlongAxis {
  int64_t size, count, inner;  ///< count: indices along the axis

  template <class Element, class Index>
  void run(const Element* x, const Index* indices, Element* y, int64_t begin, int64_t end) const {
    for (int64_t t = begin; t < end; t++) {
      const Element* from = x + t / count * size * inner;
      for (int64_t i = 0, at = t * inner; i < inner; i++, at++)
        y[at] = from[ops::Indexer::nearest(static_cast<int64_t>(indices[at]), size) * inner + i];
    }
  }
};

template <class Element, class Index>
void gather_at(const AlongAxis& g, const KernelArgs& args, size_t x, size_t at) {
  g.run(args.in[x].as<Element>(), args.in[at].as<Index>(), args.out[0].as<Element>(), args.begin, args.end);
}

template <class Element>
void gather_along(const AlongAxis& g, const KernelArgs& args, size_t x, size_t at) {
  switch (args.in[at].dtype) {
    case ir::DType::int8: return gather_at<Element, int8_t>(g, args, x, at);
    case ir::DType::uint8: return gather_at<Element, uint8_t>(g, args, x, at);
    case ir::DType::int16: return gather_at<Element, int16_t>(g, args, x, at);
    case ir::DType::uint16: return gather_at<Element, uint16_t>(g, args, x, at);
    default: return gather_at<Element, int32_t>(g, args, x, at);
  }
}

Match match_gather_along_axis(const MatchCall& m) {
  const ir::Shape x = m.call.shape("x"), indices = m.call.shape("indices");
  const ir::DType dtype = m.call.dtype("x");
  if (!has_bytes(dtype)) return Match::no(cat("element type ", dtype));
  if (m.outputs[0].shape().count() == 0) return Match::no("an empty result");
  const auto indexer = ops::Indexer::of(m.call);
  const auto given = m.call.integer("axis");
  if (!indexer.ok() || !given.ok()) return Match::no("settings that are not constant");
  const int axis = static_cast<int>(*given < 0 ? *given + x.rank() : *given);
  const AlongAxis g{x[axis], indices[axis], x.count(axis + 1, x.rank())};
  const auto in = static_cast<size_t>(m.call.arg_index("x")), at = static_cast<size_t>(m.call.arg_index("indices"));
  KernelChoice c;
  c.kernel = "cpu.gather_along_axis";
  c.tiles = indices.count(0, axis + 1);
  c.cost = cost_of(m, 0, 2 * traffic(m));
  c.run = [=, indexer = *indexer, bytes = ir::bits(dtype) / 8](const KernelArgs& args) -> Status {
    if (args.begin == 0) MOKA_TRY(indexer.check(*args.call, args.in[at], x, axis));
    switch (bytes) {
      case 1: gather_along<uint8_t>(g, args, in, at); break;
      case 2: gather_along<uint16_t>(g, args, in, at); break;
      case 4: gather_along<uint32_t>(g, args, in, at); break;
      default: gather_along<uint64_t>(g, args, in, at);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_gather_along_axis() {
  static const KernelDef defs[] = {
      {.name = "cpu.gather_along_axis", .ops = {"gather_along_axis"}, .match = match_gather_along_axis}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
