// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <string_view>

#include "view/graph.h"

namespace moka::cli {
namespace {

constexpr size_t kMostScopes = 16;  ///< of one name; those inside are one

bool is_separator(char c) { return c == '/' || c == '.'; }

class ScopeGrouper {
 public:
  explicit ScopeGrouper(Graph& graph) : graph_(graph) {}

  void group(int32_t parent) {
    const std::vector<int32_t> members = at(parent).members;
    std::vector<Scopes> scopes;
    for (const int32_t id : members) scopes.push_back(scopes_of(id));
    // A group around all members would say nothing.
    const size_t around = common(members).ends.size();
    at(parent).members = grouped(parent, members, scopes, around);
  }

 private:
  GraphNode& at(int32_t id) { return graph_.nodes[static_cast<size_t>(id)]; }

  static bool is_scoped(const GraphNode& node) { return node.kind == NodeKind::operation || has_ports(node); }

  /// The scopes of an operation's name, or those that all members of a group share.
  Scopes scopes_of(int32_t id) {
    const GraphNode& node = at(id);
    if (!is_scoped(node)) return {};
    return node.kind == NodeKind::operation ? Scopes(node.name) : common(node.members);
  }

  Scopes common(const std::vector<int32_t>& members) {
    Scopes out;
    bool is_first = true;
    for (const int32_t id : members) {
      if (!is_scoped(at(id))) continue;
      Scopes scopes = scopes_of(id);
      if (is_first)
        out = std::move(scopes);
      else
        out.ends.resize(shared_scopes(out, scopes));
      is_first = false;
    }
    return out;
  }

  /// The members of `parent`, which share `around` scopes, with stretches that share more put into groups.
  std::vector<int32_t> grouped(int32_t parent, std::span<const int32_t> members, std::span<const Scopes> scopes,
                               size_t around) {
    std::vector<int32_t> out;
    for (size_t i = 0; i < members.size();) {
      size_t end = i + 1, count = scopes[i].ends.size();
      while (count > around && end < members.size()) {
        const size_t shared = std::min(count, shared_scopes(scopes[i], scopes[end]));
        if (shared <= around) break;
        count = shared;
        ++end;
      }
      int32_t id = members[i];
      if (end - i > 1) {
        id = static_cast<int32_t>(graph_.nodes.size());
        graph_.nodes.push_back({.kind = NodeKind::scope, .name = scopes[i].name.substr(0, scopes[i].ends[count - 1])});
        at(id).type = "scope";
        std::vector<int32_t> inside = grouped(id, members.subspan(i, end - i), scopes.subspan(i, end - i), count);
        at(id).members = std::move(inside);
      }
      at(id).parent = parent;
      out.push_back(id);
      i = end;
    }
    return out;
  }

  Graph& graph_;
};

}  // namespace

Scopes::Scopes(std::string_view text) {
  for (size_t i = 1; i < text.size() && ends.size() < kMostScopes; ++i)
    if (is_separator(text[i]) && !is_separator(text[i - 1])) ends.push_back(i);
  if (ends.empty()) return;
  const std::string_view last = text.substr(ends.back() + 1);
  // "x.1" and "x.3" are versions of one name.
  if (text[ends.back()] == '.' && std::all_of(last.begin(), last.end(), [](char c) { return c >= '0' && c <= '9'; }))
    ends.pop_back();
  name = text;
}

size_t shared_scopes(const Scopes& a, const Scopes& b) {
  const auto differs = std::mismatch(a.name.begin(), a.name.end(), b.name.begin(), b.name.end()).first;
  const auto equal = static_cast<size_t>(differs - a.name.begin());
  size_t count = 0;
  while (count < a.ends.size() && count < b.ends.size() && a.ends[count] == b.ends[count] && a.ends[count] <= equal)
    ++count;
  return count;
}

void group_scopes(Graph& graph) {
  ScopeGrouper grouper(graph);
  const size_t count = graph.nodes.size();
  // The blocks in a group of equal blocks have scopes, but stay together.
  for (size_t i = 0; i < count; ++i)
    if (graph.nodes[i].kind != NodeKind::repeat) grouper.group(static_cast<int32_t>(i));
}

}  // namespace moka::cli
