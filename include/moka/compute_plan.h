// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "moka/error.h"

namespace moka {

/// A kernel's measured time for the shape of an operation.
struct KernelTime {
  std::string kernel;
  double seconds = 0;
};

/// A device's estimate for an operation, or its refusal.
struct UnitBid {
  std::string device, unit;  ///< "vulkan", "gpu"; units: "cpu", "gpu", "neuralEngine"
  double seconds = 0;        ///< estimated time by the rates in use
  std::string refusal;       ///< why the device refuses the operation; empty: it takes it
  std::string remedy;        ///< what to write instead; empty: not known
  std::string source;        ///< the public source of the rule that refuses; empty: the device itself does
  std::string rule;          ///< name of the rule that refuses or doubts; empty: none does
  /// The device takes the operation, but Core ML would probably run it elsewhere, for this reason. Empty: no rule
  /// doubts it. `remedy` and `source` then belong to the doubt.
  std::string doubt;
};

/// A dispatch or a copy of a device that computes an operation.
struct OperationDispatch {
  std::string code;                  ///< the shader: "conv_f16"; empty: a copy
  std::array<uint32_t, 3> groups{};  ///< workgroups; 0: not known
  double seconds = -1;               ///< median by timestamps; -1: its queue has none
  std::vector<std::string> also;     ///< names of the other operations that it computes
};

/// One step of a plan: an operation on a device, or a step that the planner added (`type` "convert_layout").
struct PlannedOperation {
  std::string name;                   ///< name of the operation in the source model
  std::string type;                   ///< "conv"
  std::string device;                 ///< "cpu", "reference"; "executor" for control flow
  std::string kernel;                 ///< "cpu.conv.onednn"
  std::string note;                   ///< detail such as the library's implementation
  std::vector<std::string> fused;     ///< names of the operations that this step also computes
  std::vector<std::string> refusals;  ///< "device: reason" for each device that refused it first
  std::vector<std::string> outputs;   ///< types of the results as MIL text
  std::string layout;                 ///< layout of the first result
  double estimated_seconds = 0;
  double measured_seconds = -1;               ///< median time per prediction; -1: not measured
  int64_t runs = 0;                           ///< how often the step ran in a measured prediction
  std::vector<OperationDispatch> dispatches;  ///< of measured predictions on a device that tells them
  /// How the kernel was chosen: "rule", "pin", "cache" (a time in the kernel cache), "measured" (timed just now) or
  /// "disturbed" (by rule, because other work on the machine disturbed the measurement).
  std::string chosen_by;
  std::string shape;                   ///< the shape that was measured; empty: none
  std::string kernel_by_rule;          ///< the kernel that the rules alone would choose
  std::vector<KernelTime> candidates;  ///< the measured times
  int depth = 0;                       ///< nesting depth of the block
  std::vector<UnitBid> bids;           ///< estimates of all devices that were asked, the host first
  int region = -1;                     ///< index in ComputePlan::regions; -1: on the host
  size_t bytes = 0;                    ///< size of a transfer
  std::string reason;                  ///< why a transfer happens here
};

/// Operations that a device runs as one submission.
struct PlannedRegion {
  std::string device;
  size_t operations = 0;
  size_t upload_bytes = 0, download_bytes = 0;
  double seconds = 0;  ///< estimated time of its operations
  double launch = 0;   ///< time of one submission in seconds
  double saves = 0;    ///< seconds that one prediction saves against the host; infinite: the host cannot run them
};

/// The costs that the choice between units compared, in seconds per prediction.
struct PlannedCost {
  double compute = 0, transfers = 0, launches = 0;
  double on_host = 0;       ///< cost of running everything on the host; infinite: it cannot
  bool is_optimal = false;  ///< true: no assignment costs less; false: none was found that does
};

/// A pin of ModelConfiguration::pins, and what it matches in the optimized program.
struct PlannedPin {
  std::string operations, device;  ///< as given, and the name of the device
  size_t matched = 0;              ///< operations
  size_t decided = 0;              ///< those of them that no later pin matches
  /// What became of operations that the pin matches in the model only, because they were fused or folded. If it matches
  /// nothing: that, and what is near. Otherwise empty.
  std::string note;
};

/// A change that a pass made: "fuse_activations: relu_1 into conv_1".
struct PassRemark {
  std::string pass, text;
};

/// Bytes of memory that a loaded model holds.
struct MemoryUse {
  size_t mapped = 0;     ///< weights in mapped files; the system may drop those that are only read while loading
  size_t packed = 0;     ///< weights packed for kernels
  size_t constants = 0;  ///< other large constants: expanded weights and results that do not depend on inputs
  size_t arenas = 0;     ///< values of predictions, and converted inputs
  /// By how much the heap grew while the model was loaded: the program, plans, small constants, generated code. Counts
  /// what other threads allocated meanwhile.
  size_t heap = 0;
  /// Packed weights and constants that this model uses, but another model or function of the same file made. They are
  /// part of the other's figures, and not of `total`.
  size_t shared = 0;
  size_t total() const { return mapped + packed + constants + arenas + heap; }
};

/// Core ML's MLComputePlan and more: where each operation runs and why.
struct ComputePlan {
  std::vector<PlannedOperation> operations;
  std::vector<PassRemark> remarks;
  std::vector<PlannedRegion> regions;  ///< in order of submission
  std::vector<PlannedPin> pins;        ///< in the order of the configuration
  PlannedCost cost;                    ///< cost of all blocks; zeros when only one unit was asked
  std::string rates;                   ///< source of the costs: a file, or "table": the kernels' estimates
  size_t operations_in_source = 0;     ///< operations of the function, without constants
  size_t folded = 0;                   ///< operations that were computed while loading
  size_t arena_bytes = 0;              ///< memory of all values when they share it
  size_t unshared_bytes = 0;           ///< memory of all values if they did not share it
  size_t packed_bytes = 0;             ///< size of the constants packed for kernels
  size_t cached_bytes = 0;             ///< size of those that came from the cache (ModelConfiguration::cache)
  MemoryUse memory;                    ///< of the model, with all its plans and sessions
  /// median time of a whole prediction without timing its operations; -1: not measured
  double measured_seconds = -1;
  int predictions = 0;  ///< number of measured predictions
  /// False: the steps after the last one depend on values and are planned during a prediction.
  bool complete = true;
};

/// The values that a plan is made of, in this order: concrete types and constants; what each device offers for each
/// operation, and the choice between them; steps; their memory.
enum class PlanStage { resolve, claim, arrange, memory };

/// The operations and weights of one function, as loaded.
struct OperationList {
  struct Operation {
    std::string name, type;
    std::vector<std::pair<std::string, std::string>> inputs;   ///< parameter and value
    std::vector<std::pair<std::string, std::string>> outputs;  ///< value and its type as MIL text
    int depth = 0;
  };
  struct Weight {
    std::string name, type;  ///< value and its type as MIL text
    size_t bytes = 0;        ///< stored size
    std::string storage;     ///< "file" or "inline"
  };
  std::string function, opset;
  std::vector<Operation> operations;
  std::vector<Weight> weights;
};

}  // namespace moka
