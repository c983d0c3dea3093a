// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernel/capture.h"
#include "kernel/kernel.h"

/// How values are copied to a device with its own memory, and how its work is compiled and started.
///
/// A device that computes in host memory (the CPU) needs none of this. Other devices return a `Memory` from
/// `Device::memory()` and a `Queue` from `Device::open_queue()`:
///
///     Memory     allocates buffers: the arena of a plan, constants, packed weights
///     Queue      runs submissions in order; every running prediction has its own
///     Region     steps of a plan that the device runs without the host between them
///     Submission a region compiled for the buffers of one frame, replayed by each prediction
///
/// A prediction copies each input of the region to `upload(i)`, calls `submit`, continues with work on the host, calls
/// `wait` before it needs a result, and copies the results from `download(i)`:
///
///     auto submission = MOKA_TRY(queue.compile(region));   // once for each frame
///     std::memcpy(submission->upload(0), input, bytes);    // for each prediction
///     MOKA_TRY(submission->submit());
///     MOKA_TRY(submission->wait());
///     std::memcpy(output, submission->download(0), bytes);
namespace moka::kernel {

/// A range of a device's memory. The last owner frees it; the device waits until no submission uses it.
class Buffer {
 public:
  explicit Buffer(size_t bytes) : bytes_(bytes) {}
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_;
};

/// The memory of a device. Thread-safe.
class Memory {
 public:
  virtual ~Memory() = default;
  /// Alignment in bytes of every value in a buffer: a power of two, at least 64.
  virtual size_t alignment() const = 0;
  /// Memory with undefined content. Errors: out_of_budget when the device has no room.
  virtual Result<std::shared_ptr<Buffer>> allocate(size_t bytes) const = 0;
  /// Copies `bytes` bytes of host memory to `offset` in `to`. Returns when `from` may be changed; submissions that
  /// start later see the copy.
  virtual Status write(Buffer& to, size_t offset, const void* from, size_t bytes) const = 0;
  /// Where the host reads the buffer itself, and may write it before a submission uses it. nullptr: by `write` and
  /// `read` only.
  virtual std::byte* host_address(const Buffer&) const { return nullptr; }
  /// The alignment in bytes of the address and the size of memory that `share` takes; 0: it takes none. A device that
  /// computes in the host's memory and has a value other than 0 reads and writes values of the host where they lie, in
  /// plans, too.
  virtual size_t share_alignment() const { return 0; }
  /// A buffer over `bytes` bytes of the host's memory, which it keeps. Errors: unsupported, if the driver does not take
  /// it.
  virtual Result<std::shared_ptr<Buffer>> share(std::shared_ptr<std::byte>, size_t) const {
    return fail(ErrorCode::unsupported, "a device with a memory of its own");
  }
  /// Copies `bytes` bytes at `offset` in `from` to host memory, once no submission is running. Returns when the copy is
  /// complete. Errors: device_lost.
  virtual Status read(const Buffer& from, size_t offset, void* to, size_t bytes) const = 0;
};

/// A tensor in a buffer.
struct BufferView {
  ir::DType dtype = ir::DType::none;
  ir::Shape shape;
  Layout layout;
  const Buffer* buffer = nullptr;
  size_t offset = 0;  ///< bytes
};

/// `KernelChoice::record` adds its work to a recorder. Each device has its own subclass.
class Recorder {
 public:
  virtual ~Recorder() = default;
};

/// The arguments of `KernelChoice::record`, when a region is compiled. The buffers outlive the submission.
struct RecordArgs {
  /// parallel to OpCall::all_args; buffer is null for inputs that only `prepare` reads
  std::span<const BufferView> in;
  std::span<const BufferView> out;
  BufferView scratch;                ///< KernelChoice::scratch bytes, aligned as Memory::alignment says
  const ir::OpCall* call = nullptr;  ///< null for layout conversions; its arguments have types but no data
};

/// One step of a region. If `call` is null, a conversion of in[0] to the layout of out[0].
struct RegionStep {
  const KernelChoice* choice = nullptr;
  const ir::OpCall* call = nullptr;
  std::vector<BufferView> in, out;
  BufferView scratch;
  /// epilogues that the kernel does not apply itself; applied to out[0] in place
  std::span<const ir::Epilogue> epilogue;
};

/// Steps in an order in which they can run.
struct Region {
  std::span<const RegionStep> steps;
  std::span<const BufferView> uploads;    ///< values that the host writes before the first step
  std::span<const BufferView> downloads;  ///< values that the host reads after the last step
  /// values that other regions read; values in none of these lists need not be written
  std::span<const BufferView> kept;
  /// The submission tells of its commands and measures them (Submission::commands, times, run_each).
  bool is_shown = false;
};

/// A compiled region. Used by one prediction at a time.
class Submission {
 public:
  /// Waits for the submission if it is running.
  virtual ~Submission() = default;
  /// Where the host writes upload `i` before `submit`. Dense, in the layout of Region::uploads.
  virtual std::byte* upload(size_t i) = 0;
  /// Where the host reads download `i` between `wait` and the next `submit`.
  virtual const std::byte* download(size_t i) const = 0;
  /// Starts the submission and returns without waiting. Submissions of one queue run in the order of their start.
  /// Errors: device_lost, out_of_budget.
  virtual Status submit() = 0;
  /// Returns when the submission is done. Errors: device_lost, and those of kernels that check values while they run.
  virtual Status wait() = 0;

  // For a region that was compiled with Region::is_shown.

  /// The commands in their order. A device that tells nothing has none.
  virtual std::vector<ShownCommand> commands() const { return {}; }
  /// After wait: when each command ran. From the end of the command before it to its own end, so the times of a
  /// submission add up. Empty: the queue has no timestamps.
  virtual std::vector<CommandTime> times() { return {}; }
  /// In the place of submit and wait: runs one command after the other. Calls `look` with its index before each, and
  /// again when it has run, perhaps on another thread. Memory::read may then read its buffers. Ends at the first error.
  /// A device that tells of no commands runs them all.
  virtual Status run_each(const std::function<Status(size_t command, bool has_run)>& look) {
    (void)look;
    if (Status s = submit(); !s.ok()) return s;
    return wait();
  }
};

/// Used by one prediction at a time, like the frames that compile for it.
class Queue {
 public:
  virtual ~Queue() = default;
  /// Compiles a region. Afterwards the caller may destroy `region`, but not its buffers and choices. Errors:
  /// out_of_budget, device_lost.
  virtual Result<std::unique_ptr<Submission>> compile(const Region& region) = 0;
  /// How its submissions measure commands; nullopt: they do not. Measures the overhead at the first call. Errors:
  /// device_lost, out_of_budget.
  virtual Result<std::optional<TimestampFacts>> timestamps() { return std::optional<TimestampFacts>(); }
};

}  // namespace moka::kernel
