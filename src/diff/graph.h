// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "diff/constants.h"

namespace moka::diff {

/// The operations of a function that are not constant, in order, with those of inner blocks after the operation that
/// holds them.
class Graph {
 public:
  explicit Graph(const ir::Function& function);

  struct Use {
    int node = -1;
    std::string_view parameter;
    size_t index = 0;  ///< among the parameter's values
  };
  struct Node {
    const ir::Op* op = nullptr;
    int depth = 0;
    int parent = -1;  ///< the node whose block holds it
    bool is_transparent = false;
  };
  const ir::Function& function() const { return function_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  /// -1 for constants.
  int index_of(const ir::Op* op) const;
  /// The value that transparent operations pass on.
  const ir::Value* resolved(const ir::Value* value) const;
  bool is_constant(const ir::Value* value) const { return samples_.contains(value); }
  const Sample& sample(const ir::Value* value) const { return samples_.at(value); }
  /// The uses of a resolved value by nodes that are not transparent.
  const std::vector<Use>& uses(const ir::Value* value) const;
  /// The name of an operand's parameter.
  static std::string_view parameter(const ir::Op& op, const ir::Operand& operand) {
    return op.version().params[static_cast<size_t>(operand.param)].name;
  }
  /// The values of a parameter; empty when it is absent.
  static std::span<ir::Value* const> values(const ir::Op& op, std::string_view parameter);

 private:
  void add(const ir::Block& block, int depth, int parent);
  bool fold(const ir::Op& op);
  bool add_sample(const ir::Value& value);

  const ir::Function& function_;
  std::vector<Node> nodes_;
  std::map<const ir::Op*, int> index_;
  std::map<const ir::Value*, Sample> samples_;
  std::map<const ir::Value*, std::vector<Use>> uses_;
};

}  // namespace moka::diff
