// SPDX-License-Identifier: Apache-2.0
#include "runtime/frame.h"

/// Hands what a frame runs to a capture.
namespace moka::runtime {

Result<CapturedRegion> Frame::captured(size_t r) const {
  kernel::Queue* queue = MOKA_TRY(context_.queue(*sequence_.regions[r].device));
  return CapturedRegion{*this, r, *submissions_[r], *queue};
}

Status Frame::capture_before(size_t s) {
  return context_.capture->before({*plan_, sequence_.steps[s], 0, steps_[s].in, steps_[s].out});
}

Status Frame::capture_step(size_t s, double seconds) {
  const plan::Step& step = sequence_.steps[s];
  if (const auto* wait = std::get_if<plan::Wait>(&step); wait != nullptr && !context_.capture->wants_values())
    MOKA_TRY(context_.capture->region(MOKA_TRY(captured(static_cast<size_t>(wait->region)))));
  return context_.capture->step({*plan_, step, seconds, steps_[s].in, steps_[s].out});
}

Status Frame::run_command_by_command(size_t r) {
  const CapturedRegion region = MOKA_TRY(captured(r));
  has_submitted_ = true;
  return submissions_[r]->run_each(
      [&](size_t command, bool has_run) { return context_.capture->command(region, command, has_run); });
}

}  // namespace moka::runtime
