#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ir/evaluate.h"
#include "kernel/memory.h"
#include "kernel/pixels.h"
#include "plan/plan.h"
#include "trace/trace.h"

namespace moka::runtime {

/// Told of each step as it ends. Called from the thread that predicts.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void step(const plan::Plan& plan, const plan::Step& step, double seconds,
                    std::span<const ir::TensorView> out) = 0;
  /// The prediction begins anew: what it told so far does not count.
  virtual void restart() {}
};

/// What the frames of one session share.
struct ExecContext {
  /// The session's queue of a device with a memory of its own, opened at the first call.
  Result<kernel::Queue*> queue(const kernel::Device& device);

  const plan::PlanOptions* options = nullptr;
  int64_t loop_limit = 1'000'000;  ///< iterations of one loop before it is an error
  ir::RandomSource random;
  TraceSink* trace = nullptr;
  bool is_recorded = false;  ///< in the trace that is being written
  bool is_timed() const { return trace != nullptr || is_recorded; }
  const kernel::Device* stretch = nullptr;  ///< recorded: whose steps run now, outside of blocks
  int depth = 0;                            ///< recorded: of blocks
  int64_t region_end = 0;                   ///< recorded: of the last region that was waited for
  std::vector<std::pair<const kernel::Device*, std::unique_ptr<kernel::Queue>>> queues;
};

/// The memory of one plan and the arguments of its kernels, made once. Running allocates nothing unless shapes are
/// learned on the way. Belongs to one thread at a time.
class Frame {
 public:
  /// `parent`: the frame of plan->parent. Errors: out_of_budget.
  static Result<std::unique_ptr<Frame>> make(std::shared_ptr<const plan::Plan> plan, Frame* parent,
                                             ExecContext& context);
  ~Frame();
  Frame(const Frame&) = delete;

  const plan::Plan& plan() const { return *plan_; }
  /// The bytes of its arena and of those of its blocks.
  size_t bytes() const;
  /// Points block input `i` at its data, dense and row-major, of the planned type.
  void set_input(size_t i, void* data) { set_external(plan_->inputs[i], data); }
  /// The device in whose memory the plan keeps block input `i`, a state; nullptr: none, set_input is called.
  const kernel::Device* device_of_input(size_t i) const;
  /// Its content there. A buffer that is new to the frame has the regions compiled again by the next run.
  void set_state(size_t i, std::shared_ptr<kernel::Buffer> buffer);
  /// Whether a device unpacks the pixels of block input `i`, which set_pixels gives.
  bool takes_pixels(size_t i) const;
  /// Whether set_input must be called for such an input too.
  bool takes_planes(size_t i) const;
  /// The picture has the planned size, and its pixels stay valid until run ends.
  void set_pixels(size_t i, const kernel::Pixels& pixels);
  /// Whether the last run has started anything on a device.
  bool has_submitted() const { return has_submitted_; }
  /// The type and shape that block output `i` will have, where it can be computed in any memory; null: where something
  /// else shares its memory, or nothing is known before run.
  const ir::TensorView* placeable_output(size_t i) const;
  /// Computes such an output there until told otherwise, dense and row-major; null: in the frame's own memory.
  void place_output(size_t i, void* data);
  /// Runs to the end of the block, through continuations.
  Status run();
  /// After run: block output `i`, valid until the next run.
  const ir::TensorView& output(size_t i) const;
  const ir::Type& output_type(size_t i) const;

 private:
  struct Object {
    std::vector<std::string> strings;
    ir::List list;
    ir::Dict dict;
  };
  struct StepData {
    std::vector<ir::TensorView> in, out;
    std::vector<ir::Arg> args;
    std::optional<ir::OpCall> call;
    size_t slot = 0, bytes = 0;  ///< of a transfer: its index in Region::uploads or downloads, and its size
    int pixels = -1;             ///< of a transfer of a picture: its index in Plan::pixels
  };
  /// A value of a loop whose types change from one iteration to the next.
  struct Loose {
    ir::Type type;
    ir::Tensor tensor;
    Object object;
    ir::TensorView view;
  };

  Frame(std::shared_ptr<const plan::Plan> plan, Frame* parent, ExecContext& context)
      : plan_(std::move(plan)), parent_(parent), context_(context) {}
  Status run_plan();
  Status set_up();
  Status set_up_devices();
  Status set_up_transfer(const plan::Step& step, StepData& data);
  bool is_upload(const plan::Step& transfer) const;
  Status compile_regions();
  Status compile_region(size_t r);
  kernel::BufferView buffer_view(int place) const;
  void fill(StepData& data, const plan::Step& step);
  void set_external(int place, void* data);
  void import_values();
  void find_teams();
  void find_placeable();
  /// Keeps a view of the place where its root is, if that moves.
  void follow_root(const plan::Place& place, ir::TensorView* view);
  bool is_placeable(int root) const { return placeable_[static_cast<size_t>(root)]; }
  void* object_data(const ir::Type& type, Object& object);
  Status run_steps();
  Status run_step(size_t s);
  Status run_timed(size_t s);
  Status compute(size_t s);
  /// For the trace that is being written (frame_trace.cpp).
  void record_begin(size_t s, int64_t at);
  void record_end(size_t s, int64_t from, int64_t to);
  void record_region(size_t r, int64_t to);
  const trace::Label* label_of(size_t s);
  const trace::Label* region_label(size_t r);
  void run_transfer(const plan::Step& step, StepData& data);
  /// Waits for what an error left running.
  void wait_for_regions();
  Status run_kernel(const plan::Step& step, StepData& data);
  /// Lists lie outside of the arena; each may grow to the memory budget.
  Status check_lists(const plan::Step& step, const StepData& data) const;
  /// Runs the frame of a block of `step`, whose errors name the operation.
  Status run_block(const plan::Step& step, Frame& block);
  /// Runs a loop's condition after this many iterations; false: the loop ends. Fails beyond the limit of iterations.
  Result<bool> goes_on(const plan::Step& step, Frame& test, int64_t iterations);
  Status run_cond(const plan::Step& step, StepData& data);
  Status run_loop(const plan::Step& step, StepData& data);
  Status run_loose_loop();
  Status run_pending();
  Result<Frame*> child(const std::shared_ptr<const plan::Plan>& plan);
  Result<Frame*> branch(const plan::Step& step, size_t block, const std::vector<ir::Type>& types);
  static void copy_value(const ir::Type& type, const ir::TensorView& from, const ir::TensorView& to);
  Error locate(Error e, const plan::Step& step) const;

  std::shared_ptr<const plan::Plan> plan_;
  Frame* parent_;
  ExecContext& context_;
  std::shared_ptr<std::byte> arena_;
  size_t charged_ = 0;
  std::vector<ir::TensorView> views_;
  std::vector<Object> objects_;
  std::vector<ir::RuntimeValue> constants_;  ///< lists and dictionaries
  std::vector<StepData> steps_;
  std::vector<std::shared_ptr<kernel::Buffer>> device_arenas_;    ///< parallel to Plan::device_arenas
  std::vector<std::unique_ptr<kernel::Submission>> submissions_;  ///< per region; freed before the arenas
  std::vector<bool> running_;                                     ///< per region
  std::vector<std::shared_ptr<kernel::Buffer>> states_;           ///< by block input, of states on devices
  std::vector<kernel::Pixels> pixels_;                            ///< parallel to Plan::pixels
  bool has_submitted_ = false;
  std::vector<size_t> team_ends_;  ///< for a step whose team stays for others, the end of them; else 0
  StepData pending_;
  struct Patch {
    ir::TensorView* view;
    size_t delta;  ///< as Place::delta
  };
  std::vector<std::vector<Patch>> patches_;  ///< by root place, of memory that is not the frame's or need not be
  std::vector<bool> placeable_;              ///< root places whose memory is an output's alone
  std::vector<bool> placeable_outputs_;      ///< of several that have the same memory the first
  std::vector<std::unique_ptr<Frame>> children_;
  std::vector<Loose> loose_;
  std::vector<const trace::Label*> labels_;  ///< by step; made when it is first recorded
  std::vector<const trace::Label*> region_labels_;
  std::vector<int64_t> submitted_;  ///< recorded: when each region was
  std::vector<ir::Type> key_;
  Frame* last_ = this;
};

}  // namespace moka::runtime
