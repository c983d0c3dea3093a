// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/onnx/export.h"

namespace moka::compiler::onnx {

namespace ox = format::onnx;
using ir::DType;
using ox::DataType;

/// The name of a tensor in the graph.
using Name = std::string;

/// ONNX's element type for `type`, or `undefined`. Types of fewer than 8 bits that ONNX lacks become uint8, and
/// Graph::tensor unpacks their elements.
DataType data_type(DType type);

ox::Attribute attr(std::string name, int64_t v);
ox::Attribute attr(std::string name, int v);
ox::Attribute attr(std::string name, bool v);
ox::Attribute attr(std::string name, double v);
ox::Attribute attr(std::string name, const char* v);
ox::Attribute attr(std::string name, std::vector<int64_t> v);
ox::Attribute attr(std::string name, std::vector<float> v);
ox::Attribute attr(std::string name, std::vector<std::string> v);
ox::Attribute attr(std::string name, ox::Graph v);
ox::Attribute attr(std::string name, ox::Tensor v);

/// The graph that is written: its nodes, its initializers, and the tensors that represent values of the function.
class Graph {
 public:
  Graph(const ir::Function& function, int opset, bool may_raise);

  /// Whether the model may use what this opset introduced. Without a given opset the answer is yes, and the model gets
  /// that opset.
  bool wants(int opset);
  int opset() const { return opset_; }
  int required() const { return required_; }

  /// The tensor that represents a value; empty if there is none.
  Name value(const ir::Value* v);
  /// The tensor of a value, converted to int64. A value that the graph already has as int64 needs no node.
  Name int64(const ir::Value* v);
  /// Whether the graph has the value as int64 instead of its own type.
  bool has_int64(const ir::Value* v) const;
  void set(const ir::Value* v, const Name& name);
  /// Sets a value of type int32 that the graph has as int64.
  void set_int64(const ir::Value* v, const Name& name);

  /// Adds an initializer. Refers to the data of large tensors. Equal tensors are written once.
  Name tensor(const ir::Tensor& t);
  Name int64s(std::span<const int64_t> values);  ///< rank 1
  Name int64_scalar(int64_t v);
  Name number(DType type, double v);  ///< rank 0
  Name initializer(ox::Tensor t);     ///< its name is set here

  /// A node with `outputs` outputs, whose names begin with `base`.
  std::vector<Name> nodes(const char* type, std::vector<Name> inputs, std::vector<ox::Attribute> attributes,
                          size_t outputs, const std::string& base, const char* domain = "");
  Name cast(const Name& x, DataType to, const std::string& base);
  Name fresh(const std::string& base);
  /// Keeps the name for an output of the main graph.
  void reserve(const std::string& name) {
    taken_.insert(name);
    reserved_.insert(name);
  }
  /// Takes the name of a value for a tensor. Returns false if it is taken: a block that is written twice has each name
  /// twice, and inner graphs may not use the names of the outputs.
  bool claim(const std::string& name) {
    return (depth() == 0 || !reserved_.contains(name)) && claimed_.insert(name).second;
  }

  /// Opens an inner graph. New nodes go there until `close`.
  void open();
  ox::Graph close(const std::string& name);

  class InMainGraph;

  /// Gives the tensor another name, in all nodes.
  void rename(const Name& from, const Name& to);
  size_t open_nodes() const { return scopes_.back().graph.nodes.size(); }
  /// The same, but only in the open graph's nodes from `first` on. Returns false if none of them makes the tensor, or
  /// if another tensor has the name.
  bool rename_recent(const Name& from, const Name& to, size_t first);

  /// Tensors that hold the current value of states.
  std::map<const ir::Value*, Name> states;
  std::map<const void*, Name> transposed;  ///< copies of weights, by the data of the original
  /// Dictionaries and lists that the graph has as tensors, and the types of these.
  std::map<const ir::Value*, ir::Type> represented;
  /// The type of the tensor that stands for a value.
  const ir::Type& type_of(const ir::Value* v) const {
    const auto it = represented.find(v);
    return it != represented.end() ? it->second : v->type;
  }
  int depth() const { return static_cast<int>(scopes_.size()) - 1; }
  std::set<std::string> ml_domain;  ///< other domains in use
  ox::Graph& main() { return scopes_[0].graph; }
  int node_count = 0;
  bool is_initializer(const Name& n) const { return constants_.contains(n); }

 private:
  struct Scope {
    ox::Graph graph;
    std::unordered_map<const ir::Value*, Name> values, int64s;
  };
  std::vector<Scope> scopes_;
  std::unordered_set<std::string> taken_, reserved_;
  std::unordered_set<std::string> claimed_;  ///< names of values that tensors have
  std::unordered_set<std::string> constants_;
  std::unordered_map<std::string, Name> small_;  ///< by content
  std::map<std::tuple<const void*, size_t, std::string>, Name> large_;
  int opset_, required_;
  bool may_raise_;
};

/// While it lives, new nodes go to the main graph, before the node that the open inner graph belongs to.
class Graph::InMainGraph {
 public:
  explicit InMainGraph(Graph& graph);
  ~InMainGraph();
  InMainGraph(const InMainGraph&) = delete;
  InMainGraph& operator=(const InMainGraph&) = delete;

 private:
  Graph& graph_;
  std::vector<Scope> inner_;
};

/// The type and dimensions of a value. Unknown dimensions that the program knows to be equal get the same name.
ox::ValueInfo value_info(const std::string& name, const ir::Type& type);

}  // namespace moka::compiler::onnx
