#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "plan/draft.h"
#include "plan/plan.h"
#include "plan/prepare.h"
#include "plan/states.h"

/// How plans are made. Private to this folder.
///
///     plan_block.cpp starts a plan for a block, or for what follows another plan
///     planner.cpp    visits the operations of a block: infers types, folds constants, stops where types are unknown
///     places.cpp     finds and makes the places of values
///     emit.cpp       makes the step of one operation: its kernel, layouts, views instead of copies
///     crossing.cpp   moves values into the memory and layout that a step needs; opens and closes regions
///     control.cpp    makes steps that have blocks
///     infer.cpp      infers types alone, without kernels
///     draft.cpp      assigns operations to devices before the plan is made
namespace moka::plan {

/// Limit of one value's size. It keeps the sum of a plan's values far from overflow.
constexpr size_t kLargestValue = size_t{1} << 48;
/// Constants up to this size are expanded while planning.
constexpr size_t kEagerConstantBytes = 4096;

/// Whether values of the type are objects of the host instead of bytes.
inline bool is_object(const ir::Type& t) { return !t.is_tensor() || t.dtype() == ir::DType::string; }

/// The inputs of an operation as a kernel or an inference function sees them.
struct CallArgs {
  std::vector<ir::Arg> args;
  std::vector<ir::TensorView> views;
  std::unique_ptr<bool[]> constant;
  std::vector<kernel::Layout> layouts;
  bool all_known = true, all_shapes_known = true, all_constant = true;
};

/// Values used in `block` but defined outside it.
std::vector<const ir::Value*> free_values(const ir::Block& block);
/// Values that `from`, the operations after it in the block, or the block's outputs use.
std::vector<const ir::Value*> used_from(const ir::Block& block, const ir::Op& from);

class Planner {
 public:
  /// `placement`: which device runs each operation; nullptr: the first device that takes it.
  Planner(std::shared_ptr<Plan> plan, const ir::Block& block, const PlanOptions& options, bool own_outputs,
          const Placement* placement = nullptr)
      : plan_(std::move(plan)),
        block_(block),
        options_(options),
        hosts_(host_devices(options)),
        accelerators_(accelerators(options)),
        own_outputs_(own_outputs),
        placement_(placement) {}

  /// Plans the block, or only the part after `from`, whose outputs have these types.
  Result<std::shared_ptr<const Plan>> run(const ir::Op* from, std::span<const ir::Type> pending_types);
  /// Only infers types and estimates what each operation would cost on each device.
  Status draft(const ir::Op* from, std::span<const ir::Type> pending_types, Draft& draft);
  /// Only infers types. Returns those of the block's outputs, or nullopt when values decide some. Adds the operations
  /// it visits to `operations`.
  Result<std::optional<std::vector<ir::Type>>> infer(int64_t& operations);
  bool is_whole() const { return plan_->is_complete(); }
  Status import_all(std::span<const ir::Value* const> values);
  /// Imports all values that `from` and the operations after it use, so that later segments find them here.
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
  /// Whether a constant may be expanded to infer a type.
  bool may_expand(const Place& p) const;
  int prepared(int p);
  /// The value of a place if it is in the constant pool.
  const ir::Value* pooled(int p);
  /// `device`: the device in whose memory the operation would run.
  CallArgs call_args(std::span<const int> in, const Device* device = nullptr);
  Result<std::vector<int>> operands(const ir::Op& op, std::vector<uint32_t>& first);

  Result<bool> walk(const ir::Op* from, std::span<const ir::Type> pending_types);
  /// Plans the operation, and before it the operands that are not planned yet. False: the plan ends here.
  Result<bool> plan_with_operands(const ir::Op& op);
  /// False: the plan ends here.
  Result<bool> plan_op(const ir::Op& op, const std::vector<ir::Type>* known_types);
  Result<bool> plan_control(const ir::Op& op);
  Result<bool> infer_control(const ir::Op& op);
  /// The types of the operation's outputs, when its blocks decide them. `types_of` gives the output types of a block
  /// for its input types; nullopt: values decide some.
  using BlockTypes = std::function<Result<std::optional<std::vector<ir::Type>>>(size_t, const std::vector<ir::Type>&)>;
  Result<std::optional<std::vector<ir::Type>>> control_types(const ir::Op& op, std::span<const int> in,
                                                             const BlockTypes& types_of);
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
  /// Finds images whose planes the host does not need.
  void find_planes();
  /// Copies everything that devices compute to the host.
  Status download_all();
  bool on_state(const ir::Op& op, std::span<const int> in, const std::vector<ir::Type>& types);
  /// Whether operations pass the state's content on like any other value; it is then stored at the end.
  bool is_by_value(const ir::Value& state) const;
  bool by_value(const ir::Op& op, std::span<const int> in, const std::vector<ir::Type>& types);
  /// Stores the last value that each state was given, for states in the memory of devices or of the host.
  Status write_states(bool on_devices);
  /// Puts states into the memory of the device on which they are first used.
  void place_states();
  /// Adds a step that copies a value to another place in the memory of one device.
  void copy_on(const Device& device, int from, int to);

  /// The place of p's value in the memory of `device` (nullptr: the host) and in `layout`.
  Result<int> bring(int p, const Device* device, Layout layout);
  Result<int> on_host(int p) { return bring(p, nullptr, {}); }
  /// Makes the value available on the host for later operations and blocks.
  Status return_to_host(const ir::Value* v);
  Result<int> convert(int p, Layout layout);
  Result<int> upload(int p, const Device& device, Layout layout);
  /// Adds the transfer of a value as it is.
  int cross(int p, const Device& device);
  /// How the device unpacks a picture; nullptr: it does not, or the value is not a picture.
  std::unique_ptr<kernel::KernelChoice> unpacking(int p, const Device& device);
  /// Uploads packed pixels and unpacks them.
  int upload_pixels(int p, const Device& device, std::unique_ptr<kernel::KernelChoice> unpacks);
  Result<int> upload_constant(int p, const Device& device, Layout layout);
  Result<int> download(int p);
  /// The open region of the device. Opens one if there is none.
  int region_of(const Device& device);
  void close_region();

  std::shared_ptr<Plan> plan_;
  const ir::Block& block_;
  const PlanOptions& options_;
  const std::vector<const Device*> hosts_, accelerators_;  ///< from the options
  bool own_outputs_;
  const Placement* placement_;
  Draft* draft_ = nullptr;
  int64_t* inferred_ = nullptr;  ///< set while only types are inferred: how many operations were visited
  std::map<std::tuple<int, const Device*, Layout>, int> brought_;
  std::map<int, int> prepared_;
  std::unordered_set<const ir::Op*> planned_;  ///< operations with a placement
  std::vector<size_t> scratch_;
  std::vector<Preparation> preparations_;
  StateUses states_;
  /// by place of a state: the place of the last value it was given, for states passed by value
  std::map<int, int> given_;
  int open_ = -1;             ///< the region that is not submitted yet
  std::vector<bool> waited_;  ///< per region
};

}  // namespace moka::plan
