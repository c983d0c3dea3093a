#pragma once

#include <array>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "ir/program.h"
#include "kernel/kernel.h"
#include "plan/choices.h"
#include "plan/claim.h"

/// The steps of a plan. Each kind of step is a type of its own, with only the fields that it has.
namespace moka::plan {

class PlanCache;

/// Where the bytes of a place are stored.
enum class Storage : uint8_t {
  arena,     ///< at Place::offset in the frame's arena, in the memory of Place::device
  constant,  ///< in Place::constant
  external,  ///< supplied when the plan starts: an input, a state (in any memory), or a place of the enclosing plan
  object,    ///< Place::object of the frame: strings, lists, dictionaries
  prepared,  ///< not stored: only a kernel's `prepare` reads it
};

/// One value in one plan, or a copy of it in another layout.
struct Place {
  const ir::Value* value = nullptr;
  ir::Type type;
  kernel::Layout layout;
  const kernel::Device* device = nullptr;  ///< device whose memory holds it; nullptr: host memory
  int region = -1;                         ///< region that writes it, on a device
  Storage storage = Storage::arena;
  int root = -1;      ///< place whose storage it shares; its own index when it has its own storage
  size_t delta = 0;   ///< bytes from the start of the root's storage
  size_t bytes = 0;   ///< size of the root's storage
  size_t offset = 0;  ///< offset in the arena
  int object = -1;
  /// number of the step that writes it first and of the one that reads it last; of a root, over all places that share
  /// it
  int first = 0, last = 0;
  ir::Tensor constant;
  std::shared_ptr<const kernel::Buffer> buffer;  ///< holds constants of a device
};

/// An operation, and the places of its operands and results.
struct Call {
  const ir::Op* op = nullptr;
  std::vector<int> in, out;         ///< indices of places
  std::vector<uint32_t> first_arg;  ///< as in OpCall
};

/// An operation that a kernel computes, how the kernel was chosen, and what others offered.
struct KernelCall : Call {
  const kernel::Device* device = nullptr;
  std::shared_ptr<const kernel::KernelChoice> choice;
  int threads = 1;  ///< number of threads that share its tiles
  ChosenBy by = ChosenBy::rule;
  std::vector<Refusal> refusals;
  std::shared_ptr<const std::vector<Bid>> bids;    ///< set when several devices were asked
  std::shared_ptr<const Measurement> measurement;  ///< as in ChosenKernel
};

/// Why the device does not run the operation; "" when it was not asked or did not refuse.
std::string refusal_of(const KernelCall& call, const kernel::Device& device);

/// Runs the kernel.
struct Run : KernelCall {
  /// arena offsets of its scratch and of its threads' scratch
  size_t scratch_offset = 0, threads_offset = 0;
};

/// Nothing to do, because its inputs or outputs are parts of one value's memory.
struct Placed : KernelCall {};

/// The host copies a value, to another layout if the places have different ones.
struct Convert {
  int from = -1, to = -1;  ///< places
  int threads = 1;         ///< number of threads that share the work
};

/// A device copies a value in its memory: to another layout, to a state, or from packed pixels to planes.
struct DeviceConvert {
  int from = -1, to = -1;  ///< places
  std::shared_ptr<const kernel::KernelChoice> choice;
};

/// Control flow, with a cache of plans for each block.
struct Control : Call {
  std::array<std::shared_ptr<PlanCache>, 2> blocks;
};
/// Runs the first block if its condition holds, else the second.
struct Cond : Control {};
/// Runs the second block as long as the first gives true.
struct Loop : Control {};

/// The host writes a value that a region reads, before the launch: Region::uploads.
struct Upload {
  int region = -1;
  size_t index = 0;  ///< in Region::uploads
};
/// Submits the commands of a region, and continues.
struct Launch {
  int region = -1;
};
/// Waits until a region that was launched is done.
struct Wait {
  int region = -1;
};
/// The host reads a result of a region, after the wait: Region::downloads.
struct Download {
  int region = -1;
  size_t index = 0;  ///< in Region::downloads
};

/// What the host does, in order.
using Step = std::variant<Run, Placed, Convert, Cond, Loop, Upload, Launch, Wait, Download>;
/// What a device does, in order.
using RegionStep = std::variant<Run, Placed, DeviceConvert>;

/// A value that crosses between memories, unchanged.
struct Crossing {
  int from = -1, to = -1;  ///< places
};

/// Steps that a device runs as one submission.
struct Region {
  const kernel::Device* device = nullptr;
  std::vector<RegionStep> steps;
  std::vector<Crossing> uploads;    ///< from the host; written before the submission
  std::vector<Crossing> downloads;  ///< to the host; read after the wait
};

/// An operation whose output types follow from the values of its inputs.
struct Infer : Call {};
/// Where a plan ends early. Control flow runs before the types of its outputs are known.
using Pending = std::variant<Infer, Cond, Loop>;

/// The operation of a step; nullptr: it has none.
template <class AnyStep>
const Call* call_of(const AnyStep& step) {
  return std::visit(
      []<class One>(const One& one) -> const Call* {
        if constexpr (std::is_base_of_v<Call, One>)
          return &one;
        else
          return nullptr;
      },
      step);
}

/// The operation of a step that a kernel computes; nullptr: it has none.
template <class AnyStep>
const KernelCall* kernel_of(const AnyStep& step) {
  if (const auto* run = std::get_if<Run>(&step)) return run;
  return std::get_if<Placed>(&step);
}

/// The control flow of a step; nullptr: it has none.
template <class AnyStep>
const Control* control_of(const AnyStep& step) {
  if (const auto* cond = std::get_if<Cond>(&step)) return cond;
  return std::get_if<Loop>(&step);
}

/// Calls visit(number, step, region) for each step in the order in which they run. The steps of a region come right
/// before its launch; the region of the host's steps is -1. The numbers count all steps, from 0.
template <class Sequence, class Visit>
void for_each_step(Sequence& sequence, Visit&& visit) {
  int number = 0;
  for (auto& step : sequence.steps) {
    if (const Launch* launch = std::get_if<Launch>(&step))
      for (auto& inner : sequence.regions[static_cast<size_t>(launch->region)].steps) {
        std::visit([&](auto& one) { visit(number, one, launch->region); }, inner);
        number++;
      }
    std::visit([&](auto& one) { visit(number, one, -1); }, step);
    number++;
  }
}

template <class Sequence>
int count_steps(const Sequence& sequence) {
  int count = 0;
  for_each_step(sequence, [&](int, const auto&, int) { count++; });
  return count;
}

/// The places that a step reads.
template <class Sequence, class One>
std::span<const int> reads_of(const Sequence& sequence, const One& step) {
  if constexpr (std::is_base_of_v<Call, One>)
    return step.in;
  else if constexpr (std::is_same_v<One, Convert> || std::is_same_v<One, DeviceConvert>)
    return {&step.from, 1};
  else if constexpr (std::is_same_v<One, Upload>)
    return {&sequence.regions[static_cast<size_t>(step.region)].uploads[step.index].from, 1};
  else if constexpr (std::is_same_v<One, Download>)
    return {&sequence.regions[static_cast<size_t>(step.region)].downloads[step.index].from, 1};
  else
    return {};
}

/// The places that a step writes.
template <class Sequence, class One>
std::span<const int> writes_of(const Sequence& sequence, const One& step) {
  if constexpr (std::is_base_of_v<Call, One>)
    return step.out;
  else if constexpr (std::is_same_v<One, Convert> || std::is_same_v<One, DeviceConvert>)
    return {&step.to, 1};
  else if constexpr (std::is_same_v<One, Upload>)
    return {&sequence.regions[static_cast<size_t>(step.region)].uploads[step.index].to, 1};
  else if constexpr (std::is_same_v<One, Download>)
    return {&sequence.regions[static_cast<size_t>(step.region)].downloads[step.index].to, 1};
  else
    return {};
}

}  // namespace moka::plan
