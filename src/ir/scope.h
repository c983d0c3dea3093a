// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>

#include "ir/program.h"

namespace moka::ir {

/// The names that are visible in a block of the source: its own and those of enclosing blocks. Sibling blocks may use
/// the same names; names in the program are made unique.
class Scope {
 public:
  explicit Scope(const Scope* outer = nullptr) : outer_(outer) {}

  /// nullptr when unknown.
  Value* find(const std::string& name) const {
    for (const Scope* s = this; s != nullptr; s = s->outer_)
      if (auto it = s->names_.find(name); it != s->names_.end()) return it->second;
    return nullptr;
  }
  void add(const std::string& name, Value* v) { names_[name] = v; }

 private:
  const Scope* outer_;
  std::unordered_map<std::string, Value*> names_;
};

/// The length that MIL declares of a list is the initial one: the list may grow.
inline Type without_length(const Type& type) { return type.is_list() ? Type::list(type.element()) : type; }

}  // namespace moka::ir
