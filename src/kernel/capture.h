// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "kernel/facts.h"

/// What a device tells of the commands of a region that was compiled to be shown (Region::is_shown).
namespace moka::kernel {

class Buffer;

/// A stretch of a buffer that a command uses.
struct BoundBuffer {
  std::string name;                ///< in the code; empty: not known
  const Buffer* buffer = nullptr;  ///< outlives the submission
  size_t offset = 0, bytes = 0;
  ir::DType element = ir::DType::none;  ///< as the command sees it; none: not known
  bool is_written = false;
  bool is_unused = false;  ///< bound, and never read
};

/// A dispatch, a copy, or work of the device's host.
struct ShownCommand {
  enum class Kind : uint8_t { dispatch, copy, function };
  Kind kind = Kind::dispatch;
  std::vector<uint32_t> steps;  ///< indices in Region::steps that it computes, in order; none: an upload or a download
  std::string code;             ///< "conv_f32"; empty: a copy
  std::array<uint32_t, 3> groups{}, group_size{};  ///< workgroups, and invocations of one; 0: not known
  std::vector<Fact> constants;                     ///< specialization constants, by their numbers
  std::vector<Fact> parameters;                    ///< push constants with their names, if these are known
  std::vector<std::byte> parameter_bytes;
  std::vector<Fact> facts;           ///< what else it tells
  std::vector<BoundBuffer> buffers;  ///< by binding
  bool waits = false;                ///< a barrier stands before it
};

/// When a command ran, in nanoseconds of the steady clock.
struct CommandTime {
  int64_t from = 0, to = 0;
};

/// How a queue measures commands.
struct TimestampFacts {
  bool are_queries = false;    ///< the device's own timestamps; false: the host's clock
  double resolution = 0;       ///< seconds of one tick
  int bits = 64;               ///< that are valid
  double overhead = 0;         ///< seconds from one timestamp to the next with nothing between
  bool is_calibrated = false;  ///< the driver tells the host's time; false: the last one is set to the wait's end
};

/// The facts of times that the host's clock measures.
TimestampFacts clock_facts();

}  // namespace moka::kernel
