// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/chain.h"

#include <algorithm>
#include <bit>

namespace moka::devices::gpu {

namespace {

using Steps = std::array<uint32_t, Chain::kRank>;

/// Dimensions while two chains are brought to the same ones.
struct Dims {
  std::vector<uint32_t> size;
  std::vector<std::vector<uint32_t>> step;  ///< by input

  void add(uint32_t n, const std::vector<uint32_t>& steps) {
    size.push_back(n);
    for (size_t i = 0; i < steps.size(); i++) step[i].push_back(steps[i]);
  }
  /// Makes one of neighbors along which all inputs go on as they went before.
  void merge() {
    for (size_t d = 0; d + 1 < size.size();) {
      const bool fits = std::all_of(step.begin(), step.end(), [&](auto& s) { return s[d + 1] == s[d] * size[d]; });
      if (!fits) {
        d++;
        continue;
      }
      size[d] *= size[d + 1];
      const auto gone = static_cast<std::ptrdiff_t>(d + 1);
      size.erase(size.begin() + gone);
      for (auto& s : step) s.erase(s.begin() + gone);
    }
  }
};

/// Walks the dimensions of one chain in pieces.
struct Cursor {
  const Chain& chain;
  size_t dim = 0;
  uint32_t left = 1, done = 1;  ///< of the dimension

  explicit Cursor(const Chain& c) : chain(c) { left = c.size[0], skip(); }
  bool at_end() const { return dim == Chain::kRank; }
  void skip() {
    while (!at_end() && left == 1) {
      if (++dim < Chain::kRank) left = chain.size[dim];
      done = 1;
    }
  }
  void take(uint32_t n) {
    done *= n;
    left /= n;
    skip();
  }
  uint32_t step(size_t input) const { return chain.inputs[input].step[dim] * done; }
};

/// The inputs of both, those of `a` first, in common dimensions.
std::optional<Dims> common_dims(const Chain& a, const Chain& b) {
  Dims dims;
  dims.step.resize(a.inputs.size() + b.inputs.size());
  Cursor p(a), q(b);
  while (!p.at_end() && !q.at_end()) {
    const uint32_t n = std::min(p.left, q.left);
    if (p.left % n != 0 || q.left % n != 0) return std::nullopt;
    std::vector<uint32_t> steps;
    for (size_t i = 0; i < a.inputs.size(); i++) steps.push_back(p.step(i));
    for (size_t i = 0; i < b.inputs.size(); i++) steps.push_back(q.step(i));
    dims.add(n, steps);
    p.take(n);
    q.take(n);
  }
  if (!p.at_end() || !q.at_end()) return std::nullopt;
  return dims;
}

/// Whether an input has the elements of the result in the same order.
bool is_dense(const Chain& c, const Steps& step) {
  uint32_t dense = 1;
  for (size_t d = 0; d < Chain::kRank; d++) {
    if (c.size[d] > 1 && step[d] != dense) return false;
    dense *= c.size[d];
  }
  return true;
}

}  // namespace

ChainParams::ChainParams(const Chain& c) : count(static_cast<uint32_t>(c.count())), size(c.size), step{} {
  for (size_t i = 0; i < c.inputs.size(); i++) step[i] = c.inputs[i].step;
}

std::string Chain::shader() const {
  const std::string_view stem = nodes.size() <= kShort ? "chain_short_" : "chain_";
  return from == to ? cat(stem, name_of(from)) : cat(stem, name_of(from), "_", name_of(to));
}

std::vector<uint32_t> Chain::constants() const {
  uint32_t rank = kRank;
  while (rank > 1 && size[rank - 1] == 1) rank--;
  std::vector<uint32_t> all{rank, static_cast<uint32_t>(inputs.size()), static_cast<uint32_t>(nodes.size())};
  for (const Node& n : nodes) {
    all.push_back(n.code | n.a << 8 | n.b << 16);
    all.push_back(std::bit_cast<uint32_t>(n.x));
    all.push_back(std::bit_cast<uint32_t>(n.y));
  }
  return all;
}

std::vector<Use> Chain::uses() const {
  std::vector<Use> all;
  for (size_t i = 0; i < kInputs; i++) all.push_back(i < inputs.size() ? inputs[i].use : inputs[0].use.unused());
  all.push_back(out);
  return all;
}

std::optional<Chain> joined(const Chain& earlier, const Chain& later, size_t at) {
  if (earlier.rounds || earlier.to != later.from || earlier.count() != later.count() ||
      !is_dense(later, later.inputs[at].step) || earlier.nodes.size() + later.nodes.size() > Chain::kNodes)
    return std::nullopt;
  // All inputs are of one type.
  if (earlier.from != later.from && later.inputs.size() > 1) return std::nullopt;
  // An invocation may only overwrite elements that it has read itself.
  for (const Chain::Input& i : earlier.inputs)
    if (i.use.overlaps(later.out) && !(i.use.is(later.out) && earlier.from == later.to && is_dense(earlier, i.step)))
      return std::nullopt;
  const auto common = common_dims(earlier, later);
  if (!common) return std::nullopt;

  // The inputs of both, each once; the joining value is none.
  Dims dims{common->size, {}};
  Chain out;
  out.from = earlier.from;
  out.to = later.to;
  out.out = later.out;
  out.rounds = later.rounds;
  std::vector<uint32_t> place;
  for (size_t i = 0; i < common->step.size(); i++) {
    if (i == earlier.inputs.size() + at) {
      place.push_back(0);
      continue;
    }
    const Use& use = i < earlier.inputs.size() ? earlier.inputs[i].use : later.inputs[i - earlier.inputs.size()].use;
    size_t k = 0;
    while (k < out.inputs.size() && !(out.inputs[k].use.is(use) && dims.step[k] == common->step[i])) k++;
    if (k == out.inputs.size()) {
      out.inputs.push_back({use, {}});
      dims.step.push_back(common->step[i]);
    }
    place.push_back(static_cast<uint32_t>(k));
  }
  dims.merge();
  if (out.inputs.size() > Chain::kInputs || dims.size.size() > Chain::kRank) return std::nullopt;
  for (size_t d = 0; d < dims.size.size(); d++) {
    out.size[d] = dims.size[d];
    for (size_t i = 0; i < out.inputs.size(); i++) out.inputs[i].step[d] = dims.step[i][d];
  }

  const auto first = static_cast<uint32_t>(earlier.nodes.size());
  const uint32_t value = earlier.nodes.empty() ? place[0] : earlier.last();
  const auto moved = [&](uint32_t operand, bool of_earlier) {
    if (operand == Chain::kNumber) return operand;
    if (operand >= Chain::kInputs) return of_earlier ? operand : operand + first;
    if (!of_earlier && operand == at) return value;
    return place[operand + (of_earlier ? 0 : earlier.inputs.size())];
  };
  for (const Chain* c : {&earlier, &later})
    for (Chain::Node n : c->nodes) {
      n.a = moved(n.a, c == &earlier);
      n.b = n.code >= Chain::kBinary ? moved(n.b, c == &earlier) : 0;
      out.nodes.push_back(n);
    }
  return out;
}

}  // namespace moka::devices::gpu
