#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/op_def.h"
#include "ir/program.h"
#include "kernel/stored.h"

/// The contract between the planner and the devices.
namespace moka::kernel {

/// The physical order of a tensor's elements. Row-major is the order of the logical shape; channels_last moves axis 1
/// behind the last axis; channel_blocked splits axis 1 into groups of `block` channels that become the innermost axis
/// (the last group padded with zeros). Both need rank >= 3. With `half`, elements of type fp32 are stored as float16.
struct Layout {
  enum class Kind : uint8_t { row_major, channels_last, channel_blocked };
  Kind kind = Kind::row_major;
  uint8_t block = 0;
  bool half = false;

  bool is_row_major() const { return kind == Kind::row_major && !half; }
  bool operator==(const Layout&) const = default;
  auto operator<=>(const Layout&) const = default;
  static Layout channels_last() { return {Kind::channels_last, 0}; }
  static Layout blocked(uint8_t block) { return {Kind::channel_blocked, block}; }
  Layout as_half() const { return {kind, block, true}; }
};
/// "row_major", "channels_last", "blocked16", "blocked4 fp16".
std::string to_string(Layout layout);
/// Bytes of a tensor of a byte-sized dtype in `layout`.
Result<size_t> storage_bytes(ir::DType dtype, const ir::Shape& shape, Layout layout);

class Buffer;
class Memory;
class Queue;
class Recorder;
struct RecordArgs;

/// What a kernel is given at run time. Shapes are logical; data is in the layouts that its choice asked for.
struct KernelArgs {
  std::span<const ir::TensorView> in;  ///< parallel to OpCall::all_args; data null where the choice took it in prepare
  std::span<const ir::TensorView> out;
  std::byte* scratch = nullptr;          ///< KernelChoice::scratch bytes, 64-byte aligned
  const ir::OpCall* call = nullptr;      ///< for kernels that look values up by name
  int64_t begin = 0, end = 0;            ///< range of tiles
  int thread = 0;                        ///< below MatchCall::threads; concurrent calls have different numbers
  std::byte* threads_scratch = nullptr;  ///< of thread 0, 64-byte aligned
  size_t thread_step = 0;                ///< bytes to the next thread's

  /// KernelChoice::thread_scratch bytes of that thread.
  std::byte* own(int of) const { return threads_scratch + static_cast<size_t>(of) * thread_step; }
  template <class T>
  T* own() const {
    return reinterpret_cast<T*>(own(thread));
  }
};

/// Constants of an operation while its kernel is prepared, once per plan.
class PrepareContext {
 public:
  virtual ~PrepareContext() = default;
  /// The value of a constant input (index in all_args), row-major, expanded if it was compressed. Kept until the end of
  /// `prepare` only, unless the kernel also reads it at run time.
  virtual Result<ir::TensorView> constant(int arg) = 0;
  /// Packed bytes shared by all plans of a model: `fill` runs once for each (input, key).
  virtual Result<std::shared_ptr<const std::byte>> pack(
      int arg, std::string_view key, size_t bytes,
      const std::function<Status(const ir::TensorView& value, std::byte* to)>& fill) = 0;
  /// As pack, for bytes made from MatchCall::stored: the value is not expanded.
  virtual Result<std::shared_ptr<const std::byte>> pack_stored(int arg, std::string_view key, size_t bytes,
                                                               const std::function<Status(std::byte* to)>& fill) = 0;
  /// As pack, but in the device's memory. `fill` writes host memory that is freed once it is uploaded.
  virtual Result<std::shared_ptr<const Buffer>> upload(
      int arg, std::string_view key, size_t bytes,
      const std::function<Status(const ir::TensorView& value, std::byte* to)>& fill);
  /// As pack_stored, but in the device's memory.
  virtual Result<std::shared_ptr<const Buffer>> upload_stored(int arg, std::string_view key, size_t bytes,
                                                              const std::function<Status(std::byte* to)>& fill);
};

/// An input and an output, one of which is a contiguous part of the other's bytes in the layouts asked for.
struct Part {
  int in, out;
  size_t offset;  ///< bytes
};

/// A kernel that can run one operation, with everything that the planner needs to know about it.
struct KernelChoice {
  std::string_view kernel;            ///< "cpu.conv.onednn"; static storage
  std::string note;                   ///< detail for the user, e.g. the name of the implementation
  std::vector<Layout> in;             ///< per input in all_args; empty: all row-major
  std::vector<Layout> out;            ///< per output; empty: all row-major
  std::vector<bool> in_prepare_only;  ///< inputs that only `prepare` reads; empty: none
  size_t scratch = 0;                 ///< bytes
  size_t thread_scratch = 0;          ///< bytes for each of MatchCall::threads
  double cost = 0;                    ///< estimated seconds
  int in_place = -1;  ///< input whose storage output 0 may take over, unless another input shares it (same bytes,
                      ///< same element order of access); or a list that becomes output 0
  /// Inputs that are parts of output 0 (concat). The planner may place such an input inside the output's memory; then
  /// the kernel has nothing to copy for it.
  std::vector<Part> joins;
  std::vector<Part> cuts;            ///< outputs that are parts of an input (split); all of them or none
  int64_t tiles = 1;                 ///< run may be called for disjoint ranges of [0, tiles) at the same time
  bool internally_parallel = false;  ///< run is called once with the whole range and divides it with parallel.h
  size_t epilogues = 0;              ///< how many of Op::epilogue it applies itself, from the first
  std::function<Status(PrepareContext&)> prepare;  ///< optional, once, before the first run
  /// Const, reentrant: called by many sessions at once. Must not allocate, log or start threads.
  std::function<Status(const KernelArgs&)> run;
  /// Instead of `run`, for devices with a memory of their own: adds the work to the region that is being compiled.
  std::function<Status(Recorder&, const RecordArgs&)> record;
};

/// An operation with concrete types and known constants, as a kernel's `match` sees it.
struct MatchCall {
  const ir::OpCall& call;
  std::span<const ir::Type> outputs;
  std::span<const Layout> layouts;  ///< in which each input of all_args arrives unless converted
  std::span<const ir::Epilogue> epilogue;
  int threads = 1;
  /// Every reader of the results is a reshape or a transpose, or the block returns them. None of these gains from
  /// another layout than row-major.
  bool reshaped = false;
  /// The caller wants this kernel: it refuses only what it cannot run, not what other kernels run faster.
  bool asked = false;
  bool is_constant(std::string_view param) const {
    return call.has(param) && constant_args[static_cast<size_t>(call.arg_index(param))];
  }
  std::span<const bool> constant_args;  ///< per input: known before running (its value may need expansion: use prepare)
  /// How the file stores a constant input (index in all_args); nullopt when a StoredConstant cannot describe it.
  std::optional<StoredConstant> stored(int arg) const { return stored_of ? stored_of(arg) : std::nullopt; }
  std::function<std::optional<StoredConstant>(int arg)> stored_of;
  /// What is known about the values of an input that is not constant.
  std::optional<QuantizedActivation> quantized_activation(int arg) const {
    return quantized_activation_of ? quantized_activation_of(arg) : std::nullopt;
  }
  std::function<std::optional<QuantizedActivation>(int arg)> quantized_activation_of;
  /// The program computes output `i` in float16: a device may store it so (Layout::half) and compute so.
  bool may_be_half(size_t i) const { return i < half.size() && half[i]; }
  std::vector<bool> half;  ///< per output
};

/// A runnable choice, or why not: a short noun phrase such as "dilation along 3 axes".
struct Match {
  std::unique_ptr<KernelChoice> choice;
  std::string refusal;

  static Match no(std::string reason) { return {nullptr, std::move(reason)}; }
  static Match yes(KernelChoice c) { return {std::make_unique<KernelChoice>(std::move(c)), {}}; }
};

/// One way of a device to run some operations.
struct KernelDef {
  std::string_view name;
  std::vector<std::string_view> ops;  ///< operations it may match; empty: all
  Match (*match)(const MatchCall&);
  bool addend = false;    ///< handles OpCall::has_addend; other kernels are not asked when there is an addend
  bool measured = false;  ///< competes by measured time with the other kernels that set this

  bool runs(std::string_view op) const;
  /// `match`, or a refusal when there is an addend that the kernel does not handle.
  Match claim(const MatchCall& call) const;
};

/// The compute units that a ModelConfiguration may allow.
enum class ComputeUnit : uint8_t { cpu, gpu, neural_engine };

/// A device: an ordered list of kernels, best first.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;    ///< "cpu", "reference"
  virtual std::string description() const = 0;  ///< the hardware, for people
  /// Everything besides the kernels' sources that measured times depend on: the exact hardware, the features of it that
  /// are used, and the libraries.
  virtual std::string identity() const { return {}; }
  virtual ComputeUnit unit() const = 0;
  /// The order in which devices are asked, lowest first; negative: only when named. `reference` is last.
  virtual int rank() const = 0;
  virtual std::span<const KernelDef> kernels() const = 0;
  /// The first match in `kernels`; else all refusals, "kernel: reason; kernel, kernel: reason".
  virtual Match claim(const MatchCall& call) const;

  /// The memory that its kernels compute in (kernel/memory.h); nullptr: the host's.
  virtual const Memory* memory() const { return nullptr; }
  /// For a device with a memory of its own. Errors: device_lost, out_of_budget.
  virtual Result<std::unique_ptr<Queue>> open_queue() const;
  /// A conversion within its memory; a refusal makes the host convert, before the upload or after the download.
  virtual Match convert(ir::DType, const ir::Shape&, Layout, Layout) const { return Match::no("no conversions"); }
  /// Whether it applies an epilogue that a kernel leaves (RegionStep::epilogue).
  virtual bool applies(const ir::Epilogue&) const { return false; }
};

/// Identifies this build of the kernels: their sources, the compiler and its options.
std::string_view build();

}  // namespace moka::kernel
