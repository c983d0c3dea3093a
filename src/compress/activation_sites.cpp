// SPDX-License-Identifier: Apache-2.0
#include "compress/activation_sites.h"

#include <algorithm>

#include "compress/constants.h"

namespace moka::compress {
namespace {

using editing::Message;

const std::set<std::string_view> kOneOperand{"conv", "avg_pool", "max_pool", "linear"};
/// An activation function that hardware computes together with the operation before it.
const std::set<std::string_view> kFunctions{"leaky_relu",   "tanh", "scaled_tanh", "sigmoid",
                                            "hard_sigmoid", "relu", "relu6"};

struct Node {
  std::string type, name, output;
  std::map<std::string, std::vector<std::string>> inputs;
};

Result<Node> node_of(const Message& op) {
  Node out{MOKA_TRY(text_of(op, "type")), MOKA_TRY(editing::operation_name(op)), MOKA_TRY(result_name(op)), {}};
  for (const Message& entry : MOKA_TRY(op.children("inputs"))) {
    std::vector<std::string>& names = out.inputs[MOKA_TRY(text_of(entry, "key"))];
    if (MOKA_TRY(entry.count("value")) == 0) continue;
    for (const Message& binding : MOKA_TRY(MOKA_TRY(entry.child("value")).children("arguments")))
      names.push_back(MOKA_TRY(text_of(binding, "name")));
  }
  return out;
}

class Finder {
 public:
  Finder(const ValueRanges& ranges, const Activations& activations) : ranges_(ranges), activations_(activations) {}

  Result<ActivationSites> find(const editing::ProgramFunction& function) {
    MOKA_TRY(each(function.block, "MILSpec.Operation", [&](const Message& op) -> Status {
      nodes_.push_back(MOKA_TRY(node_of(op)));
      for (const Message& output : MOKA_TRY(op.children("outputs")))
        producers_[MOKA_TRY(text_of(output, "name"))] = nodes_.size() - 1;
      return {};
    }));
    for (const Node& node : nodes_) add_operands(node);
    for (const Node& node : nodes_)
      for (const auto& [parameter, names] : node.inputs)
        for (const std::string& name : names) uses_[name].push_back({&node, reads_integers(node, parameter)});
    for (const Node& node : nodes_)
      if (out_.operands.contains(node.output)) add_result(node);
    return std::move(out_);
  }

 private:
  struct Use {
    const Node* node;
    bool reads_integers;
  };

  const Node* producer(const std::string& value) const {
    const auto it = producers_.find(value);
    return it == producers_.end() ? nullptr : &nodes_[it->second];
  }

  bool is_dequantized(const std::string& value) const {
    const Node* node = producer(value);
    return node != nullptr && node->type == "dequantize";
  }

  void add_operands(const Node& node) {
    const bool sum = node.type == "add";
    if (!sum && !kOneOperand.contains(node.type)) return;
    if (activations_.keeps && activations_.keeps(node.name, node.type)) return;
    std::set<std::string> parameters;
    for (const char* parameter : {"x", "y"}) {
      if (!sum && *parameter == 'y') continue;
      const auto it = node.inputs.find(parameter);
      if (it == node.inputs.end() || it->second.size() != 1) return;
      const std::string& value = it->second[0];
      if (!ranges_.contains(value) && !is_dequantized(value)) return;
      parameters.insert(parameter);
    }
    std::set<std::string>& operands = out_.operands[node.output];
    for (const std::string& parameter : parameters) {
      const std::string& value = node.inputs.at(parameter)[0];
      if (is_dequantized(value)) continue;
      operands.insert(parameter);
      out_.quantized.insert(value);
    }
  }

  bool reads_integers(const Node& node, const std::string& parameter) const {
    const auto it = out_.operands.find(node.output);
    return node.type == "quantize" || (it != out_.operands.end() && it->second.contains(parameter));
  }

  /// The first operation that reads a value as it is; nullptr: there is none, or there is only one use.
  const Node* first_reader(const std::string& value) const {
    const auto it = uses_.find(value);
    if (it == uses_.end()) return nullptr;
    const auto first =
        std::find_if(it->second.begin(), it->second.end(), [](const Use& u) { return !u.reads_integers; });
    return first == it->second.end() ? nullptr : first->node;
  }

  /// Quantizes what the operation gives, behind an activation function that reads it first.
  void add_result(const Node& node) {
    const Node* first = first_reader(node.output);
    if (first == nullptr) return;
    const Node* last = &node;
    if (kFunctions.contains(first->type) && uses_.contains(first->output)) {
      if (first_reader(first->output) == nullptr) return;
      last = first;
    }
    if (!ranges_.contains(last->output)) return;
    out_.quantized.insert(last->output);
    out_.everywhere.insert(last->output);
  }

  const ValueRanges& ranges_;
  const Activations& activations_;
  std::vector<Node> nodes_;
  std::map<std::string, size_t> producers_;
  std::map<std::string, std::vector<Use>> uses_;
  ActivationSites out_;
};

}  // namespace

Result<ActivationSites> activation_sites(const editing::ProgramFunction& function, const ValueRanges& ranges,
                                         const Activations& activations) {
  return Finder(ranges, activations).find(function);
}

Status complete_ranges(const editing::ProgramFunction& function, ValueRanges& ranges) {
  std::vector<std::vector<std::string>> groups;
  MOKA_TRY(each(function.block, "MILSpec.Operation", [&](const Message& op) -> Status {
    Node node = MOKA_TRY(node_of(op));
    if (node.type == "cast" && node.inputs["x"].size() == 1)
      if (const auto it = ranges.find(node.inputs["x"][0]); it != ranges.end()) ranges.emplace(node.output, it->second);
    if (node.type != "concat") return {};
    groups.push_back(std::move(node.inputs["values"]));
    groups.back().push_back(node.output);
    return {};
  }));
  // A value may be in several groups, which then have one range together.
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& group : groups) {
      std::vector<ValueRange*> members;
      for (const std::string& name : group)
        if (const auto it = ranges.find(name); it != ranges.end() && it->second.is_finite())
          members.push_back(&it->second);
      if (members.empty()) continue;
      ValueRange all = *members[0];
      for (const ValueRange* r : members) all = {std::min(all.least, r->least), std::max(all.greatest, r->greatest)};
      for (ValueRange* r : members) {
        changed = changed || r->least != all.least || r->greatest != all.greatest;
        *r = all;
      }
    }
  }
  return {};
}

}  // namespace moka::compress
