// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "moka/compute_plan.h"
#include "moka/model.h"
#include "moka/report.h"
#include "moka/verify.h"

/// What Core ML did with a model on an Apple device, as a program recorded that `moka record` wrote
/// (docs/recordings.md).
namespace moka {

/// What the program for the device does.
struct RecordingPlan {
  std::string model_name;                  ///< of the file or folder: "Net.mlpackage"
  std::string file_name = "Record.swift";  ///< of the source
  std::string function;                    ///< of a model that has several; empty: Core ML's default
  bool is_test = false;                    ///< a class of XCTest instead of a program
  std::vector<ComputeUnits> units{ComputeUnits::all, ComputeUnits::cpu_only, ComputeUnits::cpu_and_gpu,
                                  ComputeUnits::cpu_and_neural_engine};
  int predictions = 20;                         ///< timed ones of each setting, at least 1
  uint64_t full_bytes = uint64_t{4} << 20;      ///< arrays of more bytes are recorded by a sample of their elements
  uint64_t embedded_bytes = uint64_t{4} << 20;  ///< inputs of more bytes go to a file of their own
};

/// Swift source, and the text of the file of inputs beside it, if they are too large for the source.
struct RecordingProgram {
  std::string source, inputs;
};
/// `inputs`: of each prediction, by the function's names. `inputs_file`: the name of the file of inputs. Throws
/// invalid_argument (no inputs, no units, predictions), and unsupported for inputs that Core ML does not take, such as
/// arrays of int64.
MOKA_EXPORT RecordingProgram recording_program(const FunctionDescription& function, const std::vector<Features>& inputs,
                                               const RecordingPlan& plan, const std::string& inputs_file = {});

/// The device and its system.
struct RecordedDevice {
  std::string system, version;  ///< "macOS", "Version 26.1 (Build 25B78)"
  std::string machine, chip;    ///< "Mac16,1", "Apple M4"
  std::string thermal_state;    ///< "nominal", "fair", "serious", "critical"; empty: not known
  int64_t processors = 0;
  uint64_t memory_bytes = 0;
  bool low_power_mode = false, simulator = false;
};

/// A part of a large array: every `step`-th element in row-major order, from the first one on.
struct RecordedSample {
  std::vector<int64_t> shape;  ///< of the whole array
  int64_t step = 1;
  MultiArray elements;  ///< of rank 1, with the array's type
  std::string sha256;   ///< of the whole array's bytes, in row-major order
  double least = 0, most = 0, mean = 0;
  uint64_t nan = 0, infinite = 0;  ///< of the whole array
};

/// The answers of one prediction.
struct RecordedAnswers {
  Features values;
  std::map<std::string, RecordedSample> samples;  ///< of outputs that are too large
};

/// What MLComputePlan says of an operation of an ML program or a layer of a neural network.
struct RecordedOperation {
  std::string model;                   ///< of a pipeline: its part, "a/b" for a part of a part
  std::string function;                ///< of a program with several
  std::string name;                    ///< of a layer; operations have only the names of their outputs
  std::string type;                    ///< "ios18.conv", "innerProduct"
  std::vector<std::string> outputs;    ///< names of the values
  std::vector<std::string> supported;  ///< "cpu", "gpu", "neuralEngine"; empty: Core ML says nothing
  std::string preferred;
  std::optional<double> cost;  ///< its part of the whole, 0 to 1
  int depth = 0;               ///< nesting depth of the block
};

/// What was recorded with one choice of compute units.
struct RecordedSetting {
  ComputeUnits units = ComputeUnits::all;
  std::string error;                 ///< why it failed; what came before is there
  std::vector<double> load_seconds;  ///< the first load, which may compile for a unit, and the second one
  double first_seconds = 0;          ///< the first prediction
  std::vector<double> prediction_seconds;
  std::vector<RecordedAnswers> answers;  ///< one for each of DeviceRecording::inputs, or none
  std::string plan_error;                ///< why there are no operations
  std::vector<RecordedOperation> operations;
};

struct DeviceRecording {
  std::string moka, date;  ///< the version that wrote the program; UTC
  RecordedDevice device;
  std::string model, function;  ///< as in RecordingPlan
  std::optional<double> compile_seconds;
  std::vector<Features> inputs;
  std::vector<RecordedSetting> settings;

  /// Null: it was not recorded.
  MOKA_EXPORT const RecordedSetting* find(ComputeUnits units) const;
  /// "Apple M4, macOS Version 26.1 (Build 25B78)".
  MOKA_EXPORT std::string device_text() const;
};

/// Throws malformed, which says where something is wrong.
MOKA_EXPORT DeviceRecording parse_device_recording(std::string_view json);
/// Throws not_found, io, and malformed, which names the file.
MOKA_EXPORT DeviceRecording read_device_recording(const std::filesystem::path& path);
/// Whether the file can be read and says that it is a recording.
MOKA_EXPORT bool is_device_recording(const std::filesystem::path& path);
/// In the format of docs/recordings.md. Ends with a newline.
MOKA_EXPORT std::string to_json(const DeviceRecording& recording);

/// The recorded answers as the other side of verify_model. Where an output was recorded by a sample, the sample is
/// compared. `name` begins its name. Throws invalid_argument when the recording has no answers of these units.
MOKA_EXPORT std::unique_ptr<Reference> device_reference(const DeviceRecording& recording, ComputeUnits units,
                                                        const std::string& name, const FunctionDescription& function);

/// Every setting that has times, named by its compute units. Operations have Core ML's device and no times.
MOKA_EXPORT Report report_of(const DeviceRecording& recording);

/// Core ML's placement of an operation beside the one of a plan.
struct PlacedOperation {
  enum class Verdict : uint8_t {
    same,       ///< both put it on the same unit
    elsewhere,  ///< Core ML prefers another unit than Moka
    unplanned,  ///< the plan has no operation of this name: it was folded, fused, or is from another model
  };
  RecordedOperation recorded;
  std::string name;          ///< Moka's name
  std::string unit, device;  ///< of Moka's plan: "cpu", "reference"
  Verdict verdict = Verdict::unplanned;

  /// What a unit's bid says beside Core ML. The fields before are of the whole plan.
  enum class Preview : uint8_t {
    none,           ///< the unit was not asked, or the recording says nothing
    right,          ///< supported by both, or by none
    wrongly_taken,  ///< Core ML does not support it there
    wrongly_refused,
    wrongly_doubted,  ///< Core ML prefers this unit
    wrongly_trusted,  ///< Core ML supports it there and prefers another unit
  };
  Preview preview = Preview::none;
  std::string rule;    ///< of the refusal or doubt
  std::string reason;  ///< of the refusal or doubt
  std::string source;
};

struct Placement {
  std::vector<PlacedOperation> operations;  ///< in the order of the recording, without those Core ML says nothing of
  size_t same = 0, elsewhere = 0, unplanned = 0;
  size_t right = 0, wrong_support = 0, wrong_preference = 0;  ///< of `preview`
};

/// `structure`: of the model that `plan` is of. `unit`: "neuralEngine", whose bids are compared.
MOKA_EXPORT Placement compare_placement(const ComputePlan& plan, const ModelStructure& structure,
                                        const RecordedSetting& setting, std::string_view unit = "neuralEngine");

/// How two recordings of one model differ: two devices, or two systems of one device.
struct RecordingComparison {
  struct Moved {
    std::string name, type;
    std::string first, second;  ///< the preferred unit in each; empty: Core ML says nothing
    bool operator==(const Moved&) const = default;
  };
  struct Setting {
    ComputeUnits units = ComputeUnits::all;
    std::vector<OutputError> outputs;  ///< the first recording is the reference
    size_t operations = 0;             ///< that both have
    std::vector<Moved> moved;          ///< those of them that Core ML places differently
    /// Medians in seconds; 0: not recorded.
    double first_load = 0, second_load = 0, first_prediction = 0, second_prediction = 0;
  };
  std::vector<Setting> settings;      ///< that both have
  std::vector<std::string> remarks;   ///< what cannot be compared, and why
  std::vector<std::string> failures;  ///< a sentence for each output that differs by more than `min_snr` allows
  bool same() const { return failures.empty(); }
};
/// Answers are compared where both have the same inputs. Where one has an array whole and the other has a sample of it,
/// the sample is compared. `min_snr`: least signal to noise in dB; 40 is what float16 leaves.
MOKA_EXPORT RecordingComparison compare_recordings(const DeviceRecording& first, const DeviceRecording& second,
                                                   double min_snr = 40);

}  // namespace moka
