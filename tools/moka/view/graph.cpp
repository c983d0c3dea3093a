// SPDX-License-Identifier: Apache-2.0
#include "view/graph.h"

#include <algorithm>
#include <unordered_map>

namespace moka::cli {
namespace {

using Structure = ModelStructure;

constexpr int kMaxNesting = 32;

/// How operations show a constant: as text, or as weights.
struct Known {
  std::string text;
  std::vector<int32_t> weights;
};

/// The names of values that can be seen at a place. An inner block sees those of the blocks around it.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<std::string, int32_t> producers;
  std::unordered_map<std::string, Known> constants;

  const int32_t* producer(const std::string& name) const {
    for (const Scope* s = this; s != nullptr; s = s->outer)
      if (const auto it = s->producers.find(name); it != s->producers.end()) return &it->second;
    return nullptr;
  }
  const Known* constant(const std::string& name) const {
    for (const Scope* s = this; s != nullptr; s = s->outer) {
      if (s->producers.contains(name)) return nullptr;
      if (const auto it = s->constants.find(name); it != s->constants.end()) return &it->second;
    }
    return nullptr;
  }
};

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) { graph_.nodes.push_back({.kind = NodeKind::model}); }

  void model(const Structure& structure, const std::string& function, int32_t group, std::vector<size_t> models,
             int depth) {
    std::unordered_map<std::string, int32_t> weights;
    first_weight_ = static_cast<int32_t>(graph_.weights.size());
    for (size_t i = 0; i < structure.weights.size(); ++i) {
      const auto& w = structure.weights[i];
      if (!w.function.empty() && w.function != function) continue;
      weights.emplace(w.name, static_cast<int32_t>(graph_.weights.size()));
      graph_.weights.push_back({&w, models, i});
    }
    weights_ = std::move(weights);
    Scope scope;
    for (const auto& f : structure.functions)
      if (f.name == function) return block(f.body, group, scope, 0);
    for (const std::string& name : structure.inputs)
      scope.producers[name] = graph_.add(group, {.kind = NodeKind::input, .name = name, .outputs = {{name, ""}}});
    if (!structure.models.empty()) {
      pipeline(structure, group, scope, models, depth);
    } else if (!structure.layers.empty()) {
      size_t at = 0;
      layers(structure.layers, at, 0, group, scope);
    } else {
      GraphNode node{.name = structure.type, .type = structure.type, .values = structure.facts};
      for (const std::string& name : structure.outputs) node.outputs.emplace_back(name, "");
      const int32_t id = graph_.add(group, std::move(node));
      for (const std::string& name : structure.inputs) use(scope, id, name, name);
      for (const std::string& name : structure.outputs) scope.producers[name] = id;
      note_ensemble(id, models);
    }
    outputs(structure.outputs, group, scope);
  }

  /// Groups what repeats and what shares a scope, and makes edges of the uses.
  void finish() {
    const size_t count = graph_.nodes.size();
    make_edges(graph_, uses_);
    group_repeats(graph_);
    group_scopes(graph_);
    if (graph_.nodes.size() != count) make_edges(graph_, uses_);
    for (const GraphNode& node : graph_.nodes) {
      if (node.kind != NodeKind::operation) continue;
      for (int32_t p = node.parent; p >= 0; p = graph_.nodes[static_cast<size_t>(p)].parent)
        ++graph_.nodes[static_cast<size_t>(p)].operations;
    }
  }

 private:
  GraphNode& at(int32_t id) { return graph_.nodes[static_cast<size_t>(id)]; }

  void note_ensemble(int32_t id, std::vector<size_t> models) {
    if (at(id).type.starts_with("treeEnsemble")) graph_.ensembles.push_back({id, std::move(models)});
  }

  /// Node `id` takes the value `name` as `parameter`.
  void use(const Scope& scope, int32_t id, const std::string& parameter, const std::string& name) {
    auto& inputs = at(id).inputs;
    if (const Known* known = scope.constant(name)) {
      at(id).values.emplace_back(parameter, known->text);
      at(id).weights.insert(at(id).weights.end(), known->weights.begin(), known->weights.end());
      return;
    }
    if (inputs.empty() || inputs.back().first != parameter) inputs.push_back({parameter, {}});
    inputs.back().second.push_back(name);
    if (const int32_t* from = scope.producer(name)) uses_.push_back({*from, id, name});
  }

  void outputs(const std::vector<std::string>& names, int32_t group, const Scope& scope) {
    for (const std::string& name : names) {
      const int32_t id = graph_.add(group, {.kind = NodeKind::output, .name = name});
      use(scope, id, name, name);
    }
  }

  void block(const Structure::Block& block, int32_t group, Scope& scope, int depth) {
    for (const auto& [name, type] : block.inputs)
      scope.producers[name] = graph_.add(group, {.kind = NodeKind::input, .name = name, .outputs = {{name, type}}});
    for (const auto& op : block.operations) operation(op, group, scope, depth);
    outputs(block.outputs, group, scope);
  }

  void operation(const Structure::Operation& op, int32_t group, Scope& scope, int depth) {
    if (op.type == "const" || op.type.starts_with("constexpr_")) return constant(op, scope);
    const int32_t id =
        graph_.add(group, {.name = op.name, .type = op.type, .outputs = op.outputs, .values = op.values});
    for (const auto& [parameter, names] : op.inputs) {
      for (const std::string& name : names) use(scope, id, parameter, name);
      if (const auto w = weights_.find(op.name + "." + parameter); w != weights_.end())
        at(id).weights.push_back(w->second);
    }
    for (size_t i = 0; i < op.blocks.size() && depth < kMaxNesting; ++i) {
      int32_t inner = id;
      if (op.blocks.size() > 1) inner = graph_.add(id, {.kind = NodeKind::block, .name = block_name(op, i)});
      Scope seen{.outer = &scope};
      block(op.blocks[i], inner, seen, depth + 1);
    }
    for (const auto& [name, type] : op.outputs) scope.producers[name] = id;
  }

  static std::string block_name(const Structure::Operation& op, size_t i) {
    if (op.type == "cond") return i == 0 ? "true" : "false";
    if (op.type == "while_loop") return i == 0 ? "condition" : "body";
    return "block " + std::to_string(i);
  }

  /// Constants and what is computed of them alone are shown where they are used.
  void constant(const Structure::Operation& op, Scope& scope) {
    Known known;
    if (op.type != "const") {
      known.text = op.type;
      for (const auto& [parameter, names] : op.inputs) {
        for (const std::string& name : names)
          if (const Known* part = scope.constant(name))
            known.weights.insert(known.weights.end(), part->weights.begin(), part->weights.end());
        if (const auto w = weights_.find(op.name + "." + parameter); w != weights_.end())
          known.weights.push_back(w->second);
      }
    } else if (!op.values.empty()) {
      known.text = op.values[0].second;
    }
    for (const auto& [name, type] : op.outputs) {
      Known entry = known;
      if (const auto w = weights_.find(name); w != weights_.end() && op.type == "const") {
        entry.weights.push_back(w->second);
        if (entry.text.empty()) entry.text = name;
      }
      if (entry.text.empty()) entry.text = type;
      scope.constants[name] = std::move(entry);
    }
  }

  /// The layers of one depth from `at` on; deeper ones are inside the layer before them.
  void layers(const std::vector<Structure::Layer>& all, size_t& i, int depth, int32_t group, Scope& scope) {
    while (i < all.size() && all[i].depth >= depth) {
      const Structure::Layer& layer = all[i++];
      GraphNode node{.name = layer.name, .type = layer.type, .values = layer.settings};
      if (!layer.custom_class.empty()) node.type += " " + layer.custom_class;
      for (const std::string& name : layer.outputs) node.outputs.emplace_back(name, "");
      const int32_t id = graph_.add(group, std::move(node));
      for (const std::string& name : layer.inputs) use(scope, id, name, name);
      for (const size_t w : layer.weights) at(id).weights.push_back(first_weight_ + static_cast<int32_t>(w));
      if (i < all.size() && all[i].depth > depth) {
        Scope inner{.outer = &scope};
        layers(all, i, all[i].depth, id, inner);
        // The layers inside write to values outside.
        for (const auto& [name, producer] : inner.producers) scope.producers[name] = id;
      }
      for (const std::string& name : layer.outputs) scope.producers[name] = id;
    }
  }

  void pipeline(const Structure& structure, int32_t group, Scope& scope, const std::vector<size_t>& models, int depth) {
    for (size_t i = 0; i < structure.models.size() && depth < kMaxNesting; ++i) {
      const auto& part = structure.models[i];
      GraphNode node{
          .kind = NodeKind::model, .name = part.name, .type = part.structure.type, .values = part.structure.facts};
      for (const std::string& name : part.structure.outputs) node.outputs.emplace_back(name, "");
      const int32_t id = graph_.add(group, std::move(node));
      for (const std::string& name : part.structure.inputs) use(scope, id, name, name);
      for (const std::string& name : part.structure.outputs) scope.producers[name] = id;
      std::vector<size_t> path = models;
      path.push_back(i);
      const auto& functions = part.structure.functions;
      const bool is_plain = functions.empty() && part.structure.layers.empty() && part.structure.models.empty();
      if (is_plain) {
        at(id).kind = NodeKind::operation;
        note_ensemble(id, path);
        continue;
      }
      Builder inner(*this);
      inner.model(part.structure, functions.empty() ? "" : functions[0].name, id, path, depth + 1);
      uses_.insert(uses_.end(), inner.uses_.begin(), inner.uses_.end());
    }
  }

  /// A builder of a stage: another model's names in the same graph.
  Builder(Builder& outer) : graph_(outer.graph_) {}

  Graph& graph_;
  std::unordered_map<std::string, int32_t> weights_;
  int32_t first_weight_ = 0;  ///< of the network, whose weights follow each other in the graph
  std::vector<GraphUse> uses_;
};

}  // namespace

Graph graph_of(const ModelStructure& structure, const std::string& function, const TreeReader& trees) {
  Graph graph;
  graph.name = function;
  Builder builder(graph);
  builder.model(structure, function, 0, {}, 0);
  builder.finish();
  for (const GraphEnsemble& e : graph.ensembles)
    if (trees) add_trees(graph, e.node, trees(e.models));
  lay_out(graph);
  return graph;
}

}  // namespace moka::cli
