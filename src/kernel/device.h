// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"

/// What a device is. Every function beyond the first five has a default: a device that computes in host memory, has no
/// hardware of its own and keeps nothing between processes.
namespace moka::kernel {

/// The compute units that a ModelConfiguration may allow.
enum class ComputeUnit : uint8_t { cpu, gpu, neural_engine };
/// "cpu", "gpu", "neuralEngine".
std::string_view name_of(ComputeUnit unit);

/// A device: an ordered list of kernels, best first.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;    ///< "cpu", "reference"; of several of one kind "vulkan", "vulkan1"
  virtual std::string description() const = 0;  ///< the hardware, for users
  virtual ComputeUnit unit() const = 0;         ///< the unit that asks for the device
  /// Devices are asked in ascending order of rank. A negative rank: only when the user names the device. `reference` is
  /// last.
  virtual int rank() const = 0;
  virtual std::span<const KernelDef> kernels() const = 0;
  /// The first match in `kernels`, or all refusals as "kernel: reason; kernel, kernel: reason". Asks for this device,
  /// whatever MatchCall::device is.
  virtual Match claim(const MatchCall& call) const;

  // What the device is on this machine.

  /// Everything besides the kernels' sources that measured times depend on: the exact hardware, its features in use,
  /// and the libraries.
  virtual std::string identity() const { return {}; }
  /// Everything that packed weights depend on besides kernels and keys: instruction sets, versions of libraries. The
  /// packed weights serve all machines where it is the same.
  virtual std::string packing() const { return identity(); }
  /// Why the compute unit "all" skips this device on this machine, e.g. "no GPU under /dev"; empty: "all" includes it.
  /// Loads no driver if there is no hardware. Not asked of the CPU.
  virtual std::string named_only() const { return "no hardware of its own"; }
  /// "pixels is a software driver, which computes on the CPU" if the machine has no better one; otherwise empty. No
  /// compute unit includes such a device, and plans that name it count it to the CPU. Loads the driver.
  virtual std::string software() const { return {}; }
  bool is_software() const { return !software().empty(); }
  /// Whether it computes in float16 alone, so that programs without types become float16.
  virtual bool is_half_only() const { return false; }
  /// Further devices of the same driver, such as the other cards of the machine, best first. They live as long as the
  /// process, are of negative rank and have none of their own. Loads the driver, which the list of all devices does
  /// not.
  virtual std::vector<const Device*> others() const { return {}; }
  /// Whether it computes for the host: the CPU with whatever kernels.
  bool is_host() const { return memory() == nullptr && unit() == ComputeUnit::cpu; }
  /// The name of the unit that computes what the device does: "cpu" for software.
  std::string_view unit_name() const { return name_of(is_software() ? ComputeUnit::cpu : unit()); }

  // Devices with their own memory (kernel/memory.h).

  /// nullptr: it computes in host memory.
  virtual const Memory* memory() const { return nullptr; }
  /// Errors: device_lost, out_of_budget.
  virtual Result<std::unique_ptr<Queue>> open_queue() const;
  /// A layout conversion in the device's memory. If it refuses, the host converts before the upload or after the
  /// download.
  virtual Match convert(ir::DType, const ir::Shape&, Layout, Layout) const { return Match::no("no conversions"); }
  /// Turns a packed picture (kernel/pixels.h) into planes of type `to` in the device's memory. If it refuses, the host
  /// does.
  virtual Match unpack(PlaneOrder, const ir::Type&) const { return Match::no("no pictures"); }
  /// Whether `unpack` also takes packed frames (kernel/packed_frame.h).
  virtual bool takes_frames() const { return false; }
  /// Whether the device applies an epilogue that a kernel does not apply itself (RegionStep::epilogue).
  virtual bool applies(const ir::Epilogue&) const { return false; }
  /// Whether the device may compute `first` only while `reader`, the one reader of its result, runs. The inputs of
  /// `first` are then kept until `reader` is done.
  virtual bool may_join(const KernelChoice& first, const KernelChoice& reader) const;

  // Devices that compile kernels at run time and can save the compiled code. Thread-safe.

  /// Loads code that earlier processes compiled, once per folder. Ignores a file that is damaged or from another
  /// driver.
  virtual Status read_code(const std::string& folder) const;
  /// Saves the code compiled since the last read or write. Error io.
  virtual Status write_code(const std::string& folder) const;

  // Devices that simulate absent hardware: rules say what that hardware would run, and the host's devices compute it
  // with the hardware's precision.

  virtual bool is_preview() const { return false; }
  /// A copy of the preview with additional rules, given as text. `hosts` compute its operations and are asked in order.
  /// Errors: malformed, with the line; unsupported when it is not a preview.
  virtual Result<std::unique_ptr<Device>> with_rules(std::vector<const Device*> hosts, std::string_view rules) const;
};

}  // namespace moka::kernel
