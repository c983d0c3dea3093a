#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "runtime/frame.h"
#include "runtime/state_value.h"

namespace moka::runtime {

/// The states that one prediction uses. Remembers which device holds each one and, if the prediction may be replayed,
/// the content that the host had before it.
class BoundStates {
 public:
  /// Passes the state `name` to the frame as its block input `input`. With `keep`, content in host memory is saved for
  /// a replay. A state on a device needs no saving: the host's copy stays valid until the prediction ends. Errors:
  /// out_of_budget, device_lost.
  Status bind(std::string_view name, StateValue& value, Frame& frame, size_t input, bool keep);
  /// The prediction succeeded.
  void computed();
  /// The prediction failed. Restores the states for a replay. A state that only a device held is gone if that device
  /// was lost or has changed it.
  void failed(const Frame& frame, const Error& error, bool is_replayed);

 private:
  std::vector<std::pair<StateValue*, const kernel::Device*>> on_devices_;
  std::vector<std::pair<StateValue*, ir::Tensor>> before_;
};

}  // namespace moka::runtime
