// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "diff/graph.h"

namespace moka::diff {

/// Pairs the operations of two graphs, each with at most one of the other.
///
/// From the inputs on, an operation is paired with one of the same type that reads the partners of its inputs and has
/// constants like its own; from the outputs back, with one that feeds the partners of its users. What remains between
/// is paired by weights that occur once, by name where the neighbors do not contradict, and by place: the same type
/// with other constants, and in the end any operation that reads and feeds the same.
class Pairing {
 public:
  Pairing(const Graph& a, const Graph& b);

  /// Index in b; -1: none.
  int partner(int a) const { return of_a_[static_cast<size_t>(a)]; }
  int partner_of_b(int b) const { return of_b_[static_cast<size_t>(b)]; }
  std::string_view reason(int a) const { return reasons_[static_cast<size_t>(a)]; }
  /// The operation of b whose result takes the place of this one's, which has no partner: conv, where a has conv and
  /// batch_norm. -1: none.
  int fused_into(int a) const { return fused_a_[static_cast<size_t>(a)]; }
  int fused_into_of_b(int b) const { return fused_b_[static_cast<size_t>(b)]; }
  /// The partner of a resolved value of a; nullptr: none.
  const ir::Value* partner(const ir::Value* value) const;
  /// Whether two values, resolved, are partners.
  bool are_partners(const ir::Value* a, const ir::Value* b) const;

 private:
  enum class Match { exact, loose, any };
  bool is_free(int i, int j) const;
  bool same_type(int i, int j) const;
  /// Whether all inputs of one are partners of the other's, and constants alike if `exact`.
  bool reads_same(int i, int j, Match match) const;
  bool constants_alike(int i, int j) const;
  bool contradicts(int i, int j) const;
  void pair(int i, int j, std::string_view reason);
  void pair_values(const ir::Value* a, const ir::Value* b);
  bool forward(Match match, std::string_view reason);
  bool backward(Match match, std::string_view reason);
  bool by_weights();
  bool by_name(bool same_type);
  void transparent();
  void settle();

  const Graph &a_, &b_;
  std::vector<int> of_a_, of_b_, fused_a_, fused_b_;
  std::vector<std::string_view> reasons_;
  std::map<const ir::Value*, const ir::Value*> values_, back_;
};

}  // namespace moka::diff
