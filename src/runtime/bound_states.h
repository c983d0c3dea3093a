// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "runtime/frame.h"
#include "runtime/state_value.h"

namespace moka::runtime {

/// The states that one prediction uses. Remembers which device holds each one and, if the prediction may be replayed or
/// stopped, the content before it; a frame whose steps are straight notes what it overwrites instead.
class BoundStates {
 public:
  /// What may end the prediction before it is done.
  struct Ends {
    bool by_replay = false, by_stop = false;
  };
  /// Passes the state `name` to the frame as its block input `input`. Where the prediction may end early, content in
  /// host memory is saved. A state on a device keeps its copy on the host until the prediction ends; for a stop, bind
  /// makes that copy, unless one submission computes everything. Errors: out_of_budget, device_lost.
  Status bind(std::string_view name, StateValue& value, Frame& frame, size_t input, Ends ends);
  /// The prediction succeeded.
  void computed();
  /// The prediction failed. Restores what was saved. A state that only a device held is gone if that device was lost or
  /// has changed it.
  void failed(Frame& frame, const Error& error, bool is_replayed);

 private:
  std::vector<std::pair<StateValue*, const kernel::Device*>> on_devices_;
  std::vector<std::pair<StateValue*, ir::Tensor>> before_;
};

}  // namespace moka::runtime
