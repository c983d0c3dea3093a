// SPDX-License-Identifier: Apache-2.0
#include "diff/fusion.h"

#include <algorithm>

namespace moka::diff {
namespace {

/// Whether `node` computes from the result of `source`, with nothing but operations without partners between.
bool follows(const Graph& g, const std::vector<int>& partners, int node, int source, size_t most) {
  const ir::Op* at = g.nodes()[static_cast<size_t>(node)].op;
  for (size_t steps = 0; steps < most; ++steps) {
    const ir::Op* next = nullptr;
    for (const ir::Operand& operand : at->operands())
      for (const ir::Value* value : operand.values) {
        if (g.is_constant(value)) continue;
        const ir::Value* from = g.resolved(value);
        const int producer = from->producer() == nullptr ? -1 : g.index_of(from->producer());
        if (producer == source) return true;
        if (producer >= 0 && partners[static_cast<size_t>(producer)] < 0 && next == nullptr) next = from->producer();
      }
    if (next == nullptr) return false;
    at = next;
  }
  return false;
}

}  // namespace

std::vector<int> feeders(const Graph& g, const Graph& h, const std::vector<int>& partners, int i) {
  std::vector<int> out;
  const ir::Op& op = *g.nodes()[static_cast<size_t>(i)].op;
  const auto add = [&](const ir::Value* value) {
    value = h.resolved(value);
    if (value != nullptr && value->producer() != nullptr && !h.is_constant(value))
      if (const int j = h.index_of(value->producer()); j >= 0) out.push_back(j);
  };
  const auto add_outputs = [&](const ir::Block& a, const ir::Block& b) {
    for (size_t n = 0; n < std::min(a.outputs().size(), b.outputs().size()); ++n)
      if (g.resolved(a.outputs()[n])->producer() == &op) add(b.outputs()[n]);
  };
  for (size_t n = 0; n < op.output_count(); ++n)
    for (const Graph::Use& use : g.uses(op.output(n))) {
      const int user = partners[static_cast<size_t>(use.node)];
      if (user < 0) continue;
      const ir::Op& other = *h.nodes()[static_cast<size_t>(user)].op;
      const bool swaps = other.has_trait(ir::Trait::commutative);
      for (const ir::Operand& operand : other.operands())
        if (swaps || Graph::parameter(other, operand) == use.parameter)
          for (size_t k = 0; k < operand.values.size(); ++k)
            if (swaps || k == use.index) add(operand.values[k]);
    }
  const int parent = g.nodes()[static_cast<size_t>(i)].parent;
  if (parent < 0) {
    add_outputs(g.function().body(), h.function().body());
  } else if (const int other = partners[static_cast<size_t>(parent)]; other >= 0) {
    const ir::Op &x = *g.nodes()[static_cast<size_t>(parent)].op, &y = *h.nodes()[static_cast<size_t>(other)].op;
    for (size_t n = 0; n < std::min(x.block_count(), y.block_count()); ++n) add_outputs(*x.block(n), *y.block(n));
  }
  return out;
}

bool comes_after(const Graph& g, const std::vector<int>& partners, const ir::Value* value, const ir::Value* source) {
  constexpr size_t kFolded = 3;  ///< operations
  const int node = value->producer() == nullptr ? -1 : g.index_of(value->producer());
  const int from = source->producer() == nullptr ? -1 : g.index_of(source->producer());
  return node >= 0 && from >= 0 && partners[static_cast<size_t>(node)] < 0 && follows(g, partners, node, from, kFolded);
}

std::vector<int> fused(const Graph& g, const Graph& h, const std::vector<int>& partners,
                       const std::vector<int>& others) {
  std::vector<int> into(partners.size(), -1);
  for (size_t i = 0; i < partners.size(); ++i) {
    if (partners[i] >= 0 || g.nodes()[i].is_transparent) continue;
    for (const int j : feeders(g, h, partners, static_cast<int>(i))) {
      const int source = others[static_cast<size_t>(j)];
      if (source < 0 || !follows(g, partners, static_cast<int>(i), source, g.nodes().size())) continue;
      into[i] = j;
      break;
    }
  }
  return into;
}

}  // namespace moka::diff
