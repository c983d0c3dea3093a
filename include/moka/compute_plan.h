#pragma once

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

/// What one device says of an operation.
struct UnitBid {
  std::string device, unit;  ///< "vulkan", "gpu"; units: "cpu", "gpu", "neuralEngine"
  double seconds = 0;        ///< as estimated, by the rates that were used
  std::string refusal;       ///< not empty: it does not take the operation
};

/// One step of a plan: an operation on a device, or work that the planner added (`type` "convert_layout").
struct PlannedOperation {
  std::string name;                   ///< of the operation in the source model
  std::string type;                   ///< "conv"
  std::string device;                 ///< "cpu", "reference"; "executor" for control flow
  std::string kernel;                 ///< "cpu.conv.onednn"
  std::string note;                   ///< e.g. the library's implementation
  std::vector<std::string> fused;     ///< names of the operations that it also computes
  std::vector<std::string> refusals;  ///< "device: reason" for each that was asked before and refused
  std::vector<std::string> outputs;   ///< types of its results, MIL text
  std::string layout;                 ///< of its first result
  double estimated_seconds = 0;
  double measured_seconds = -1;  ///< of one prediction, the median of the measured ones; -1: not measured
  int64_t runs = 0;              ///< how often it ran in a measured prediction
  /// "rule", "pin", "cache" (a time from the kernel cache), "measured" (just now), "disturbed" (by rule: what else runs
  /// on the machine spoilt the measurement).
  std::string chosen_by;
  std::string shape;                   ///< what the measured times are for; empty: none
  std::string kernel_by_rule;          ///< what would run without them
  std::vector<KernelTime> candidates;  ///< the measured times
  int depth = 0;                       ///< of nested blocks
  std::vector<UnitBid> bids;           ///< of all devices that were asked, the host's first
  int region = -1;                     ///< index in ComputePlan::regions; -1: on the host
  size_t bytes = 0;                    ///< of a transfer
  std::string reason;                  ///< of a transfer: why the cut lies there
};

/// Operations that a device runs as one submission.
struct PlannedRegion {
  std::string device;
  size_t operations = 0;
  size_t upload_bytes = 0, download_bytes = 0;
  double seconds = 0;  ///< of its operations, as estimated
  double launch = 0;   ///< seconds of one submission
  double saves = 0;    ///< seconds that a prediction would take longer with them on the host; infinite: it cannot
};

/// What the choice between units compared, in seconds of one prediction.
struct PlannedCost {
  double compute = 0, transfers = 0, launches = 0;
  double on_host = 0;       ///< everything on the host; infinite: it cannot run everything
  bool is_optimal = false;  ///< no other assignment costs less; otherwise none was found
};

/// What the passes did: "fuse_activations: relu_1 into conv_1".
struct PassRemark {
  std::string pass, text;
};

/// Core ML's MLComputePlan and more: where everything runs and why.
struct ComputePlan {
  std::vector<PlannedOperation> operations;
  std::vector<PassRemark> remarks;
  std::vector<PlannedRegion> regions;  ///< in the order in which they are submitted
  PlannedCost cost;                    ///< of all blocks; zeros where one unit was asked
  std::string rates;                   ///< where the costs are from: a file, or "table"
  size_t operations_in_source = 0;     ///< of the function, constants not counted
  size_t folded = 0;                   ///< operations whose results were known before running
  size_t arena_bytes = 0;              ///< memory of all values, shared over time
  size_t unshared_bytes = 0;           ///< what it would be without sharing
  size_t packed_bytes = 0;             ///< of constants packed for kernels
  size_t cached_bytes = 0;             ///< of those that an earlier load had packed (ModelConfiguration::cache)
  double measured_seconds = -1;        ///< of a whole prediction while no operation is timed: the median
  int predictions = 0;                 ///< how many were measured
  /// False: what comes after the last operation depends on values, and is planned when a prediction knows them.
  bool complete = true;
};

/// The operations and weights of one function, as loaded.
struct OperationList {
  struct Operation {
    std::string name, type;
    std::vector<std::pair<std::string, std::string>> inputs;   ///< parameter, value
    std::vector<std::pair<std::string, std::string>> outputs;  ///< value, type in MIL text
    int depth = 0;
  };
  struct Weight {
    std::string name, type;  ///< value and its type in MIL text
    size_t bytes = 0;        ///< as stored
    std::string storage;     ///< "file" or "inline"
  };
  std::string function, opset;
  std::vector<Operation> operations;
  std::vector<Weight> weights;
};

}  // namespace moka
