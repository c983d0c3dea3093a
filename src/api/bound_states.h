#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/internal.h"

namespace moka::api {

/// The states of one prediction: where they are, and their contents before it if it may be replayed.
class BoundStates {
 public:
  explicit BoundStates(State* state) : state_(state) {}
  /// Gives the frame block input `input`, the state `name`. `keep`: what the host holds of it is kept for a replay. On
  /// a device, the host keeps its own copy until the prediction ends. Error invalid_argument: the state is of another
  /// model.
  Status bind(const std::string& name, const ir::Type& type, runtime::Frame& frame, size_t input, bool keep);
  /// The prediction is done.
  void computed();
  /// The prediction failed. If it is replayed, states are as they were before it, unless only a device had them that is
  /// lost or has changed them.
  void failed(const runtime::Frame& frame, const Error& error, bool is_replayed);

 private:
  Result<runtime::StateValue*> find(const std::string& name, const ir::Type& type);

  State* state_;
  std::vector<std::pair<runtime::StateValue*, const kernel::Device*>> on_devices_;
  std::vector<std::pair<runtime::StateValue*, ir::Tensor>> before_;
};

}  // namespace moka::api
