// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/memory.h"
#include "format/model_file.h"
#include "import/outline.h"
#include "ir/array_view.h"
#include "kernel/device.h"
#include "moka/model.h"
#include "moka/program.h"
#include "moka/rates.h"
#include "plan/packed_cache.h"
#include "runtime/kernel_cache.h"
#include "runtime/model.h"
#include "runtime/prediction.h"
#include "runtime/state_value.h"
#include "runtime/waited.h"
#include "trace/trace.h"

/// Connects the public types with the library's own.
namespace moka::import {
struct UpdateDescription;
}

namespace moka::api {

[[noreturn]] void raise(const Error& error);

template <class T>
T unwrap(Result<T> result) {
  if (!result.ok()) raise(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

/// Core ML's name of an element type: "Float32", "Int32".
std::string_view core_ml_name(DataType type);
ir::DType to_ir(DataType type);
/// Errors: unsupported for element types that no multi-array has.
Result<DataType> from_ir(ir::DType type);
ModelDescription to_public(const import::ModelDescription& description);
FeatureDescription to_public(const import::FeatureDescription& feature);
UpdateDescription to_public(const import::UpdateDescription& update);
ModelStructure to_public(import::Outline outline);

/// The first two of the five dimensions that arrays of legacy neural networks have internally.
struct Leading {
  int64_t sequence = 1, batch = 1;
};
/// The leading dimensions of a value for `feature`; ones when it has none, or when input_type will refuse the value.
Leading leading_of(const import::FeatureDescription& feature, const FeatureValue& value);

/// The IR type of `value` at the boundary of the function, whose input has type `declared`. Checks kind, shape and
/// allowed sizes; errors name the feature, expected and got. `declared` may be the described type or, for inputs that
/// accept rank 5, [sequence, batch, C, H, W]. It must be the latter unless leading_of is all ones.
Result<ir::Type> input_type(const import::FeatureDescription& feature, const ir::Type& declared,
                            const FeatureValue& value);
/// The type of a missing optional input. `batch`: the batch of the given inputs, used when `declared` has rank 5.
Result<ir::Type> default_type(const import::FeatureDescription& feature, const ir::Type& declared, int64_t batch = 1);
/// The type of an input that was given, or else of a missing one (nullptr). Error invalid_argument: it is
/// missing, but not optional.
Result<ir::Type> given_type(const import::FeatureDescription& feature, const ir::Type& declared,
                            const FeatureValue* value, int64_t batch = 1);
/// Whether the default size of a flexible dimension is its smallest or its largest allowed size. 1 counts as the
/// smallest size of a dimension that may be empty.
bool has_default_at_limit(const import::FeatureDescription& feature);

/// The same error with `code` if it is invalid_argument: an operation refused an argument, and the kind of the error
/// depends on where that came from.
Error reclassified(Error error, ErrorCode code);

/// What the planes of an image input hold.
kernel::PlaneOrder plane_order(const import::FeatureDescription& feature);
kernel::Pixels pixels_of(const Image& image);
/// Sets `to` to what a prediction gets for a given input: the value's own memory, or that of `dict`, which it sets. The
/// value has passed input_type. Error invalid_argument: numbers that the type of the input, or its described one,
/// lacks.
Status set_input_value(const import::FeatureDescription& feature, const ir::Type& type, const FeatureValue& value,
                       ir::Dict& dict, runtime::InputValue& to);
/// What a prediction gets for a missing optional input.
runtime::InputValue default_value(const import::FeatureDescription& feature, const ir::Type& type);

/// One of the two, for the input's value or nullptr.
Status set_given(const import::FeatureDescription& feature, const ir::Type& type, const FeatureValue* value,
                 ir::Dict& dict, runtime::InputValue& to);

/// Converts an output of the function into `value`. Uses the memory of `value` if it fits.
Status store_output(const import::FeatureDescription& feature, const ir::Type& type, const ir::TensorView& view,
                    FeatureValue& value);

/// A row-major array in the memory of `view`, which `owner` keeps; rank 0 becomes shape [1]. Error: unsupported
/// (element type).
Result<MultiArray> array_in(const ir::TensorView& view, std::shared_ptr<const void> owner);
/// One plane of half floats as an image in the same memory.
Image image_in(const ir::TensorView& view, std::shared_ptr<const void> owner);
/// A row-major array with undefined content; rank 0 becomes shape [1]. Errors: unsupported (element type),
/// out_of_budget.
Result<MultiArray> new_array(ir::DType dtype, const ir::Shape& shape);
/// A row-major copy of a numeric tensor; rank 0 becomes shape [1].
Result<MultiArray> to_array(const ir::TensorView& view);
/// Whether `to`, if it is an integer type, has every number of the array. The error invalid_argument shows the first
/// one that it lacks: "expected whole numbers of type int32, got 3.7 at [0, 2]". `first_row`: added to the first index.
Status check_whole(const ir::ArrayView& from, ir::DType to, int64_t first_row = 0);
/// The same for the array or number of an input, of which the feature's described type must have the numbers too.
Status check_numbers(const import::FeatureDescription& feature, ir::DType to, const ir::ArrayView& array,
                     int64_t first_row = 0);
Status check_numbers(const import::FeatureDescription& feature, ir::DType to, const FeatureValue& value);
ir::ArrayView view_of(const MultiArray& array);

/// ModelConfiguration::pins and the devices that they name.
class DevicePins {
 public:
  void add(std::string operations, const kernel::Device* device) { pins_.emplace_back(std::move(operations), device); }
  /// Pins all operations to ModelConfiguration::device. The user's pins come after it.
  void set_base(const kernel::Device* device) { base_ = device; }
  bool empty() const { return pins_.empty() && base_ == nullptr; }
  bool has_users() const { return !pins_.empty(); }
  /// The device of the last pin that matches the operation, its source, or the name of an operation that was fused into
  /// it; nullptr: none.
  const kernel::Device* of(const ir::Op& op) const;
  /// What each of the user's pins matches in a model that was compiled with keep_sources.
  std::vector<PlannedPin> uses(const runtime::Model& model) const;

 private:
  std::vector<std::pair<std::string, const kernel::Device*>> pins_;
  const kernel::Device* base_ = nullptr;
};
/// Whether a pin's pattern, a type or a name, matches.
bool pin_matches(std::string_view pattern, const ir::Op& op);
bool pin_matches(std::string_view pattern, const runtime::SourceRecord& record);
/// "; did you mean 'type:conv'?" where a pattern that matches nothing resembles a name or a type of the model, and the
/// types that the model has.
std::string pin_advice(std::string_view pattern, const std::vector<runtime::SourceRecord>& sources);

/// The devices that a configuration allows.
struct Devices {
  std::vector<const kernel::Device*> list;  ///< best first, `reference` last
  DevicePins pins;
  std::vector<std::string> remarks;  ///< notes on requested devices that are absent
};
/// Errors: not_found for a device that does not exist or is not among the compute units.
Result<Devices> devices_for(const ModelConfiguration& configuration);
/// The same, choosing from the given devices.
Result<Devices> devices_for(const ModelConfiguration& configuration, std::vector<const kernel::Device*> all);
/// The rates that decide between units for a model.
struct ModelRates {
  std::shared_ptr<const kernel::Rates> rates;  ///< nullptr: the table
  std::string remark;                          ///< why the file cannot be used, or that other work disturbed its rates
  std::string note;                            ///< which devices the file lacks, if it has others
};
/// Reads the rates from the configuration's file. Measures nothing: units that the file lacks keep the estimates of
/// their kernels. Does nothing unless a device has its own memory.
ModelRates rates_for(const ModelConfiguration& configuration, std::span<const kernel::Device* const> devices,
                     int threads);
/// What moka::measure_rates and moka::read_rates return, of these devices. A disturbed measurement replaces no other
/// one. Throws what unwrap does.
MachineRates machine_rates(const std::string& file, const Devices& devices, int threads, bool measures,
                           runtime::Waited waited = runtime::seconds_waited);

inline bool lacks_data(const MultiArray& a) { return a.data() == nullptr && (a.count() > 0 || a.shape().empty()); }
/// Whether the described multi-array may have this shape.
Status check_array_shape(const import::FeatureDescription& feature, std::span<const int64_t> shape);

/// Throws invalid_argument when the system lacks one of the processors.
void check_processors(std::span<const int> processors);
void check_threads(int threads);
/// The threads of a prediction.
int threads_of(const ModelConfiguration& configuration);
/// nullptr: no limit.
std::shared_ptr<MemoryBudget> budget_of(const ModelConfiguration& configuration);

/// How the kernels of a model are chosen, and the file that keeps the measurements.
struct KernelCache {
  std::shared_ptr<plan::KernelChoices> choices;  ///< nullptr: the kernels' rules decide
  std::string path;                              ///< empty: no file
  runtime::KernelMachine machine;
  std::string remark;  ///< why the file cannot be used; empty: no problem, or no file
  /// Writes the measurements since the last call. Error io.
  Status save() const;
};
/// A file that cannot be used becomes a remark and a line on standard error. Error not_found: the user has no cache
/// folder.
Result<KernelCache> kernel_cache_for(const ModelConfiguration& configuration,
                                     std::span<const kernel::Device* const> devices);
/// Error not_found: a pin names an operation that `function` does not have.
Status check_pins(const plan::KernelChoices& choices, const ir::Function& function);

/// Packed weights that earlier loads of a model saved.
struct PackedWeights {
  std::string folder;
  std::shared_ptr<plan::PackedCache> cache;    ///< nullptr: none
  std::vector<const kernel::Device*> devices;  ///< may save compiled kernels in the folder
  /// Writes new entries. A failure becomes a remark.
  void save() const;
  /// Reports problems with the file on standard error, and records the time of use.
  void show_remark() const;
};
/// `model`: its path; empty: it has none. Error not_found: the user has no cache folder.
Result<PackedWeights> packed_weights_for(const ModelConfiguration& configuration, const std::string& model,
                                         std::span<const kernel::Device* const> devices, int threads);
/// The application's source of keys for the file layer; null for null.
format::KeySource key_source(const KeySource& source);
/// All bytes of a reader, in memory of map_blocks. Throws what the reader throws.
Bytes read_model(const ModelReader& reader);
/// Prints a line on standard error, once for each text, because many models may name the same file.
void warn(const std::string& text);

/// Variants of a function for inputs of rank 5 or for some of its outputs, each created on demand. They share the
/// packed weights. Thread-safe.
class Variants {
 public:
  using Sizes = std::map<std::string, ir::Shape>;
  struct Key {
    bool sequences = false, batches = false;  ///< inputs of rank 5 with these dimensions unknown
    bool rows = false;                        ///< inputs have an axis of rows (ImportOptions::rows)
    std::vector<std::string> outputs;         ///< in the order of the description; empty: all
    Sizes sizes;                              ///< of the inputs that are imported for one size
    friend bool operator==(const Key&, const Key&) = default;
  };
  using Made = Result<std::shared_ptr<const runtime::Model>>;
  /// The variant for `key`; calls `make()` when there is none. It keeps only the most recent of those
  /// with fewer outputs or other sizes.
  Made get(const Key& key, const std::function<Made()>& make);

 private:
  struct Variant {
    Key key;
    std::once_flag once;
    std::optional<Made> model;
  };
  std::mutex mutex_;
  std::vector<std::shared_ptr<Variant>> all_;  ///< most recently used last
};

/// A load as a trace shows it: on lanes of its own, which are the model's from then on.
class TracedLoad {
 public:
  TracedLoad(const std::string& path, const ModelConfiguration& configuration);

 private:
  trace::Use use_;
  trace::Span span_;
};

using StepTimes = std::map<const plan::Step*, std::pair<double, int64_t>>;
/// `times`: seconds and runs of each step; nullptr when not measured.
ComputePlan report(const runtime::Model& model, const plan::Plan& plan, const StepTimes* times);
OperationList operations(const runtime::Model& model);

/// Imports the text form of MIL. The program's own types serve as the description.
Result<import::ImportedModel> import_text(const std::string& text, const std::map<std::string, Bytes>& weights,
                                          const std::shared_ptr<MemoryBudget>& budget);

}  // namespace moka::api

namespace moka {

struct __attribute__((visibility("hidden"))) State::Impl {
  std::vector<std::pair<std::string, runtime::StateValue>> buffers;
  std::atomic<bool> in_use{false};
  /// The state `name`. Throws not_found.
  runtime::StateValue& at(std::string_view name);
};

namespace api {

/// The source of a model, kept to import it again.
struct LoadedSource {
  std::optional<format::ModelFile> file;  ///< none: a program, or text and weights
  std::shared_ptr<const ProgramBuilder::Impl> program;
  import::ModelDescription description;  ///< of `program`
  std::string path;                      ///< path of the file; empty: the model is in memory
  std::string text;
  std::map<std::string, Bytes> weights;
  std::shared_ptr<plan::PackedStore> packed = std::make_shared<plan::PackedStore>();
  Result<import::ImportedModel> import(const import::ImportOptions& options) const;
};

/// What a loaded model and its versions with other parameters have in common.
struct LoadedModel {
  /// Destroyed last, after the model's many small allocations, because the heap would keep their memory.
  struct TrimHeap {
    ~TrimHeap() { trim_heap(); }
  } trim_heap_at_end;
  ModelConfiguration configuration;
  ModelDescription description;
  FunctionDescription function;
  std::shared_ptr<const LoadedSource> source;

  runtime::CompileOptions compile_options;
  KernelCache kernel_cache;
  PackedWeights packed_weights;
  std::vector<std::string> device_remarks;
  std::vector<PlannedPin> pins;
  bool sequences_only = false;                                ///< the model itself takes inputs of rank 5
  std::map<std::string, import::ImportedModel::Sized> sized;  ///< inputs for one size of which the model is
};

}  // namespace api

struct __attribute__((visibility("hidden"))) Model::Impl : api::LoadedModel {
  using Source = api::LoadedSource;
  LoadTimes times;
  size_t heap_bytes = 0;  ///< MemoryUse::heap
  std::shared_ptr<const runtime::Model> model;
  mutable std::atomic<trace::ModelId> trace_model{0};
  mutable std::atomic<bool> has_told_changes{false};
  mutable api::Variants variants;

  static std::shared_ptr<const Impl> make(std::shared_ptr<const Source> source, const ModelConfiguration& configuration,
                                          std::shared_ptr<MemoryBudget> budget, LoadTimes times);
  /// The same model with other values of its parameters, which have their types.
  static std::shared_ptr<const Impl> with_parameters(const Impl& from, const std::map<std::string, ir::Tensor>& values);
  /// `path` is empty for a model in memory.
  static std::shared_ptr<const Impl> from_file(
      const std::string& path, const std::function<Result<format::ModelFile>(const format::OpenOptions&)>& open,
      const ModelConfiguration& configuration, std::shared_ptr<plan::PackedStore> packed = nullptr);
  /// A model that is decoded.
  static Model of_file(const format::ModelFile& file, const ModelConfiguration& configuration);
  /// The model of a program that is in memory.
  static Model of_program(std::shared_ptr<const ProgramBuilder::Impl> program, const ModelConfiguration& configuration);
  /// A model in memory. Models with the same store share what they pack from the same memory.
  static Model in_memory(const Bytes& specification, const std::map<std::string, Bytes>& files,
                         std::shared_ptr<plan::PackedStore> packed, const ModelConfiguration& configuration);
  /// Whose lanes predictions are on in traces.
  trace::ModelId traced() const;
  /// Warns once, after a prediction, of what the passes changed beyond rounding.
  void tell_changes() const;
  /// The one for inputs with these leading dimensions and sizes (of `sized`), and these outputs.
  Result<std::shared_ptr<const runtime::Model>> model_for(const api::Leading& leading,
                                                          const std::vector<std::string>& outputs,
                                                          const api::Variants::Sizes& sizes) const;
  /// The variant that takes tables. Error unsupported: this model predicts row by row.
  Result<std::shared_ptr<const runtime::Model>> rows_model() const;
  /// The inputs of a prediction, and which of the model's variants it needs.
  struct Asked {
    std::vector<const FeatureValue*> given;  ///< by input of the function; nullptr: none
    api::Leading leading;
    api::Variants::Sizes sizes;  ///< of the inputs in `sized`
  };
  /// Looks the inputs up. Errors: invalid_argument, for one that the model does not have or that its type refuses.
  Status ask(const Features& inputs, Asked& asked) const;
  /// Sets `types` to the types of the inputs and states of `body`, a function of this model, whose features are
  /// runtime::features_of.
  Status input_types(const ir::Block& body, std::span<const size_t> features, const Asked& asked,
                     std::vector<ir::Type>& types) const;
  /// Chooses the model for these inputs and outputs. Sets `types` to the types of its function's inputs and states.
  Result<std::shared_ptr<const runtime::Model>> choose(const Features& inputs, const std::vector<std::string>& outputs,
                                                       Asked& asked, std::vector<ir::Type>& types) const;
  /// The error of inferring the types of a prediction with these inputs, of which only the types are read. Adds to
  /// `operations` how many were visited.
  Status infers(const Features& inputs, int64_t& operations) const;
  /// Sizes of the inputs with which the types of all operations agree.
  struct Fitting {
    FunctionDescription function;  ///< with these sizes; the usual ones when they fit or no others are found
    bool is_usual = true;
    std::string refusal;  ///< the error of a prediction with the usual sizes; empty: some sizes fit
    std::string tried;    ///< "; other sizes fit no better (tried: sequences of 1 to 512; not all allowed sizes)"
    ErrorCode code = ErrorCode::invalid_argument;
  };
  /// Searched once, by a limited number of operations whose types are inferred.
  const Fitting& fitting() const;
  mutable std::once_flag fitting_searched;
  mutable Fitting fitting_found;
  /// Goes on with an error about the usual sizes: "; sizes that fit: x 4 x 1", or which were tried.
  std::string fitting_sizes() const;
  /// An error of planning a prediction, with sizes that fit if the usual ones do not.
  Error with_fitting_sizes(Error error) const;
  /// Whether the input accepts arrays [sequence, batch, C, H, W].
  bool takes_rank5(std::string_view input) const;
  /// The model and the plan that a prediction used.
  struct Ran {
    std::shared_ptr<const runtime::Model> model;
    std::shared_ptr<const plan::Plan> plan;
  };
  /// `observed`: `trace` also receives the values that devices compute.
  Status predict(const Features& inputs, Features& outputs, const PredictionOptions& options, runtime::TraceSink* trace,
                 Ran* ran, bool observed = false) const;
  /// One result for each item. An error names it: `what` and its place, counted from `first`.
  std::vector<Features> predict_batch(std::span<const Features> inputs, const PredictionOptions& options,
                                      std::string_view what, size_t first) const;
};

}  // namespace moka
