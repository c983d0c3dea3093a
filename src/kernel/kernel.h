// SPDX-License-Identifier: Apache-2.0
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
#include "kernel/facts.h"
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
class Device;
class Memory;
class Queue;
class Recorder;
struct RecordArgs;

/// A kernel's arguments at run time. Shapes are logical; data is in the layouts that the kernel's choice asked for.
struct KernelArgs {
  /// parallel to OpCall::all_args; data is null for inputs that only `prepare` reads
  std::span<const ir::TensorView> in;
  std::span<const ir::TensorView> out;
  std::byte* scratch = nullptr;          ///< KernelChoice::scratch bytes, 64-byte aligned
  const ir::OpCall* call = nullptr;      ///< for kernels that look values up by name
  int64_t begin = 0, end = 0;            ///< range of tiles
  int thread = 0;                        ///< below MatchCall::threads; concurrent calls have different numbers
  std::byte* threads_scratch = nullptr;  ///< scratch of thread 0, 64-byte aligned
  size_t thread_step = 0;                ///< bytes from one thread's scratch to the next

  /// Scratch of thread `of`, KernelChoice::thread_scratch bytes.
  std::byte* own(int of) const { return threads_scratch + static_cast<size_t>(of) * thread_step; }
  template <class T>
  T* own() const {
    return reinterpret_cast<T*>(own(thread));
  }
};

/// Gives a kernel its constants while it is prepared, once per plan.
class PrepareContext {
 public:
  virtual ~PrepareContext() = default;
  /// The value of a constant input (index in all_args), row-major and expanded if it was compressed. Valid until
  /// `prepare` returns, and longer if the kernel also reads it at run time.
  virtual Result<ir::TensorView> constant(int arg) = 0;
  /// Packed bytes shared by all plans of a model: `fill` runs once for each (input, key).
  virtual Result<std::shared_ptr<const std::byte>> pack(
      int arg, std::string_view key, size_t bytes,
      const std::function<Status(const ir::TensorView& value, std::byte* to)>& fill) = 0;
  /// As pack, for bytes made from MatchCall::stored. The value is not expanded.
  virtual Result<std::shared_ptr<const std::byte>> pack_stored(int arg, std::string_view key, size_t bytes,
                                                               const std::function<Status(std::byte* to)>& fill) = 0;
  /// As pack, but in the device's memory. `fill` writes to host memory, which is freed after the upload.
  virtual Result<std::shared_ptr<const Buffer>> upload(
      int arg, std::string_view key, size_t bytes,
      const std::function<Status(const ir::TensorView& value, std::byte* to)>& fill);
  /// As pack_stored, but in the device's memory.
  virtual Result<std::shared_ptr<const Buffer>> upload_stored(int arg, std::string_view key, size_t bytes,
                                                              const std::function<Status(std::byte* to)>& fill);
};

/// An input and an output where one is a contiguous part of the other's bytes in the requested layouts.
struct Part {
  int in, out;
  size_t offset;  ///< bytes
};

/// What `prepare` made of a constant input.
struct PackedInput {
  int arg = 0;       ///< index in all_args
  std::string form;  ///< the key: names the order of the bytes
  size_t bytes = 0;
  const Buffer* buffer = nullptr;  ///< on a device; lives as long as the choice
};

/// A kernel that can run one operation, and what the planner needs to know about it.
struct KernelChoice {
  std::string_view kernel;            ///< "cpu.conv.onednn"; static storage
  std::string note;                   ///< detail for the user, e.g. the name of the implementation
  std::vector<Layout> in;             ///< per input in all_args; empty: all row-major
  std::vector<Layout> out;            ///< per output; empty: all row-major
  std::vector<bool> in_prepare_only;  ///< inputs that only `prepare` reads; empty: none
  size_t scratch = 0;                 ///< bytes
  size_t thread_scratch = 0;          ///< bytes for each of MatchCall::threads
  double cost = 0;                    ///< estimated seconds
  /// Input whose storage output 0 may take over, unless another input shares that storage. The kernel must access both
  /// in the same order, with the same number of bytes; or the input is a list that becomes output 0.
  int in_place = -1;
  /// For each output the input whose elements it may overwrite in the same order; -1: none. Empty: in_place says it.
  std::vector<int> updates;
  /// Inputs that are parts of output 0 (concat). The planner may place such an input inside the output's memory, so
  /// that the kernel has nothing to copy.
  std::vector<Part> joins;
  std::vector<Part> cuts;  ///< outputs that are parts of an input (split); all of them or none
  /// number of tiles; run may be called for disjoint ranges of [0, tiles) at the same time
  int64_t tiles = 1;
  bool internally_parallel = false;  ///< run is called once with all tiles and divides them with parallel.h
  size_t epilogues = 0;              ///< how many of Op::epilogue the kernel applies itself, from the first
  /// Optional; called once, before the first run unless there is `unpacked`.
  std::function<Status(PrepareContext&)> prepare;
  /// The weights in the model's file, if `run` reads them there until `prepare` has packed them. It gives the same bits
  /// but takes longer. Another thread may be in `prepare` meanwhile. Empty handle: `prepare` comes first.
  ir::Tensor unpacked;
  /// Reentrant: many sessions call it at once. Must not allocate, log or start threads.
  std::function<Status(const KernelArgs&)> run;
  /// Replaces `run` for devices with their own memory: adds the work to the region being compiled.
  std::function<Status(Recorder&, const RecordArgs&)> record;
  /// Optional: how it computes, such as the sizes of its tiles and how it divides the work. Called only when someone
  /// looks.
  std::function<void(Facts&)> facts;
  std::vector<PackedInput> packed;  ///< set by the planner
};

/// The size of what is planned together.
struct ProgramFacts {
  int64_t operations = 0;    ///< without constants
  double multiply_adds = 0;  ///< of convolutions, linear layers, matrix products and attention
  double parameters = 0;     ///< elements of constants
};

/// An operation with concrete types and known constants, as a kernel's `match` sees it.
struct MatchCall {
  const ir::OpCall& call;
  std::span<const ir::Type> outputs;
  std::span<const Layout> layouts;  ///< layout in which each input of all_args arrives unless the planner converts it
  std::span<const ir::Epilogue> epilogue;
  const Device* device = nullptr;  ///< which is asked; Device::claim sets it
  int threads = 1;
  /// Every reader of the results is a reshape, a transpose or a block output. Only a row-major layout helps these
  /// readers.
  bool reshaped = false;
  /// The caller wants this kernel. It refuses only calls that it cannot run, not calls that other kernels run faster.
  bool asked = false;
  bool is_constant(std::string_view param) const {
    return call.has(param) && constant_args[static_cast<size_t>(call.arg_index(param))];
  }
  /// Inputs change before every run (PlanOptions::renewable), so that what is packed of them is packed as often.
  bool is_renewed = false;
  std::span<const bool> constant_args;  ///< per input: known before running; the value may need expansion in `prepare`
  /// How the file stores a constant input (index in all_args); nullopt when a StoredConstant cannot describe it.
  std::optional<StoredConstant> stored_in_any_format(int arg) const {
    return stored_of ? stored_of(arg) : std::nullopt;
  }
  /// The same, for kernels that do not read StoredConstant::in_network_format.
  std::optional<StoredConstant> stored(int arg) const {
    auto s = stored_in_any_format(arg);
    return s && !s->in_network_format ? std::move(s) : std::nullopt;
  }
  std::function<std::optional<StoredConstant>(int arg)> stored_of;
  /// What is known about the values of an input that is not constant.
  std::optional<QuantizedActivation> quantized_activation(int arg) const {
    return quantized_activation_of ? quantized_activation_of(arg) : std::nullopt;
  }
  std::function<std::optional<QuantizedActivation>(int arg)> quantized_activation_of;
  /// The program computes output `i` in float16, so a device may store it (Layout::half) and compute it in float16.
  bool may_be_half(size_t i) const { return i < half.size() && half[i]; }
  std::vector<bool> half;                 ///< per output
  const ProgramFacts* program = nullptr;  ///< known only to devices that are asked for bids; null otherwise
};

/// What helps against a refusal, who says that there is one, and the name of the rule. Empty where no documented rule
/// refuses.
struct Advice {
  std::string remedy, source, rule;
  std::string doubt;  ///< why the system would probably prefer another device, although this one takes the operation
};

/// A runnable choice, or the reason for a refusal: a short noun phrase such as "dilation along 3 axes".
struct Match {
  std::unique_ptr<KernelChoice> choice;
  std::string refusal;
  Advice advice;

  static Match no(std::string reason, Advice advice = {}) { return {nullptr, std::move(reason), std::move(advice)}; }
  static Match yes(KernelChoice c) { return {std::make_unique<KernelChoice>(std::move(c)), {}, {}}; }
};

/// One implementation that a device has for some operations.
struct KernelDef {
  std::string_view name;
  std::vector<std::string_view> ops;  ///< operations it may match; empty: all
  Match (*match)(const MatchCall&);
  bool addend = false;    ///< handles OpCall::has_addend; kernels without this are not asked when there is an addend
  bool measured = false;  ///< competes by measured time with the other kernels that set this field
  /// Keeps weights as the file stores them. PlanOptions::low_memory asks such kernels first. Otherwise only a pin does.
  bool low_memory = false;

  bool runs(std::string_view op) const;
  /// Calls `match` for MatchCall::device. Refuses an addend that the kernel does not handle, and everything if the
  /// kernel has `low_memory` and is not asked for.
  Match claim(const MatchCall& call) const;
};

/// What the planes of an image input hold, in their order.
enum class PlaneOrder : uint8_t { gray, rgb, bgr };

/// Identifies this build of the kernels: their sources, the compiler and its options.
std::string_view build();

}  // namespace moka::kernel
