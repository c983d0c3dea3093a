// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "plan/arrange.h"

/// The first sweep over an assignment. Private to this folder.
///
///     draft.cpp       visits the operations in the order of the assignment
///     draft_call.cpp  the kernel of one operation, the relocations of its inputs, views instead of copies
///     draft_state.cpp reads and updates of states
namespace moka::plan {

/// A value is needed in another layout or memory than it has.
struct Relocate {
  int from = -1, to = -1;  ///< places
};
/// The region that is open ends, because the next operation belongs to another one.
struct EndRegion {};

/// What the first sweep makes: each operation with its kernel and, before it, a relocation for each input that lies
/// elsewhere, needed or not. Places of relocations stand for wherever the second sweep finds the value.
struct Draft {
  using Step = std::variant<Run, Placed, Cond, Loop, Relocate, EndRegion>;
  struct Entry {
    Step step;
    size_t places;  ///< how many places were made before it, its own included
  };
  /// Places, inputs, imports, the block's outputs and where the plan ends, all before any value moves. It has no steps.
  Sequence values;
  std::vector<Entry> steps;
  /// By place of a state: the place of the last value it was given, for states that are passed on by value.
  std::map<int, int> given;
  std::vector<Preparation> preparations;
};

class Drafter {
 public:
  Drafter(const Resolved& resolved, const Claims& claims, const Assignment& assignment, const Plan* parent,
          const PlanOptions& options, bool own_outputs);

  Result<Draft> run();

 private:
  using Layout = kernel::Layout;
  using Device = kernel::Device;

  Place& place(int i) { return values_.places[static_cast<size_t>(i)]; }
  int add_place(Place p);
  int add_result(int value, Layout layout);
  void add_step(Draft::Step s) { draft_.steps.push_back({std::move(s), values_.places.size()}); }
  void add_inputs();
  /// The place of a value of Resolved.
  int home(int value);
  std::vector<int> homes(std::span<const int> values);
  int prepared(int p);
  /// Reads a constant of the host from the pool.
  Status materialize(int p);
  /// The value of `p` in the memory of `device` (nullptr: the host) and in `layout`: `p`, or the place of a relocation.
  Result<int> moved(int p, const Device* device, Layout layout);
  /// The value on the host, row-major.
  Result<int> on_host(int p) { return moved(p, nullptr, {}); }
  /// Makes the value available on the host for later operations and blocks.
  Status return_to_host(const ir::Value* v);

  Status draft_call(size_t n);
  Status draft_control(const ResolvedOp& op);
  Status draft_pending();
  Status draft_alias(size_t n, int in);
  std::vector<Layout> layouts(std::span<const int> in, const Device* memory);
  Result<std::shared_ptr<kernel::KernelChoice>> choose(size_t n, std::span<const int> in, KernelCall& step);
  Result<ChosenKernel> choose_on_host(size_t n, std::span<const int> in);
  void add_preparation(const KernelCall& step, std::shared_ptr<kernel::KernelChoice> choice, std::span<const int> in);
  Status move_inputs(const kernel::KernelChoice& choice, const Device* memory, std::vector<int>& in);
  /// Makes the places of the results. `cut`: they are parts of the inputs.
  Status add_results(const ResolvedOp& op, const kernel::KernelChoice& choice, bool cut, KernelCall& step);
  bool can_cut(const kernel::KernelChoice& choice, std::span<const int> in);
  /// The step of control flow, with a cache for each block.
  template <class AnyStep>
  static AnyStep with_caches(Control step) {
    for (auto& cache : step.blocks) cache = std::make_shared<PlanCache>();
    if (step.op->type_name() == "while_loop") return Loop{std::move(step)};
    return Cond{std::move(step)};
  }

  /// The device in whose memory the operation runs; nullptr: host memory.
  const Device* memory_of(const ir::Op& op) const;
  bool on_state(const ResolvedOp& op, std::span<const int> in);
  /// Whether operations pass the state's content on like any other value; it is then stored at the end.
  bool is_by_value(const ir::Value& state) const;
  bool by_value(const ResolvedOp& op, std::span<const int> in);
  /// Lets a result of an operation that updates a state take the memory of the state. `out` is its place.
  void write_in_state(const ResolvedOp& op, const kernel::KernelChoice& choice, std::span<const int> in, size_t result,
                      int out);
  /// Puts states into the memory of the device on which they are first used.
  void place_states();

  Draft draft_;
  Sequence& values_ = draft_.values;
  const Resolved& resolved_;
  const Claims& claims_;
  const Assignment& assignment_;
  const Plan* const parent_;
  const PlanOptions& options_;
  const StateUses& states_;
  std::vector<int> home_;                                       ///< by value of Resolved; -1: it has no place yet
  std::unordered_map<const ir::Op*, const Device*> device_of_;  ///< operations in the memory of devices
  std::map<int, int> prepared_;
};

/// The value of a place if it is in the constant pool; else nullptr.
const ir::Value* pooled(const Place& place);

}  // namespace moka::plan
