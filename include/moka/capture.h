// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "moka/error.h"
#include "moka/multi_array.h"

/// A capture shows what a prediction runs, command by command (docs/seeing.md): the dispatches and copies of a GPU and
/// the kernels of the CPU, each with its time, its parameters and its buffers. Model::capture makes one.
///
///   const moka::Capture capture = model.capture();
///   for (const moka::CapturedCommand& command : capture.commands)
///     std::printf("%s %g\n", command.code.c_str(), command.time ? command.time->median : 0);
namespace moka {

/// What the elements of a buffer are.
struct ValueSummary {
  int64_t count = 0, nan_count = 0, infinite_count = 0;
  double minimum = 0, maximum = 0, mean = 0;  ///< of the finite elements; 0 if there are none
};
MOKA_EXPORT ValueSummary summary_of(const MultiArray& array);

/// A stretch of memory that a command uses.
struct CapturedBuffer {
  int binding = -1;     ///< number in the shader; -1: an argument of a kernel of the host
  std::string name;     ///< in the shader, or the operation's parameter
  std::string value;    ///< of the program, which lies there; empty: none, or a part of one
  std::string role;     ///< "input", "output", "intermediate", "state", "constant", "weights", "staging", "scratch"
  std::string type;     ///< of the value, as MIL text
  std::string layout;   ///< of the value: "row_major"
  std::string form;     ///< of packed weights: the key that names the order of their bytes
  std::string element;  ///< as a shader sees it: "fp16"; empty: not known
  bool is_written = false;
  bool is_unused = false;  ///< bound, and never read
  int memory = -1;         ///< index in Capture::memories; -1: host memory
  uint64_t offset = 0, bytes = 0;
  /// What it holds, if values were asked for: before the command if it is only read, else after it.
  std::optional<ValueSummary> summary;
  std::string file;  ///< what CaptureOptions::on_value returned
};

struct CapturedOperation {
  std::string name, type;                ///< of the program
  std::string source_name, source_type;  ///< the layer that it comes from; empty: it is the operation itself
  std::vector<std::pair<std::string, std::string>> parameters;  ///< its small constants: strides, axes
};

/// Seconds of one prediction, over the measured ones.
struct CapturedTime {
  int count = 0;  ///< predictions
  double median = 0, minimum = 0, maximum = 0;
};

/// A dispatch or a copy of a GPU, or a step of the host.
struct CapturedCommand {
  /// "dispatch", "copy", "function" (work that a device computes on the host), "kernel" and "convert" (of the host),
  /// "control" (control flow around others), "upload", "download", "transfer", "submit", "wait".
  std::string kind;
  std::vector<CapturedOperation> operations;       ///< that it computes, in order, without those that were fused
  std::vector<std::string> fused;                  ///< names of the operations that were fused into them
  std::string device, unit;                        ///< "vulkan", "gpu"; "executor" for control flow
  std::vector<std::string> kernels;                ///< that made it: "vulkan.conv"
  std::string note;                                ///< detail such as a library's implementation
  std::string code;                                ///< the shader: "conv_f16"; empty: none
  int region = -1;                                 ///< number of the submission that it is part of; -1: the host's
  bool waits = false;                              ///< a barrier stands before it
  std::array<uint32_t, 3> groups{}, group_size{};  ///< workgroups, and invocations of one; 0: not known
  std::vector<std::pair<std::string, std::string>> constants;   ///< specialization constants
  std::vector<std::pair<std::string, std::string>> parameters;  ///< push constants
  std::vector<std::byte> parameter_bytes;
  std::vector<std::pair<std::string, std::string>>
      facts;           ///< what the kernel tells: tiles, blocks, how it divides work
  int threads = 0;     ///< of a kernel of the host
  uint64_t bytes = 0;  ///< of a transfer
  std::vector<CapturedBuffer> buffers;
  int64_t runs = 0;                  ///< in a prediction; more than 1 in loops
  std::optional<CapturedTime> time;  ///< absent: its queue has no timestamps
  double start = -1, end = -1;       ///< seconds from the beginning of the last measured prediction; -1: not known
};

/// Memory of a device.
struct CapturedMemory {
  std::string name;  ///< "arena of vulkan", "weights of conv_1"
  uint64_t bytes = 0;
};

/// A device, and how its queue measures commands.
struct CapturedDevice {
  std::string name, unit, description;
  bool has_timestamps = false;  ///< for the host: true
  bool has_queries = false;     ///< they are queries of its queue; false: the host's clock
  double resolution = 0;        ///< seconds of one tick
  int bits = 0;                 ///< of a timestamp that are valid
  double overhead = 0;          ///< seconds from one timestamp to the next with nothing between
  bool is_calibrated = false;   ///< the driver tells the host's time of a timestamp
};

struct Capture {
  std::string version, date;  ///< of Moka; UTC: "2026-11-24T12:00:00Z"
  std::string model;          ///< path; empty: in memory
  std::string function;
  int predictions = 0;    ///< that were measured
  double prediction = 0;  ///< median seconds of predictions that are not captured
  double captured = 0;    ///< median seconds of those that are
  std::vector<CapturedDevice> devices;
  std::vector<CapturedMemory> memories;
  std::vector<CapturedCommand> commands;  ///< in the order of their start; a region's stand where it is submitted
};

struct CaptureOptions {
  int predictions = 11;  ///< to measure, at least 1
  /// Also runs one prediction command by command and looks at what each reads and writes, which takes far longer.
  bool values = false;
  /// With `values`: called with each content, perhaps on another thread while the caller waits. Returns the name of the
  /// file that keeps it, or nothing. Weights and constants come once.
  std::function<std::string(const CapturedCommand&, size_t command, const CapturedBuffer&, size_t buffer,
                            const MultiArray&)>
      on_value;
};

/// The capture as JSON, in the schema of docs/seeing.md. Ends with a newline.
MOKA_EXPORT std::string to_json(const Capture& capture);
/// A page in HTML that needs nothing beside it, for write_file with FileKind::page.
MOKA_EXPORT std::string capture_page(const Capture& capture);

}  // namespace moka
