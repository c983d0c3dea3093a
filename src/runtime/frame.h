// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "base/stop.h"
#include "ir/evaluate.h"
#include "kernel/memory.h"
#include "kernel/packed_frame.h"
#include "kernel/pixels.h"
#include "plan/plan.h"
#include "runtime/state_undo.h"
#include "trace/trace.h"

namespace moka::runtime {

/// Receives each step of the host when it ends, on the thread that predicts.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void step(const plan::Plan& plan, const plan::Step& step, double seconds,
                    std::span<const ir::TensorView> out) = 0;
  /// The prediction starts again, so the steps received so far do not count.
  virtual void restart() {}
};

class Frame;

/// A step of the host that has run, and the values that it read and wrote.
struct CapturedStep {
  const plan::Plan& plan;
  const plan::Step& step;
  double seconds;
  std::span<const ir::TensorView> in, out;
};
/// A region that is shown.
struct CapturedRegion {
  const Frame& frame;
  size_t region;
  kernel::Submission& submission;
  kernel::Queue& queue;
};
/// Receives what a prediction runs, on the thread that predicts unless it says otherwise.
class CaptureSink {
 public:
  virtual ~CaptureSink() = default;
  /// Before a step of the host, where commands run one by one; its seconds are 0.
  virtual Status before(const CapturedStep& step) = 0;
  virtual Status step(const CapturedStep& step) = 0;
  /// After the region has run, and not where commands run one by one.
  virtual Status region(const CapturedRegion& region) = 0;
  /// Whether devices run command by command.
  virtual bool wants_values() const = 0;
  /// Before a command and when it has run, perhaps on another thread.
  virtual Status command(const CapturedRegion& region, size_t command, bool has_run) = 0;
  /// The prediction starts again, so what was received so far does not count.
  virtual void restart() = 0;
};

/// State that the frames of one session share.
struct ExecContext {
  /// The session's queue of a device with a memory of its own, opened at the first call.
  Result<kernel::Queue*> queue(const kernel::Device& device);

  const plan::PlanOptions* options = nullptr;
  int64_t loop_limit = 1'000'000;  ///< iterations of one loop before it is an error
  ir::RandomSource random;
  TraceSink* trace = nullptr;
  bool is_recorded = false;  ///< whether the prediction goes into the trace that is being written
  CaptureSink* capture = nullptr;
  bool is_timed() const { return trace != nullptr || is_recorded || capture != nullptr; }
  /// Whether regions are compiled so that they tell of their commands.
  bool shows_commands() const { return capture != nullptr || (is_recorded && traces_commands()); }
  /// MOKA_TRACE_DISPATCHES=0 leaves the lane GPU out of traces.
  static bool traces_commands();
  const Stop* stop = nullptr;  ///< is checked before each step; may be null
  // Only for recorded predictions:
  const kernel::Device* stretch = nullptr;  ///< device of the steps that run now, outside of blocks
  int depth = 0;                            ///< nesting depth of blocks
  int64_t region_end = 0;                   ///< end of the last region that the frame waited for
  std::vector<std::pair<const kernel::Device*, std::unique_ptr<kernel::Queue>>> queues;
};

/// Runs one plan. A frame has the memory of the plan and the arguments of its kernels. run() allocates nothing, unless
/// the computation determines shapes. A frame belongs to one thread at a time.
///
///   auto frame = MOKA_TRY(Frame::make(plan, nullptr, context));
///   frame->set_input(0, x);
///   MOKA_TRY(frame->run());
///   const ir::TensorView& y = frame->output(0);
class Frame {
 public:
  /// `parent`: the frame of plan->parent. Errors: out_of_budget.
  static Result<std::unique_ptr<Frame>> make(std::shared_ptr<const plan::Plan> plan, Frame* parent,
                                             ExecContext& context);
  ~Frame();
  Frame(const Frame&) = delete;

  const plan::Plan& plan() const { return *plan_; }
  /// A place in the memory of a device.
  kernel::BufferView buffer_view(int place) const;
  /// Parallel to plan::Memory::devices.
  std::span<const std::shared_ptr<kernel::Buffer>> device_arenas() const { return device_arenas_; }
  /// The bytes of the arenas of this frame and of its blocks.
  size_t bytes() const;
  /// Points block input `i` at its data, dense and row-major, of the planned type. The frame only reads it.
  void set_input(size_t i, const void* data) {
    // Views of what kernels read and of what they write have one type.
    set_external(sequence_.inputs[i], const_cast<void*>(data));
  }
  /// The same for a state, which the frame changes.
  void set_state(size_t i, void* data) { set_external(sequence_.inputs[i], data); }
  /// The device in whose memory the plan keeps block input `i`, a state; nullptr: in the host's.
  const kernel::Device* device_of_input(size_t i) const;
  /// The buffer of a state that a device keeps. If the frame did not have this buffer before, the next run compiles the
  /// regions again.
  void set_state(size_t i, std::shared_ptr<kernel::Buffer> buffer);
  /// Whether a device unpacks the pixels of block input `i`, which set_pixels gives.
  bool takes_pixels(size_t i) const;
  /// Whether such an input also needs set_input.
  bool takes_planes(size_t i) const;
  /// The picture has the planned size, and its pixels stay valid until run ends.
  void set_pixels(size_t i, const kernel::Pixels& pixels);
  /// Room for a packed frame in place of the pixels, in bytes; 0: the device takes none.
  size_t frame_room(size_t i) const;
  /// Instead of set_pixels, where there is room for it.
  void set_frame(size_t i, const kernel::FramePicture& frame);
  /// A state in the memory of a device has no copy: once a region has been submitted, the run goes on to its end.
  void keep_running_once_submitted() { keeps_running_ = true; }
  /// Whether runs save what they overwrite of states in host memory, for restore_states. Precondition:
  /// has_straight_steps().
  void set_saves_states(bool saves) { saves_states_ = saves; }
  bool saves_states() const { return saves_states_; }
  void restore_states() { undo_.restore(); }
  /// Whether all steps are known before they run, and none has blocks.
  bool has_straight_steps() const;
  /// Whether the last run has started anything on a device.
  bool has_submitted() const { return has_submitted_; }
  /// The type and shape of block output `i` if the caller may choose its memory (place_output). Null if another value
  /// shares its memory, or if they are unknown before run().
  const ir::TensorView* placeable_output(size_t i) const;
  /// From now on, computes such an output at `data`, dense and row-major; null: in the frame's own memory.
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
    plan::Scratch scratch;
    size_t bytes = 0;  ///< of a value that crosses between memories
    int pixels = -1;   ///< of an upload of a picture: its index in Sequence::pixels
  };
  /// A value of a loop whose types change from one iteration to the next.
  struct LoopValue {
    ir::Type type;
    ir::Tensor tensor;
    Object object;
    ir::TensorView view;
  };

  Frame(std::shared_ptr<const plan::Plan> plan, Frame* parent, ExecContext& context)
      : plan_(std::move(plan)), sequence_(plan_->sequence), parent_(parent), context_(context) {}
  Status run_plan();
  Status set_up();
  Status set_up_devices();
  void show_commands(bool shows);
  Status compile_regions();
  Status compile_region(size_t r);
  kernel::RegionStep region_step(const plan::Region& region, const plan::Run& step, const StepData& data) const;
  /// What other regions and later predictions read of what the region computes.
  std::vector<kernel::BufferView> kept_by(const plan::Region& region) const;
  void fill(StepData& data, std::span<const int> in, std::span<const int> out, const plan::Call* call);
  void set_external(int place, void* data);
  void import_values();
  void find_teams();
  void find_placeable();
  /// Updates the view of a place whenever the memory of its root place changes.
  void follow_root(const plan::Place& place, ir::TensorView* view);
  bool is_placeable(int root) const { return placeable_[static_cast<size_t>(root)]; }
  void* object_data(const ir::Type& type, Object& object);
  Status run_steps();
  Status run_step(size_t s);
  Status check_stop();
  /// Before a step changes states.
  void save_states_before(size_t s);
  Status run_timed(size_t s);
  Status compute(size_t s);
  /// For a capture (frame_capture.cpp).
  Result<CapturedRegion> captured(size_t r) const;
  Status capture_before(size_t s);
  Status capture_step(size_t s, double seconds);
  Status run_command_by_command(size_t r);
  /// For the trace that is being written (frame_trace.cpp).
  void record_begin(size_t s, int64_t at);
  void record_end(size_t s, int64_t from, int64_t to);
  void record_region(size_t r, int64_t to);
  void record_commands(size_t r, trace::DeviceId device);
  const trace::Label* label_of(size_t s);
  const trace::Label* region_label(size_t r);
  Status execute(const plan::Run& step, StepData& data);
  Status execute(const plan::Placed&, StepData&) { return {}; }
  Status execute(const plan::Convert& step, StepData& data);
  Status execute(const plan::Cond& step, StepData& data);
  Status execute(const plan::Loop& step, StepData& data);
  Status execute(const plan::Upload& step, StepData& data);
  Status execute(const plan::Launch& step, StepData& data);
  Status execute(const plan::Wait& step, StepData& data);
  Status execute(const plan::Download& step, StepData& data);
  Status execute(const plan::Transfer& step, StepData& data);
  /// Where a submission takes an upload or gives a download.
  std::byte* upload_at(const plan::Slot& upload) const;
  /// Finds the crossings whose memory host and device may share (frame_shared.cpp).
  void find_crossings();
  /// Where the value of a crossing lies in memory that its device shares; no buffer: it is copied.
  struct Bound {
    std::shared_ptr<const kernel::Buffer> buffer;
    size_t offset = 0;
    bool operator==(const Bound&) const = default;
  };
  struct Crossing {
    size_t step = 0;  ///< an upload or a download
    const kernel::Device* device = nullptr;
    size_t bytes = 0;
    bool is_upload = false;
    std::vector<std::pair<int, size_t>> places;  ///< of the device, which lie in the value's memory, and where
  };
  /// Regions compiled for the memory of some crossings.
  struct Compiled {
    std::vector<Bound> bound;  ///< parallel to crossings_; empty: all are copied
    std::vector<std::unique_ptr<kernel::Submission>> submissions;
  };
  /// Memory of the host as a buffer of a device.
  struct Shared {
    const kernel::Device* device;
    std::weak_ptr<const void> memory;  ///< what was found; the arena for memory of the frame
    std::byte* first;
    size_t bytes;
    std::shared_ptr<kernel::Buffer> buffer;  ///< nullptr: the driver does not take it
  };
  /// Compiles the regions for the memory of this run, or takes those that were compiled for it before.
  Status bind_crossings();
  /// Whether step `s` has copied nothing, because host and device share the value's memory.
  bool is_shared(size_t s) const;
  Bound bound_of(const Crossing& crossing);
  const Shared* shared_of(const kernel::Device& device, const std::byte* data, size_t bytes);
  const std::byte* result_at(const plan::Slot& download) const;
  /// After an error, waits for the regions that still run.
  void wait_for_regions();
  /// Lists lie outside of the arena; each may grow to the memory budget.
  Status check_lists(const plan::Call& step, const StepData& data) const;
  /// Runs the frame of a block of `step`, whose errors name the operation.
  Status run_block(const plan::Control& step, Frame& block);
  /// Runs a loop's condition after `iterations` iterations. False: the loop ends. Fails beyond the limit of iterations.
  Result<bool> continues(const plan::Loop& step, Frame& test, int64_t iterations);
  Status run_growing_loop(const plan::Loop& step);
  Status run_pending();
  /// The types of the outputs of `step`, from the values of its inputs.
  Result<std::vector<ir::Type>> infer_pending(const plan::Infer& step) const;
  Result<Frame*> child(const std::shared_ptr<const plan::Plan>& plan);
  /// The frame of a block of `step`. `own_outputs`: see plan_block.
  Result<Frame*> branch(const plan::Control& step, size_t block, bool own_outputs, const std::vector<ir::Type>& types);
  static void copy_value(const ir::Type& type, const ir::TensorView& from, const ir::TensorView& to);
  Error locate(Error e, const plan::Call& step) const;

  std::shared_ptr<const plan::Plan> plan_;
  const plan::Sequence& sequence_;
  Frame* parent_;
  ExecContext& context_;
  std::shared_ptr<std::byte> arena_;
  size_t arena_bytes_ = 0;
  size_t charged_ = 0;
  std::vector<ir::TensorView> views_;
  std::vector<Object> objects_;
  std::vector<ir::RuntimeValue> constants_;                     ///< lists and dictionaries
  std::vector<StepData> steps_;                                 ///< of the host
  std::vector<std::vector<StepData>> region_steps_;             ///< of each region
  std::vector<std::shared_ptr<kernel::Buffer>> device_arenas_;  ///< parallel to Memory::devices
  std::vector<Shared> shared_;
  std::vector<Crossing> crossings_;
  std::vector<Bound> bound_;         ///< as Compiled::bound, of submissions_
  std::vector<Bound> bound_places_;  ///< by place, where a crossing has bound it; empty: none
  std::vector<Compiled> compiled_;   ///< for other memory, the last used first
  std::vector<std::unique_ptr<kernel::Submission>> submissions_;            ///< per region; freed before the arenas
  std::vector<bool> running_;                                               ///< per region
  std::vector<std::shared_ptr<kernel::Buffer>> states_;                     ///< by block input, of states on devices
  std::vector<std::variant<kernel::Pixels, kernel::FramePicture>> pixels_;  ///< parallel to Sequence::pixels
  bool has_submitted_ = false, keeps_running_ = false, saves_states_ = false;
  bool is_shown_ = false;  ///< the regions are compiled so that they tell of their commands
  StateUndo undo_;
  std::vector<size_t> team_ends_;  ///< by step: end of the steps that reuse the threads of this step, or 0
  StepData pending_;
  struct Patch {
    ir::TensorView* view;
    size_t delta;  ///< as Place::delta
  };
  std::vector<std::vector<Patch>> patches_;  ///< by root place, if its memory may belong to others than the frame
  std::vector<bool> placeable_;              ///< root places whose memory only outputs use
  std::vector<bool> placeable_outputs_;      ///< if several outputs share memory, only the first
  std::vector<std::unique_ptr<Frame>> children_;
  std::vector<LoopValue> loop_values_;
  std::vector<const trace::Label*> labels_;  ///< by step; made when the step is first recorded
  std::vector<const trace::Label*> region_labels_;
  std::vector<std::vector<const trace::Label*>> command_labels_;  ///< by region
  std::vector<int64_t> submitted_;  ///< for recorded predictions: when each region was submitted
  std::vector<ir::Type> key_;
  Frame* last_ = this;
};

}  // namespace moka::runtime
