#pragma once

#include <map>
#include <set>

#include "ir/program.h"

namespace moka::plan {

/// Where operations may work on the memory of a state itself.
struct StateUses {
  std::set<const ir::Op*> views;                       ///< read_state whose result may be a view
  std::map<const ir::Op*, const ir::Value*> in_place;  ///< what may write its result over the state it reads
  const ir::Value* state_of(const ir::Op& op) const {
    auto it = in_place.find(&op);
    return it == in_place.end() ? nullptr : it->second;
  }
};

/// For a function's body. A value that has been read is a view when nobody reads it once the state has changed. An
/// update that the state is then replaced by happens in the state when nobody looks at the state in between, or at the
/// update once the state has changed again.
StateUses uses_of_states(const ir::Block& body);

}  // namespace moka::plan
