#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/internal.h"

namespace moka::api {

/// The states that one prediction uses. Remembers which device holds each one and, if the prediction may be replayed,
/// the content that the host had before it.
class BoundStates {
 public:
  explicit BoundStates(State* state) : state_(state) {}
  /// Passes the state `name` to the frame as its block input `input`. With `keep`, content in host memory is saved for
  /// a replay. A state on a device needs no saving: the host's copy stays valid until the prediction ends. Error
  /// invalid_argument: the state belongs to another model.
  Status bind(const std::string& name, const ir::Type& type, runtime::Frame& frame, size_t input, bool keep);
  /// The prediction succeeded.
  void computed();
  /// The prediction failed. Restores the states for a replay. A state that only a device held is gone if that device
  /// was lost or has changed it.
  void failed(const runtime::Frame& frame, const Error& error, bool is_replayed);

 private:
  Result<runtime::StateValue*> find(const std::string& name, const ir::Type& type);

  State* state_;
  std::vector<std::pair<runtime::StateValue*, const kernel::Device*>> on_devices_;
  std::vector<std::pair<runtime::StateValue*, ir::Tensor>> before_;
};

}  // namespace moka::api
