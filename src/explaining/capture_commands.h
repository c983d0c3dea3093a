// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "moka/capture.h"
#include "runtime/frame.h"

namespace moka::explaining {

/// Where a buffer of a step of the host is among the values that the step reads and writes.
struct StepValue {
  enum class Of : uint8_t { input, result, packed };
  Of of = Of::input;
  size_t index = 0;
};
/// A step of the host, and for each of its buffers where it is.
struct DescribedStep {
  CapturedCommand command;
  std::vector<StepValue> values;
};
DescribedStep described_step(const plan::Plan& plan, const plan::Step& step);

/// The commands of a region. `number_of`: the number of a buffer among Capture::memories, which it is told the name of.
std::vector<CapturedCommand> described_commands(
    const runtime::Frame& frame, size_t region, const std::vector<kernel::ShownCommand>& commands,
    const std::function<int(const kernel::Buffer&, const std::string& name)>& number_of);

/// The place whose bytes a command of a region uses, all of them; -1: a part of one, or what is not a place.
int place_of(const runtime::Frame& frame, size_t region, const kernel::ShownCommand& command,
             const kernel::BoundBuffer& bound);

}  // namespace moka::explaining
