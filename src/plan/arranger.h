#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "plan/arrange.h"

/// How the places and steps of a sequence are made from the values before it. Private to this folder.
///
///     arrange.cpp    visits the operations in the order of the assignment
///     places.cpp     makes the places of values
///     emit.cpp       makes the step of one operation: its kernel, layouts, views instead of copies
///     states.cpp, state_steps.cpp  reads and writes states
///     crossing.cpp   moves values into the memory and layout that a step needs; opens and closes regions
///     control.cpp    makes steps that have blocks
namespace moka::plan {

class Arranger {
 public:
  Arranger(const Resolved& resolved, const Claims& claims, const Assignment& assignment, const Plan* parent,
           const PlanOptions& options, bool own_outputs);

  Result<Arranged> run();

 private:
  using Layout = kernel::Layout;
  using Device = kernel::Device;

  Place& place(int i) { return sequence_.places[static_cast<size_t>(i)]; }
  int add_place(Place p);
  int add_result(int value, Layout layout);
  void add_step(Step s) { sequence_.steps.push_back(std::move(s)); }
  Region& region(int r) { return sequence_.regions[static_cast<size_t>(r)]; }
  void add_inputs();
  /// The place of a value of Resolved.
  int home(int value);
  std::vector<int> homes(std::span<const int> values);
  Status materialize(int p);
  int prepared(int p);
  /// The value of a place if it is in the constant pool.
  const ir::Value* pooled(int p);

  Status arrange(size_t n);
  Status arrange_call(size_t n);
  Status arrange_control(const ResolvedOp& op);
  Status arrange_pending();
  /// The step of control flow, with a cache for each block.
  template <class AnyStep>
  static AnyStep with_caches(Control step) {
    for (auto& cache : step.blocks) cache = std::make_shared<PlanCache>();
    if (step.op->type_name() == "while_loop") return Loop{std::move(step)};
    return Cond{std::move(step)};
  }
  std::vector<Layout> layouts(std::span<const int> in, const Device* memory);
  Result<std::shared_ptr<kernel::KernelChoice>> choose(size_t n, std::span<const int> in, KernelCall& step);
  Result<ChosenKernel> choose_on_host(size_t n, std::span<const int> in);
  void add_preparation(const KernelCall& step, std::shared_ptr<kernel::KernelChoice> choice, std::span<const int> in);
  Status convert_inputs(const kernel::KernelChoice& choice, const Device* memory, std::vector<int>& in);
  /// Makes the places of the results. `cut`: they are parts of the inputs.
  Status add_results(const ResolvedOp& op, const kernel::KernelChoice& choice, bool cut, KernelCall& step);
  bool can_cut(const kernel::KernelChoice& choice, std::span<const int> in);
  Status emit_alias(size_t n, int in);
  Status finish_outputs();
  /// Finds images whose planes the host does not need.
  void find_planes();
  /// Copies everything that devices compute to the host.
  Status download_all();

  /// The device in whose memory the operation runs; nullptr: host memory.
  const Device* memory_of(const ir::Op& op) const;
  bool on_state(const ResolvedOp& op, std::span<const int> in);
  /// Whether operations pass the state's content on like any other value; it is then stored at the end.
  bool is_by_value(const ir::Value& state) const;
  bool by_value(const ResolvedOp& op, std::span<const int> in);
  /// Lets the result of an operation that updates a state take the memory of the state.
  void write_in_state(const ResolvedOp& op, const kernel::KernelChoice& choice, std::span<const int> in, int out);
  /// Stores the last value that each state was given, for states in the memory of devices or of the host.
  Status write_states(bool on_devices);
  /// Puts states into the memory of the device on which they are first used.
  void place_states();
  /// Adds a step that copies a value to another place in the memory of one device.
  void copy_on(const Device& device, int from, int to);

  /// The place of p's value in the memory of `device` (nullptr: the host) and in `layout`.
  Result<int> available_in(int p, const Device* device, Layout layout);
  Result<int> on_host(int p) { return available_in(p, nullptr, {}); }
  /// Makes the value available on the host for later operations and blocks.
  Status return_to_host(const ir::Value* v);
  Result<int> convert(int p, Layout layout);
  Result<int> upload(int p, const Device& device, Layout layout);
  /// Adds the transfer of a value as it is.
  int add_upload(int p, const Device& device);
  /// How the device unpacks a picture; nullptr: it does not, or the value is not a picture.
  std::unique_ptr<kernel::KernelChoice> unpacking(int p, const Device& device);
  /// Uploads packed pixels and unpacks them.
  int upload_pixels(int p, const Device& device, std::unique_ptr<kernel::KernelChoice> unpacks);
  Result<int> upload_constant(int p, const Device& device, Layout layout);
  Result<int> download(int p);
  /// The open region of the device. Opens one if there is none.
  int region_of(const Device& device);
  void close_region();

  /// The region that writes a place; -1: none does.
  int& writer_of(int p) { return written_by_[static_cast<size_t>(place(p).root)]; }

  Sequence sequence_;
  const Resolved& resolved_;
  const Claims& claims_;
  const Assignment& assignment_;
  const Plan* const parent_;
  const PlanOptions& options_;
  const StateUses& states_;
  std::vector<int> home_;                                       ///< by value of Resolved; -1: it has no place yet
  std::unordered_map<const ir::Op*, const Device*> device_of_;  ///< operations in the memory of devices
  std::map<std::tuple<int, const Device*, Layout>, int> copies_;
  std::map<int, int> prepared_;
  std::vector<Preparation> preparations_;
  /// by place of a state: the place of the last value it was given, for states passed by value
  std::map<int, int> given_;
  std::vector<int> written_by_;  ///< by place with its own storage: the region that writes it
  int open_ = -1;                ///< the region that is not submitted yet
  std::vector<bool> waited_;     ///< per region
};

}  // namespace moka::plan
