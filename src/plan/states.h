// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>

#include "ir/program.h"

namespace moka::plan {

/// Where operations may work directly on the memory of a state.
struct StateUses {
  /// States that only operations of the body itself read and write.
  std::set<const ir::Value*> straight;
  std::set<const ir::Op*> views;  ///< read_state operations whose result may be a view
  /// Results that may overwrite the state that their operation reads, and that state.
  std::map<const ir::Value*, const ir::Value*> in_place;
  const ir::Value* state_of(const ir::Value& result) const {
    auto it = in_place.find(&result);
    return it == in_place.end() ? nullptr : it->second;
  }
};

/// For plans whose values share no memory.
inline const StateUses kNoStates;

/// Finds these uses in a function's body.
///
/// The result of read_state is a view of the state's memory unless something reads it after a later write_state.
///
/// An operation writes directly into the state when write_state stores its result, nothing reads the old value after
/// the operation has begun, and nothing reads the result after the state changes again:
///   cache = read_state(s); next = slice_update(cache, ...); write_state(s, next)   // `next` is written over `cache`
StateUses uses_of_states(const ir::Block& body);

}  // namespace moka::plan
