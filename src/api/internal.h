// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/memory.h"
#include "boundary/arrays.h"
#include "boundary/descriptions.h"
#include "boundary/errors.h"
#include "boundary/inputs.h"
#include "boundary/outputs.h"
#include "explaining/pins.h"
#include "explaining/report.h"
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
#include "sampling/fitting.h"
#include "trace/present.h"
#include "trace/trace.h"

/// Connects the public types with the library's own.
namespace moka::api {

using boundary::array_in;
using boundary::check_array_shape;
using boundary::check_numbers;
using boundary::check_whole;
using boundary::core_ml_name;
using boundary::default_type;
using boundary::default_value;
using boundary::from_ir;
using boundary::given_type;
using boundary::has_default_at_limit;
using boundary::image_in;
using boundary::input_type;
using boundary::lacks_data;
using boundary::Leading;
using boundary::leading_of;
using boundary::new_array;
using boundary::pixels_of;
using boundary::plane_order;
using boundary::raise;
using boundary::reclassified;
using boundary::set_given;
using boundary::set_input_value;
using boundary::store_output;
using boundary::tell_caught;
using boundary::to_array;
using boundary::to_ir;
using boundary::to_public;
using boundary::unwrap;
using boundary::view_of;
using explaining::DevicePins;
using explaining::operations;
using explaining::report;
using explaining::StepTimes;

ModelStructure to_public(import::Outline outline);

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

/// What a trace calls a model.
std::string trace_name(const std::string& path, const ModelConfiguration& configuration);

/// A load as a trace shows it: on lanes of its own, which are the model's from then on.
class TracedLoad {
 public:
  TracedLoad(const std::string& path, const ModelConfiguration& configuration);

 private:
  trace::Use use_;
  trace::Span span_;
};

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
  mutable trace::Present present;
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
  /// Error invalid_argument: a name that no output has.
  Status check_outputs(const std::vector<std::string>& names) const;
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
  using Fitting = sampling::Fitting;
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
                 Ran* ran, bool observed = false, runtime::CaptureSink* capture = nullptr) const;
  /// One result for each item. An error names it: `what` and its place, counted from `first`.
  std::vector<Features> predict_batch(std::span<const Features> inputs, const PredictionOptions& options,
                                      std::string_view what, size_t first) const;
};

}  // namespace moka
