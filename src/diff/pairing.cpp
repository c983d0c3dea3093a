// SPDX-License-Identifier: Apache-2.0
#include "diff/pairing.h"

#include <algorithm>
#include <map>
#include <string>

#include "diff/fusion.h"

namespace moka::diff {
namespace {

constexpr int64_t kWeight = 17;  ///< elements of a constant that identifies an operation

/// Whether an absent constant means the same as this one.
bool is_default(const ir::Op& op, std::string_view parameter, const Sample& sample) {
  const ir::ParamDef* p = op.version().param(parameter);
  if (p == nullptr || !p->has_default() || p->default_value.tensor.empty_handle()) return false;
  return resembles(sample_of(p->default_value.tensor), sample);
}

/// The weights of an operation as a text that equal weights share; empty: none.
std::string fingerprint(const Graph& graph, const ir::Op& op) {
  std::string out;
  for (const ir::Operand& operand : op.operands())
    for (const ir::Value* value : operand.values)
      if (graph.is_constant(value) && graph.sample(value).count >= kWeight) {
        const Sample& sample = graph.sample(value);
        out += cat(Graph::parameter(op, operand), sample.count, ":");
        out.append(reinterpret_cast<const char*>(sample.elements.data()), sample.elements.size() * sizeof(double));
      }
  return out.empty() ? out : op.type_name() + ' ' + out;
}

template <class Key>
using Index = std::map<Key, std::vector<int>>;

}  // namespace

Pairing::Pairing(const Graph& a, const Graph& b)
    : a_(a), b_(b), of_a_(a.nodes().size(), -1), of_b_(b.nodes().size(), -1), reasons_(a.nodes().size()) {
  const auto ins = a.function().body().inputs(), others = b.function().body().inputs();
  std::vector<const ir::Value*> left_a, left_b;
  for (const auto& x : ins) {
    const auto at = std::find_if(others.begin(), others.end(), [&](const auto& y) { return y->name == x->name; });
    if (at == others.end())
      left_a.push_back(x.get());
    else
      pair_values(x.get(), at->get());
  }
  for (const auto& y : others)
    if (!back_.contains(y.get())) left_b.push_back(y.get());
  for (size_t i = 0; i < std::min(left_a.size(), left_b.size()); ++i) pair_values(left_a[i], left_b[i]);
  forward(Match::exact, "graph");
  by_weights();
  settle();
  while (by_name(true)) settle();
  while (forward(Match::loose, "place") || backward(Match::loose, "place")) settle();
  while (by_name(false) || forward(Match::any, "place")) settle();
  transparent();
  fused_a_ = fused(a_, b_, of_a_, of_b_);
  fused_b_ = fused(b_, a_, of_b_, of_a_);
}

const ir::Value* Pairing::partner(const ir::Value* value) const {
  const auto at = values_.find(value);
  return at == values_.end() ? nullptr : at->second;
}

bool Pairing::are_partners(const ir::Value* a, const ir::Value* b) const {
  const ir::Value* other = partner(a_.resolved(a));
  return other != nullptr && other == b_.resolved(b);
}

void Pairing::pair_values(const ir::Value* a, const ir::Value* b) {
  values_.emplace(a, b);
  back_.emplace(b, a);
}

bool Pairing::is_free(int i, int j) const {
  const Graph::Node &x = a_.nodes()[static_cast<size_t>(i)], &y = b_.nodes()[static_cast<size_t>(j)];
  if (of_a_[static_cast<size_t>(i)] >= 0 || of_b_[static_cast<size_t>(j)] >= 0 || x.is_transparent || y.is_transparent)
    return false;
  return x.parent < 0 || y.parent < 0 ? x.parent == y.parent : partner(x.parent) == y.parent;
}

bool Pairing::same_type(int i, int j) const {
  return a_.nodes()[static_cast<size_t>(i)].op->type_name() == b_.nodes()[static_cast<size_t>(j)].op->type_name();
}

bool Pairing::constants_alike(int i, int j) const {
  const ir::Op &x = *a_.nodes()[static_cast<size_t>(i)].op, &y = *b_.nodes()[static_cast<size_t>(j)].op;
  const auto alike = [](const Graph& g, const ir::Op& op, const Graph& h, const ir::Op& other) {
    for (const ir::Operand& operand : op.operands()) {
      const auto parameter = Graph::parameter(op, operand);
      const auto values = Graph::values(other, parameter);
      for (size_t n = 0; n < operand.values.size(); ++n) {
        if (!g.is_constant(operand.values[n])) continue;
        const Sample& sample = g.sample(operand.values[n]);
        if (n >= values.size() ? !is_default(other, parameter, sample)
                               : !h.is_constant(values[n]) || !resembles(sample, h.sample(values[n])))
          return false;
      }
    }
    return true;
  };
  return alike(a_, x, b_, y) && alike(b_, y, a_, x);
}

bool Pairing::reads_same(int i, int j, Match match) const {
  const ir::Op &x = *a_.nodes()[static_cast<size_t>(i)].op, &y = *b_.nodes()[static_cast<size_t>(j)].op;
  std::vector<const ir::Value*> ours, theirs;
  for (const ir::Operand& operand : x.operands())
    for (const ir::Value* value : operand.values)
      if (!a_.is_constant(value)) {
        const ir::Value* other = partner(a_.resolved(value));
        if (other == nullptr) return false;
        ours.push_back(other);
      }
  for (const ir::Operand& operand : y.operands())
    for (const ir::Value* value : operand.values)
      if (!b_.is_constant(value)) theirs.push_back(b_.resolved(value));
  if (ours.empty() && match != Match::exact) return false;
  if (x.has_trait(ir::Trait::commutative)) {
    std::sort(ours.begin(), ours.end());
    std::sort(theirs.begin(), theirs.end());
  }
  return ours == theirs && (match != Match::exact || constants_alike(i, j));
}

bool Pairing::contradicts(int i, int j) const {
  const ir::Op &x = *a_.nodes()[static_cast<size_t>(i)].op, &y = *b_.nodes()[static_cast<size_t>(j)].op;
  for (const ir::Operand& operand : x.operands()) {
    const auto values = Graph::values(y, Graph::parameter(x, operand));
    for (size_t n = 0; n < std::min(values.size(), operand.values.size()); ++n) {
      const ir::Value *u = a_.resolved(operand.values[n]), *v = b_.resolved(values[n]);
      if (a_.is_constant(u) || b_.is_constant(v)) continue;
      const ir::Value* other = partner(u);
      const auto back = back_.find(v);
      if (other == v || (other == nullptr && back == back_.end())) continue;
      // One side may have operations between that the other has folded into weights.
      const bool is_folded = other == nullptr      ? comes_after(a_, of_a_, u, back->second)
                             : back == back_.end() ? comes_after(b_, of_b_, v, other)
                                                   : false;
      if (!is_folded) return !x.has_trait(ir::Trait::commutative);
    }
  }
  return false;
}

void Pairing::pair(int i, int j, std::string_view reason) {
  of_a_[static_cast<size_t>(i)] = j;
  of_b_[static_cast<size_t>(j)] = i;
  reasons_[static_cast<size_t>(i)] = reason;
  const ir::Op &x = *a_.nodes()[static_cast<size_t>(i)].op, &y = *b_.nodes()[static_cast<size_t>(j)].op;
  for (size_t n = 0; n < std::min(x.output_count(), y.output_count()); ++n) pair_values(x.output(n), y.output(n));
  for (size_t n = 0; n < std::min(x.block_count(), y.block_count()); ++n) {
    const auto ins = x.block(n)->inputs(), others = y.block(n)->inputs();
    for (size_t k = 0; k < std::min(ins.size(), others.size()); ++k) pair_values(ins[k].get(), others[k].get());
  }
}

bool Pairing::forward(Match match, std::string_view reason) {
  bool any = false;
  Index<std::string> sources;  // operations of b that read no value, by type
  for (size_t j = 0; j < of_b_.size(); ++j) {
    const ir::Op& op = *b_.nodes()[j].op;
    if (std::all_of(op.operands().begin(), op.operands().end(), [&](const ir::Operand& o) {
          return std::all_of(o.values.begin(), o.values.end(), [&](const auto* v) { return b_.is_constant(v); });
        }))
      sources[op.type_name()].push_back(static_cast<int>(j));
  }
  for (size_t i = 0; i < of_a_.size(); ++i) {
    if (of_a_[i] >= 0 || a_.nodes()[i].is_transparent) continue;
    const ir::Op& op = *a_.nodes()[i].op;
    std::vector<int> candidates;
    bool is_source = true;
    for (const ir::Operand& operand : op.operands()) {
      for (const ir::Value* value : operand.values) {
        if (a_.is_constant(value)) continue;
        is_source = false;
        const ir::Value* other = partner(a_.resolved(value));
        if (other == nullptr) continue;
        for (const Graph::Use& use : b_.uses(other)) candidates.push_back(use.node);
        break;
      }
      if (!candidates.empty()) break;
    }
    if (is_source) candidates = sources[op.type_name()];
    int best = -1;
    for (const int j : candidates) {
      const int from = static_cast<int>(i);
      if (!is_free(from, j) || (match != Match::any && !same_type(from, j)) || !reads_same(from, j, match)) continue;
      const bool same_name = b_.nodes()[static_cast<size_t>(j)].op->name == op.name;
      if (best < 0 || same_name) best = j;
      if (same_name) break;
    }
    if (best < 0) continue;
    pair(static_cast<int>(i), best, reason);
    any = true;
  }
  return any;
}

bool Pairing::backward(Match match, std::string_view reason) {
  bool any = false;
  for (int i = static_cast<int>(of_a_.size()) - 1; i >= 0; --i) {
    if (of_a_[static_cast<size_t>(i)] >= 0 || a_.nodes()[static_cast<size_t>(i)].is_transparent) continue;
    for (const int j : feeders(a_, b_, of_a_, i)) {
      if (!is_free(i, j) || !same_type(i, j) || contradicts(i, j)) continue;
      if (match == Match::exact && !constants_alike(i, j)) continue;
      pair(i, j, reason);
      any = true;
      break;
    }
  }
  return any;
}

bool Pairing::by_weights() {
  Index<std::string> ours, theirs;
  for (size_t i = 0; i < of_a_.size(); ++i)
    if (of_a_[i] < 0)
      if (std::string key = fingerprint(a_, *a_.nodes()[i].op); !key.empty()) ours[key].push_back(static_cast<int>(i));
  for (size_t j = 0; j < of_b_.size(); ++j)
    if (of_b_[j] < 0)
      if (std::string key = fingerprint(b_, *b_.nodes()[j].op); !key.empty())
        theirs[key].push_back(static_cast<int>(j));
  bool any = false;
  for (const auto& [key, list] : ours) {
    const auto at = theirs.find(key);
    if (at == theirs.end() || list.size() != 1 || at->second.size() != 1 || !is_free(list[0], at->second[0])) continue;
    pair(list[0], at->second[0], "weights");
    any = true;
  }
  return any;
}

bool Pairing::by_name(bool needs_same_type) {
  std::map<std::string, int> names, outputs;
  for (size_t j = 0; j < of_b_.size(); ++j) {
    if (of_b_[j] >= 0) continue;
    const ir::Op& op = *b_.nodes()[j].op;
    names.emplace(op.name, static_cast<int>(j));
    if (op.output_count() > 0) outputs.emplace(op.output()->name, static_cast<int>(j));
  }
  bool any = false;
  for (size_t i = 0; i < of_a_.size(); ++i) {
    if (of_a_[i] >= 0) continue;
    const ir::Op& op = *a_.nodes()[i].op;
    const auto try_one = [&](const std::map<std::string, int>& in, const std::string& name) {
      const auto at = in.find(name);
      const int from = static_cast<int>(i);
      if (at == in.end() || of_a_[i] >= 0 || !is_free(from, at->second) || contradicts(from, at->second)) return;
      if (needs_same_type && !same_type(from, at->second)) return;
      // Numbered names are reused by other operations when types differ.
      if (!needs_same_type && !reads_same(from, at->second, Match::any)) {
        const std::vector<int> places = feeders(a_, b_, of_a_, from);
        if (std::find(places.begin(), places.end(), at->second) == places.end()) return;
      }
      pair(from, at->second, "name");
      any = true;
    };
    if (op.output_count() > 0) try_one(outputs, op.output()->name);
    try_one(names, op.name);
  }
  return any;
}

/// Casts and identities, by name or by what they read.
void Pairing::transparent() {
  std::map<const ir::Value*, std::vector<int>> readers;
  for (size_t j = 0; j < of_b_.size(); ++j)
    if (b_.nodes()[j].is_transparent) readers[b_.resolved(b_.nodes()[j].op->output())].push_back(static_cast<int>(j));
  for (size_t i = 0; i < of_a_.size(); ++i) {
    if (!a_.nodes()[i].is_transparent) continue;
    const ir::Op& op = *a_.nodes()[i].op;
    const ir::Value* other = partner(a_.resolved(op.output()));
    if (other == nullptr) continue;
    int best = -1;
    for (const int j : readers[other]) {
      if (of_b_[static_cast<size_t>(j)] >= 0 || !same_type(static_cast<int>(i), j)) continue;
      const bool same_name = b_.nodes()[static_cast<size_t>(j)].op->name == op.name;
      const bool same_result = b_.nodes()[static_cast<size_t>(j)].op->output()->type == op.output()->type;
      if (same_name || (same_result && best < 0)) best = j;
      if (same_name) break;
    }
    if (best >= 0) pair(static_cast<int>(i), best, "graph");
  }
}

void Pairing::settle() {
  while (forward(Match::exact, "graph") || backward(Match::exact, "graph")) {
  }
}

}  // namespace moka::diff
