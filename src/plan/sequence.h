// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <climits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "ir/program.h"
#include "kernel/kernel.h"
#include "plan/choices.h"
#include "plan/claim.h"

/// The fourth of the values that a plan is made of: the host's steps in order, the steps of each region, and the places
/// that all of them read and write. Each kind of step, and of storage, is a type of its own with only the fields that
/// it has. `Sequence` below has them all.
namespace moka::plan {

class PlanCache;

/// In the arena of the memory in which the place lies.
struct InArena {};
/// A constant on the host, or in a buffer of a device.
struct Constant {
  ir::Tensor tensor;                             ///< on the host; empty: the ConstantPool has it
  std::shared_ptr<const kernel::Buffer> buffer;  ///< on a device
};
/// Supplied when the plan starts: an input, a state (in any memory), or a place of the enclosing plan.
struct External {};
/// A string, a list or a dictionary of the frame.
struct Object {
  int index = -1;
};
/// Not stored: only a kernel's `prepare` reads it.
struct Prepared {};

/// One value in one plan, or a copy of it in another layout or memory.
struct Place {
  const ir::Value* value = nullptr;
  ir::Type type;
  kernel::Layout layout;
  const kernel::Device* device = nullptr;  ///< device whose memory holds it; nullptr: host memory
  std::variant<InArena, Constant, External, Object, Prepared> storage;
  int root = -1;     ///< place whose storage it shares; its own index when it has its own storage
  size_t delta = 0;  ///< bytes from the start of the root's storage

  template <class Kind>
  bool is() const {
    return std::holds_alternative<Kind>(storage);
  }
};

/// Bytes of a place in its layout; 0 for what is not a tensor.
size_t bytes_of(const Place& place);

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
  static constexpr std::string_view kKind = "run";
};

/// Nothing to do, because its inputs or outputs are parts of one value's memory.
struct Placed : KernelCall {
  static constexpr std::string_view kKind = "placed";
};

/// The host copies a value, to another layout if the places have different ones.
struct Convert {
  static constexpr std::string_view kKind = "convert";
  int from = -1, to = -1;  ///< places
  int threads = 1;         ///< number of threads that share the work
};

/// A device copies a value in its memory: to another layout, to a state, or from packed pixels to planes.
struct DeviceConvert {
  static constexpr std::string_view kKind = "convert";
  int from = -1, to = -1;  ///< places
  std::shared_ptr<const kernel::KernelChoice> choice;
};

/// Control flow, with a cache of plans for each block.
struct Control : Call {
  std::array<std::shared_ptr<PlanCache>, 2> blocks;
};
/// Runs the first block if its condition holds, else the second.
struct Cond : Control {
  static constexpr std::string_view kKind = "cond";
};
/// Runs the second block as long as the first gives true.
struct Loop : Control {
  static constexpr std::string_view kKind = "loop";
};

/// A value that a region takes before its launch (Region::uploads) or gives after its wait (Region::downloads).
struct Slot {
  int region = -1;
  size_t index = 0;
};
/// The host writes a value that a region reads.
struct Upload {
  static constexpr std::string_view kKind = "upload";
  int from = -1;  ///< place
  Slot to;
};
/// Submits the commands of a region, and continues.
struct Launch {
  static constexpr std::string_view kKind = "launch";
  int region = -1;
};
/// Waits until a region that was launched is done.
struct Wait {
  static constexpr std::string_view kKind = "wait";
  int region = -1;
};
/// The host reads a result of a region.
struct Download {
  static constexpr std::string_view kKind = "download";
  Slot from;
  int to = -1;  ///< place
};
/// A result of a region becomes an input of a region of another device. The host copies its bytes once.
struct Transfer {
  static constexpr std::string_view kKind = "transfer";
  Slot from, to;
};

/// What the host does, in order. Each kind has its name in texts, kKind.
using Step = std::variant<Run, Placed, Convert, Cond, Loop, Upload, Launch, Wait, Download, Transfer>;
/// What a device does, in order.
using RegionStep = std::variant<Run, Placed, DeviceConvert>;

/// Steps that a device runs as one submission.
struct Region {
  const kernel::Device* device = nullptr;
  std::vector<RegionStep> steps;
  std::vector<int> uploads;    ///< places that are written before the submission
  std::vector<int> downloads;  ///< places that are read after the wait
};

/// An operation whose output types follow from the values of its inputs.
struct Infer : Call {};
/// Where a plan ends early. Control flow runs before the types of its outputs are known.
using Pending = std::variant<Infer, Cond, Loop>;

/// Whether the step moves a value between memories.
inline bool crosses(const Step& step) {
  return std::holds_alternative<Upload>(step) || std::holds_alternative<Download>(step) ||
         std::holds_alternative<Transfer>(step);
}

/// The operation of one kind of step; nullptr: it has none.
template <class One>
const Call* call_of(const One& step) {
  if constexpr (std::is_base_of_v<Call, One>)
    return &step;
  else
    return nullptr;
}
/// The operation of a step; nullptr: it has none.
template <class... Kinds>
const Call* call_of(const std::variant<Kinds...>& step) {
  return std::visit([](const auto& one) { return call_of(one); }, step);
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

/// An image input that a device unpacks.
struct PixelInput {
  size_t input = 0;         ///< index in Sequence::inputs
  int place = -1;           ///< of the packed pixels on the host, which are written as they are uploaded
  bool planes_read = true;  ///< something also reads the input's planes on the host
  size_t frame_room = 0;    ///< bytes for a packed frame; 0: the device takes none
};

/// What a block computes under concrete types, step by step, without the memory that it takes. When a shape depends on
/// values, it ends early at `pending`.
struct Sequence {
  const ir::Block* block = nullptr;
  std::vector<Place> places;
  std::vector<Step> steps;
  std::vector<Region> regions;
  std::vector<int> inputs;                   ///< place of each block input; first segments only
  std::vector<std::pair<int, int>> imports;  ///< (place, place of the parent) pairs, patched before running
  std::vector<int> outputs;                  ///< place of each block output; complete sequences only
  bool own_outputs = false;                  ///< see plan_block
  std::vector<PixelInput> pixels;
  size_t objects = 0;              ///< strings, lists and dictionaries of a frame
  std::optional<Pending> pending;  ///< the operation whose output types are not known yet
  std::unordered_map<const ir::Value*, int> place_of;

  const Place& place(int i) const { return places[static_cast<size_t>(i)]; }
  const Region& region(int r) const { return regions[static_cast<size_t>(r)]; }
  bool is_complete() const { return !pending; }
  /// The operation of `pending`.
  const ir::Op& pending_op() const { return *call_of(*pending)->op; }
  /// Whether it must run before its output types are known.
  bool pending_runs_first() const { return control_of(*pending) != nullptr; }
  std::vector<ir::Type> output_types() const;
};

/// Calls visit(number, step, region) for each step in the order in which they run. The steps of a region come right
/// before its launch; the region of the host's steps is -1. The numbers count all steps, from 0.
template <class AnySequence, class Visit>
void for_each_step(AnySequence& sequence, Visit&& visit) {
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

int count_steps(const Sequence& sequence);

/// The steps of a region that compute something: what kernel::Region::steps are made of, in their order.
std::vector<const RegionStep*> computed_steps(const Region& region);

/// The places that a step reads.
template <class One>
std::span<const int> reads_of(const Sequence& sequence, const One& step) {
  if constexpr (std::is_base_of_v<Call, One>)
    return step.in;
  else if constexpr (std::is_same_v<One, Download> || std::is_same_v<One, Transfer>)
    return {&sequence.region(step.from.region).downloads[step.from.index], 1};
  else if constexpr (requires { step.from; })
    return {&step.from, 1};
  else
    return {};
}

/// The places that a step writes.
template <class One>
std::span<const int> writes_of(const Sequence& sequence, const One& step) {
  if constexpr (std::is_base_of_v<Call, One>)
    return step.out;
  else if constexpr (std::is_same_v<One, Upload> || std::is_same_v<One, Transfer>)
    return {&sequence.region(step.to.region).uploads[step.to.index], 1};
  else if constexpr (requires { step.to; })
    return {&step.to, 1};
  else
    return {};
}

/// Whether the step copies its input to a state in the memory of its device.
bool is_state_store(const Sequence& sequence, const DeviceConvert& step);

/// Finds the value that a place holds, even if the place is a copy. The sequence must outlive it.
class CopiedValues {
 public:
  explicit CopiedValues(const Sequence& sequence);
  /// nullptr: it holds no value, or a part of one.
  const ir::Value* of(int place) const;

 private:
  const Sequence& sequence_;
  std::vector<int> from_;  ///< by place: the place that it was copied from
};

/// The numbers of the first step that writes a place and of the last one that reads it.
struct Lifetime {
  int first = INT_MAX, last = -1;
};
/// By place; of a root, over all places that share its storage.
std::vector<Lifetime> lifetimes(const Sequence& sequence);

/// Places `part` in the bytes of `whole` from `offset` on.
void place_in(Place& part, const Place& whole, size_t offset);
/// Puts values that are joined later into the value they are joined to, each into at most one. Steps that have nothing
/// left to copy become `Placed`.
void place_parts(Sequence& sequence);
/// Lets results take over the storage of inputs at their last use, where the kernel allows it, and results that a state
/// is given at the end the storage of that state.
void share_in_place(Sequence& sequence);

/// Refuses a sequence that breaks a rule. Every index exists. Everything is written before it is read, in the layout
/// and memory of the reader, and a region's results are read after the wait. Error internal names the places.
Status check(const Sequence& sequence);

}  // namespace moka::plan
