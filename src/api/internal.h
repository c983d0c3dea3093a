#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/memory.h"
#include "format/model_file.h"
#include "import/outline.h"
#include "ir/tensor.h"
#include "kernel/code_cache.h"
#include "moka/model.h"
#include "plan/packed_cache.h"
#include "runtime/kernel_cache.h"
#include "runtime/model.h"
#include "trace/trace.h"

/// Between the public types and the library's own.
namespace moka::api {

[[noreturn]] void raise(const Error& error);

template <class T>
T unwrap(Result<T> result) {
  if (!result.ok()) raise(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

/// Core ML's word for an element type: "Float32", "Int32".
std::string_view core_ml_name(DataType type);
ir::DType to_ir(DataType type);
/// Errors: unsupported for element types that no multi-array has.
Result<DataType> from_ir(ir::DType type);
ModelDescription to_public(const import::ModelDescription& description);
FeatureDescription to_public(const import::FeatureDescription& feature);
ModelStructure to_public(import::Outline outline);

/// The first two of the five dimensions that arrays of legacy neural networks have inside.
struct Leading {
  int64_t sequence = 1, batch = 1;
};
/// Those of a value given for `feature`; ones where it has no such dimensions, or where input_type will refuse it.
Leading leading_of(const import::FeatureDescription& feature, const FeatureValue& value);

/// The IR type that `value` has at the boundary of the function, whose input has type `declared`. Checks kind, shape
/// and allowed sizes; errors name the feature, expected and got. `declared` may be the described type or, for what
/// takes rank 5, [sequence, batch, C, H, W]; it must be the latter unless leading_of is all ones.
Result<ir::Type> input_type(const import::FeatureDescription& feature, const ir::Type& declared,
                            const FeatureValue& value);
/// The type of a missing optional input; `batch`: that of the given ones, where `declared` has rank 5.
Result<ir::Type> default_type(const import::FeatureDescription& feature, const ir::Type& declared, int64_t batch = 1);
/// Whether the default size of a flexible input is another than the lowest that it allows.
bool chooses_default(const import::FeatureDescription& feature);

/// Where the data of an input is: the value's own memory where it can be used as it is, else converted into staging
/// memory of the session.
Result<void*> bind_input(const import::FeatureDescription& feature, const ir::Type& type, const FeatureValue& value,
                         runtime::Model::Session& session, size_t index);
Result<void*> bind_default(const import::FeatureDescription& feature, const ir::Type& type,
                           runtime::Model::Session& session, size_t index);

/// `shape` of a neural network's output, or the described one where that holds as many elements.
ir::Shape output_shape(const import::FeatureDescription& feature, const ir::Shape& shape);
/// Memory for an output that is computed as `view`, of undefined content; no data: it is returned in another form.
Result<MultiArray> new_output(const import::FeatureDescription& feature, const ir::TensorView& view);
/// Converts an output of the function into `value`: into its memory when it has a fitting one.
Status store_output(const import::FeatureDescription& feature, const ir::Type& type, const ir::TensorView& view,
                    FeatureValue& value);

/// Row-major, of undefined content; rank 0 becomes shape [1]. Errors: unsupported (element type), out_of_budget.
Result<MultiArray> new_array(ir::DType dtype, const ir::Shape& shape);
/// A row-major copy of a numeric tensor; rank 0 becomes shape [1].
Result<MultiArray> to_array(const ir::TensorView& view);
/// Copies an array of any strides and type into a dense tensor.
void copy_array(const MultiArray& from, const ir::TensorView& to);

/// ModelConfiguration::pins with the devices that they name.
class DevicePins {
 public:
  void add(std::string operations, const kernel::Device* device) { pins_.emplace_back(std::move(operations), device); }
  bool empty() const { return pins_.empty(); }
  /// The device of the last pin for the operation, or for one that was fused into it; nullptr: none.
  const kernel::Device* of(const ir::Op& op) const;
  /// Error not_found: a name that no operation of `function` has.
  Status check(const ir::Function& function) const;
  /// A sentence for each pin of several operations that names none.
  std::vector<std::string> idle(const ir::Function& function) const;

 private:
  std::vector<std::pair<std::string, const kernel::Device*>> pins_;
};

/// The devices that a configuration allows.
struct Devices {
  std::vector<const kernel::Device*> list;  ///< best first, `reference` last
  DevicePins pins;
  std::vector<std::string> remarks;  ///< on devices that are asked for but absent
};
/// Errors: not_found for devices that do not exist or are not among the compute units.
Result<Devices> devices_for(const ModelConfiguration& configuration);
/// The same of these devices.
Result<Devices> devices_for(const ModelConfiguration& configuration, std::vector<const kernel::Device*> all);
/// The rates by which a model's units are compared.
struct ModelRates {
  std::shared_ptr<const kernel::Rates> rates;  ///< nullptr: the table
  std::string remark;                          ///< why there are none, or why they cannot be kept
};
/// From the configuration's file; units that it lacks are measured and added. Only where there is a device with a
/// memory of its own.
ModelRates rates_for(const ModelConfiguration& configuration, std::span<const kernel::Device* const> devices,
                     int threads);
/// "cpu", "gpu", "neuralEngine".
std::string_view name_of(kernel::ComputeUnit unit);

/// Throws invalid_argument when the system lacks one of the processors.
void check_processors(std::span<const int> processors);

/// How the kernels of a model are chosen, and the file that remembers it.
struct KernelCache {
  std::shared_ptr<plan::KernelChoices> choices;  ///< nullptr: the kernels' rules decide
  std::string path;                              ///< empty: no file
  runtime::KernelMachine machine;
  std::string remark;  ///< why the file is of no use; empty: it is, or there is none
  /// Writes what was measured since the last time. Error io.
  Status save() const;
};
/// A file that cannot be used is a remark and a line on standard error. Error not_found: the user has no folder for it.
Result<KernelCache> kernel_cache_for(const ModelConfiguration& configuration,
                                     std::span<const kernel::Device* const> devices);
/// Error not_found: a pin for an operation that `function` does not have.
Status check_pins(const plan::KernelChoices& choices, const ir::Function& function);

/// The packed weights that earlier loads of a model kept.
struct PackedWeights {
  std::string folder;
  std::shared_ptr<plan::PackedCache> cache;         ///< nullptr: none
  std::vector<const kernel::CodeCache*> compilers;  ///< devices that keep compiled kernels in the folder
  /// Writes what is new. That it could not is a remark.
  void save() const;
  /// Says on standard error what is wrong with the file, and notes when it was used.
  void tell() const;
};
/// `model`: its path; empty: it has none. Error not_found: the user has no folder for it.
Result<PackedWeights> packed_weights_for(const ModelConfiguration& configuration, const std::string& model,
                                         std::span<const kernel::Device* const> devices, int threads);
/// A line on standard error, once for each text: many models may name one file.
void warn(const std::string& text);

/// The same function for inputs of rank 5 or for some of its outputs, each made when it is first asked for. They share
/// the packed weights. Thread-safe.
class Variants {
 public:
  struct Key {
    bool sequences = false, batches = false;  ///< inputs of rank 5 with these dimensions unknown
    bool rows = false;                        ///< inputs with an axis of rows (ImportOptions::rows)
    std::vector<std::string> outputs;         ///< in the order of the description; empty: all
    friend bool operator==(const Key&, const Key&) = default;
  };
  using Made = Result<std::shared_ptr<const runtime::Model>>;
  /// The variant for `key`; `make()` when there is none. Only the last used of those with fewer outputs are kept.
  Made get(const Key& key, const std::function<Made()>& make);

 private:
  struct Variant {
    Key key;
    std::once_flag once;
    std::optional<Made> model;
  };
  std::mutex mutex_;
  std::vector<std::shared_ptr<Variant>> all_;  ///< last used last
};

/// For traces: that values moved between the caller's memory and the session's, and why.
class DataCopy {
 public:
  DataCopy() : start_(trace::is_on() ? trace::now() : -1) {}
  bool is_recorded() const { return start_ >= 0; }
  /// It ends now. `kind`: "convert" or "copy".
  void record(std::string_view name, std::string_view kind, size_t bytes, std::string_view reason) const {
    trace::slice(trace::Lane::data, trace::label(name, kind, {{"bytes", bytes}, {"reason", reason}}), start_,
                 trace::now());
  }

 private:
  int64_t start_;
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
/// `times`: seconds and runs of each step, nullptr when not measured.
ComputePlan report(const runtime::Model& model, const plan::Plan& plan, const StepTimes* times);
OperationList operations(const runtime::Model& model);

/// Text form of MIL with the program's own types as the description.
Result<import::ImportedModel> import_text(const std::string& text, const std::map<std::string, Bytes>& weights,
                                          const std::shared_ptr<MemoryBudget>& budget);

}  // namespace moka::api

namespace moka {

struct State::Impl {
  std::vector<std::pair<std::string, ir::Tensor>> buffers;
  std::atomic<bool> in_use{false};
};

struct __attribute__((visibility("hidden"))) Model::Impl {
  /// What the model is imported from, kept to import it again.
  struct Source {
    std::optional<format::ModelFile> file;  ///< none: text and weights
    std::string path;                       ///< of the file; empty: it is in memory
    std::string text;
    std::map<std::string, Bytes> weights;
    std::shared_ptr<plan::PackedStore> packed = std::make_shared<plan::PackedStore>();
    Result<import::ImportedModel> import(const import::ImportOptions& options) const;
  };
  /// Destroyed last, when the model's many small allocations are free: the heap would keep them.
  struct TrimHeap {
    ~TrimHeap() { trim_heap(); }
  } trim_heap_at_end;
  ModelConfiguration configuration;
  ModelDescription description;
  FunctionDescription function;
  LoadTimes times;
  std::shared_ptr<const runtime::Model> model;
  std::shared_ptr<const Source> source;

  runtime::CompileOptions compile_options;
  api::KernelCache kernel_cache;
  api::PackedWeights packed_weights;
  std::vector<std::string> device_remarks;
  mutable std::atomic<trace::ModelId> trace_model{0};
  bool sequences_only = false;  ///< `model` itself takes inputs of rank 5
  mutable api::Variants variants;

  static std::shared_ptr<const Impl> make(std::shared_ptr<const Source> source, const ModelConfiguration& configuration,
                                          std::shared_ptr<MemoryBudget> budget, LoadTimes times);
  /// `path`: empty for what is in memory.
  static std::shared_ptr<const Impl> from_file(
      const std::string& path, const std::function<Result<format::ModelFile>(const format::OpenOptions&)>& open,
      const ModelConfiguration& configuration);
  /// Whose lanes predictions are on in traces.
  trace::ModelId traced() const;
  /// The one for inputs with these leading dimensions and these outputs.
  Result<std::shared_ptr<const runtime::Model>> model_for(const api::Leading& leading,
                                                          const std::vector<std::string>& outputs) const;
  /// The one that takes tables. Error unsupported: this model predicts row by row.
  Result<std::shared_ptr<const runtime::Model>> rows_model() const;
  /// What predicts these inputs.
  struct Chosen {
    std::shared_ptr<const runtime::Model> model;
    bool rank5 = false;  ///< it takes inputs of rank 5
  };
  /// The model for these inputs and outputs; `types` become those of its function's inputs and states.
  Result<Chosen> choose(const Features& inputs, const std::vector<std::string>& outputs,
                        std::vector<ir::Type>& types) const;
  /// The error of planning a prediction of these inputs.
  Status plans(const Features& inputs) const;
  /// Whether arrays for the input may be [sequence, batch, C, H, W].
  bool takes_rank5(std::string_view input) const;
  /// What a prediction ran.
  struct Ran {
    std::shared_ptr<const runtime::Model> model;
    std::shared_ptr<const plan::Plan> plan;
  };
  /// `observed`: `trace` is to see the values that devices compute.
  Status predict(const Features& inputs, Features& outputs, const PredictionOptions& options, runtime::TraceSink* trace,
                 Ran* ran, bool observed = false) const;
};

}  // namespace moka
