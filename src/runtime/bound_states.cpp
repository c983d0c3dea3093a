// SPDX-License-Identifier: Apache-2.0
#include "runtime/bound_states.h"

#include <algorithm>

#include "base/copy.h"

namespace moka::runtime {

namespace {

bool is_one_submission(const Frame& frame) {
  return frame.plan().sequence.regions.size() == 1 && frame.has_straight_steps();
}

}  // namespace

Status BoundStates::bind(std::string_view name, StateValue& value, Frame& frame, size_t input, Ends ends) {
  if (const kernel::Device* device = frame.device_of_input(input)) {
    if (ends.by_stop && is_one_submission(frame))
      frame.keep_running_once_submitted();
    else if (ends.by_stop)
      MOKA_TRY_IN(value.read(), cat("state '", name, "'"));
    frame.set_state(input, MOKA_TRY_IN(value.on_device(*device), cat("state '", name, "'")));
    on_devices_.emplace_back(&value, device);
    return {};
  }
  ir::Tensor& host = *MOKA_TRY_IN(value.write(), cat("state '", name, "'"));
  const bool is_kept = ends.by_replay || (ends.by_stop && !frame.saves_states());
  if (is_kept && std::none_of(before_.begin(), before_.end(), [&](const auto& b) { return b.first == &value; }))
    before_.emplace_back(&value, MOKA_TRY(ir::Tensor::copy_of(host.view())));
  frame.set_state(input, host.mutable_data());
  return {};
}

void BoundStates::computed() {
  for (auto [value, device] : on_devices_) value->computed();
}

void BoundStates::failed(Frame& frame, const Error& error, bool is_replayed) {
  frame.restore_states();
  for (auto [value, device] : on_devices_) {
    const bool is_lost = error.code() == ErrorCode::device_lost && error.device() == device->name();
    if (frame.has_submitted() || is_lost) value->failed(is_lost || is_replayed);
  }
  on_devices_.clear();
  for (auto& [value, copy] : before_) copy_bytes(value->replace().mutable_data(), copy.data(), copy.bytes());
}

}  // namespace moka::runtime
