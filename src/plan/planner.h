#pragma once

#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "plan/draft.h"
#include "plan/plan.h"
#include "plan/prepare.h"
#include "plan/states.h"

/// How plans are made. Only the files of this folder use it.
///
///     planner.cpp    goes over the operations of a block: infers types, folds constants, stops where types are unknown
///     emit.cpp       makes the step of one operation: its kernel, layouts, views instead of copies
///     crossing.cpp   brings values into the memory and layout that a step wants; opens and closes regions
///     control.cpp    steps with blocks
///     draft.cpp      decides for a block with several devices which of them runs what, before the plan is made
namespace moka::plan {

/// The inputs of an operation as a kernel or an inference function sees them.
struct CallArgs {
  std::vector<ir::Arg> args;
  std::vector<ir::TensorView> views;
  std::unique_ptr<bool[]> constant;
  std::vector<kernel::Layout> layouts;
  bool all_known = true, all_shapes_known = true, all_constant = true;
};

/// Values used in `block` but defined outside of it.
std::vector<const ir::Value*> free_values(const ir::Block& block);
/// Values that `from`, what is behind it in the block, and the block's outputs use.
std::vector<const ir::Value*> used_from(const ir::Block& block, const ir::Op& from);

class Planner {
 public:
  /// `placement`: which device runs what; nullptr: the first that takes it.
  Planner(std::shared_ptr<Plan> plan, const ir::Block& block, const PlanOptions& options, bool own_outputs,
          const Placement* placement = nullptr)
      : plan_(std::move(plan)),
        block_(block),
        options_(options),
        hosts_(host_devices(options)),
        accelerators_(accelerators(options)),
        own_outputs_(own_outputs),
        placement_(placement) {}

  /// Plans the block, or what is behind `from`, whose outputs have these types.
  Result<std::shared_ptr<const Plan>> run(const ir::Op* from, std::span<const ir::Type> pending_types);
  /// Only finds types and what each operation would cost on each device.
  Status draft(const ir::Op* from, std::span<const ir::Type> pending_types, Draft& draft);
  Status import_all(std::span<const ir::Value* const> values);
  /// All that `from` and what is behind it in the block use, so that later segments find it here.
  Status import_later(const ir::Op& from);

 private:
  using Layout = kernel::Layout;
  using Device = kernel::Device;

  Place& place(int i) { return plan_->places[static_cast<size_t>(i)]; }
  int add_place(Place p);
  int add_result(const ir::Value* v, const ir::Type& type, Layout layout);
  void add_step(Step s, size_t scratch = 0);
  Result<int> find(const ir::Value* v);
  Status materialize(int p);
  int prepared(int p);
  /// The value behind a place, when the pool of constants has it.
  const ir::Value* pooled(int p);
  /// `device`: in whose memory the operation would run.
  CallArgs call_args(std::span<const int> in, const Device* device = nullptr);
  Result<std::vector<int>> operands(const ir::Op& op, std::vector<uint32_t>& first);

  Result<bool> walk(const ir::Op* from, std::span<const ir::Type> pending_types);
  /// Before it, what it needs and is not planned yet. false: the plan ends here.
  Result<bool> plan_with_operands(const ir::Op& op);
  /// false: the plan ends here.
  Result<bool> plan_op(const ir::Op& op, const std::vector<ir::Type>* known_types);
  Result<bool> plan_control(const ir::Op& op);
  bool can_cut(const kernel::KernelChoice& choice, std::span<const int> in);
  Result<bool> stop_at(const ir::Op& op, std::vector<int> in, std::vector<uint32_t> first);
  Status fold(const ir::Op& op, std::span<const int> in, const std::vector<ir::Type>& types);
  Result<std::shared_ptr<kernel::KernelChoice>> choose(const ir::Op& op, std::span<const int> in,
                                                       std::span<const uint32_t> first,
                                                       const std::vector<ir::Type>& types, Step& step);
  Status add_to_draft(DraftOp op, std::span<const int> in, std::span<const ir::Type> types);
  std::vector<Bid> bids(const kernel::MatchCall& match, const ChosenKernel& host);
  Status emit(const ir::Op& op, std::vector<int> in, std::vector<uint32_t> first, const std::vector<ir::Type>& types);
  bool is_alias(const ir::Op& op, std::span<const int> in, const std::vector<ir::Type>& types);
  Status emit_alias(const ir::Op& op, int in, const ir::Type& type);
  Status finish_outputs();
  /// Brings all that devices compute to the host.
  Status download_all();
  bool on_state(const ir::Op& op, std::span<const int> in, const std::vector<ir::Type>& types);
  /// Whether a state's content goes from operation to operation like any other value, and is stored at the end.
  bool is_by_value(const ir::Value& state) const;
  bool by_value(const ir::Op& op, std::span<const int> in, const std::vector<ir::Type>& types);
  /// Stores what states were given last.
  Status write_states();

  /// The place of the value of `p` in the memory of `device` (nullptr: the host's) and in `layout`.
  Result<int> bring(int p, const Device* device, Layout layout);
  Result<int> on_host(int p) { return bring(p, nullptr, {}); }
  /// Later operations and blocks find the value on the host.
  Status return_to_host(const ir::Value* v);
  Result<int> convert(int p, Layout layout);
  Result<int> upload(int p, const Device& device, Layout layout);
  Result<int> upload_constant(int p, const Device& device, Layout layout);
  Result<int> download(int p);
  /// The open region of the device, opened when there is none.
  int region_of(const Device& device);
  void close_region();

  std::shared_ptr<Plan> plan_;
  const ir::Block& block_;
  const PlanOptions& options_;
  const std::vector<const Device*> hosts_, accelerators_;  ///< of the options
  bool own_outputs_;
  const Placement* placement_;
  Draft* draft_ = nullptr;
  std::map<std::tuple<int, const Device*, Layout>, int> brought_;
  std::map<int, int> prepared_;
  std::unordered_set<const ir::Op*> planned_;  ///< with a placement
  std::vector<size_t> scratch_;
  std::vector<Preparation> preparations_;
  StateUses states_;
  std::map<int, int> given_;  ///< by place of a state: the place of what it was given last, where it goes by value
  int open_ = -1;             ///< the region that is not submitted yet
  std::vector<bool> waited_;  ///< per region
};

}  // namespace moka::plan
