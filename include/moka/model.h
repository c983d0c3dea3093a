// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "moka/capture.h"
#include "moka/compute_plan.h"
#include "moka/description.h"
#include "moka/feature.h"
#include "moka/model_structure.h"

namespace moka {

/// Core ML's MLComputeUnits: the devices that the planner may use. A driver that computes on the CPU is not a GPU;
/// naming its device uses it (ModelConfiguration::device, Pin::device).
enum class ComputeUnits : uint8_t { all, cpu_only, cpu_and_gpu, cpu_and_neural_engine };

/// How exactly arithmetic follows the program's types.
enum class Precision : uint8_t {
  at_least,  ///< float16 values may be computed and kept in float32 (Core ML's own rule)
  exact,     ///< every value is rounded to its declared type
};

/// Which operations have their kernels timed during planning to find the fastest.
enum class MeasureKernels : uint8_t {
  no,
  missing,  ///< shapes that are not in the kernel cache
  all,      ///< all shapes, once each
};

/// Runs some operations on a given device instead of the cheapest one.
struct Pin {
  /// A name, in which "*" matches any text ("conv_*"), a type ("type:softmax"), or a scope: "scope:encoder" matches
  /// "encoder", "encoder/conv" and "encoder_conv". Names and types are those of the model's operations or, in a neural
  /// network, of its layers, and those of the operations that they became: "type:innerProduct" matches all operations
  /// that come from such layers, "type:linear" all that multiply so.
  std::string operations;
  /// A device name ("cpu", "vulkan"; "vulkan1" is the second card) or a unit ("gpu", which is hardware;
  /// "neuralEngine").
  std::string device;
};

/// Parses pins, one per line: "conv_*=cpu". "#" begins a comment. Throws invalid_argument, which names the line.
MOKA_EXPORT std::vector<Pin> parse_pins(std::string_view text);

/// What an encrypted model asks for.
struct KeyRequest {
  std::string model;        ///< its path; empty for a model in memory
  bool passphrase = false;  ///< true: the passphrase; false: the text of identities, "AGE-SECRET-KEY-1..."
};
/// Returns a key, or an empty text for none. The text is overwritten after use.
using KeySource = std::function<std::string(const KeyRequest&)>;

/// How far loading is: `done` of `total` parts of a stage. The stages are "import" (operations or layers), "passes",
/// "plan" (operations) and "pack" (weights). Some may come more than once or not at all.
struct LoadProgress {
  std::string_view stage;
  size_t done = 0, total = 0;
};

/// Which devices compute, and how.
struct ComputeConfiguration {
  ComputeUnits compute_units = ComputeUnits::all;
  Precision precision = Precision::at_least;
  int threads = 0;  ///< threads per prediction, at most 1024; 0: one per core, or one per entry of `processors`
  /// Processor numbers of the operating system on which worker threads run. The thread that loads or predicts stays
  /// where its caller bound it. Empty: the workers run where the caller's thread may run.
  std::vector<int> processors;
  std::string device;  ///< use only this device and `reference`; empty: compute_units decides
  /// When several pins match an operation, the last one counts. A pin that matches no operation fails the load with
  /// not_found if `strict` is set. Otherwise a warning and a remark of compute_plan report it.
  std::vector<Pin> pins;
  /// True: the load fails when a pin matches no operation or a device refuses an operation pinned to it, and a
  /// prediction fails when a device is lost or runs out of memory. False: the work moves to another device, in the end
  /// to the CPU, and a remark reports it.
  bool strict = false;
  /// The file of this machine's rates (measure_rates), which decide between units: a path, "default" (the user's own,
  /// in the cache folder) or "off" (careful estimates). Empty: the environment variable MOKA_RATES, else "default".
  std::string rates;
  /// A file of additional rules for the Neural Engine preview. Empty: the environment variable
  /// MOKA_NEURAL_ENGINE_RULES, else none.
  std::string neural_engine_rules;
  int64_t loop_limit = 1'000'000;  ///< iterations of one loop before the prediction fails
};

/// Limits on a model's memory, and what it keeps there for later predictions and loads.
struct MemoryConfiguration {
  /// Limit in bytes on what a model can make Moka allocate, not counting weights in mapped files and what another model
  /// of the same file has packed; 0: no limit.
  size_t memory_budget = 0;
  size_t cached_shapes = 8;  ///< number of input shapes whose plans are kept
  /// Bytes that idle arenas may keep, and the same again for plans. The most recent one of each always stays.
  size_t idle_memory = size_t{256} << 20;
  /// Convolutions and matrix products keep weights as the model's file stores them and expand them in every prediction.
  /// Weights that are sparse or palettes of vectors are packed all the same.
  bool low_memory = false;
  /// Loading packs all weights, so that predictions take equally long from the first one on. Otherwise the first
  /// prediction reads weights of fp32 and fp16 from the file, and the following ones pack them.
  bool pack_while_loading = false;
  bool reuse_buffers = true;  ///< false: values never share memory; for debugging
  /// A folder that keeps weights packed for kernels. The first load of a model from a file writes them, later loads map
  /// them. A path, "default" (the user's own, $XDG_CACHE_HOME/moka/packed) or "off". Empty: the environment variable
  /// MOKA_CACHE, else off. An entry that is damaged, or from another model, processor or build, is rebuilt. When the
  /// folder cannot be written, a remark of compute_plan and a line on standard error report it.
  std::string cache;
};

/// How kernels are chosen.
struct KernelConfiguration {
  /// The file of measured times that choose kernels: a path, "default" (the user's own, in the cache folder) or "off".
  /// Empty: the environment variable MOKA_KERNEL_CACHE, else off. A missing file counts as empty. A file that is
  /// damaged, or from another processor or build, is ignored, and a remark of compute_plan reports it.
  std::string kernel_cache;
  /// New measurements are also written to the kernel cache, if there is one. Predicting for a new shape measures too.
  MeasureKernels measure_kernels = MeasureKernels::no;
  /// Maps the name of an operation, or a shape in the form of PlannedOperation::shape, to a kernel such as
  /// "cpu.conv.onednn". The load fails when the kernel does not exist or cannot run the operation.
  std::map<std::string, std::string> pinned_kernels;
  /// Called with the name of each operation before its kernels are timed, on the planning thread. Optional.
  std::function<void(std::string_view operation)> measuring;
};

/// What is loaded, and how loading ends early.
struct LoadConfiguration {
  std::string function_name;  ///< empty: the default function
  bool optimize = true;       ///< run the passes
  /// The weights that Model::with_parameters may replace: names, in which "*" matches any text ("encoder*weight"). A
  /// weight has the name of its constant; in a neural network it is "layer_weights", and a constant without a name is
  /// called "operation_parameter". The load fails with not_found when a name matches no weights.
  std::vector<std::string> parameters;
  /// The key of an encrypted model. Called while the model is loaded, on the loading thread, and not kept. Null: the
  /// function of set_key_source, and then the environment variables MOKA_IDENTITY (identities, or the path of a file
  /// with them), MOKA_PASSPHRASE and MOKA_PASSPHRASE_FILE.
  KeySource key;
  /// Ends loading with `cancelled` when a stop is requested, and with `deadline_exceeded` at that time. Both are looked
  /// at between operations, passes and packed weights. Not kept.
  std::stop_token stop;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  /// Called on the loading thread while it goes on, at most every few milliseconds, and at the ends of stages.
  /// Optional, not kept. What it throws leaves load.
  std::function<void(const LoadProgress&)> progress;
};

/// Core ML's MLModelConfiguration.
struct ModelConfiguration : ComputeConfiguration, MemoryConfiguration, KernelConfiguration, LoadConfiguration {};

/// Core ML's MLModelAsset: a model in memory.
struct ModelAsset {
  std::vector<std::byte> specification;                 ///< the bytes of an .mlmodel
  std::map<std::string, std::vector<std::byte>> blobs;  ///< weight files by name, e.g. "weights/weight.bin"
};

/// A model in memory that the caller owns. Nothing is copied: weights are used in place.
struct ModelAssetView {
  std::span<const std::byte> specification;
  std::map<std::string, std::span<const std::byte>> blobs;
  /// Keeps the memory alive. Null: the memory must outlive the model, its copies and their states.
  std::shared_ptr<const void> owner;
};

/// A model that the application reads, for example to decrypt it in its own way: the bytes of an .mlmodel, of a tar
/// archive with an .mlpackage or .mlmodelc, or of an encrypted model.
struct ModelReader {
  uint64_t size = 0;
  /// Fills `to` with the bytes from `offset` on. Called while the model is loaded, on the loading thread. May throw.
  std::function<void(uint64_t offset, std::span<std::byte> to)> read;
};

/// Core ML's MLState: the mutable buffers of a stateful model. Belongs to one prediction at a time.
class MOKA_EXPORT State {
 public:
  /// A copy of the buffer `name`. Throws not_found.
  MultiArray read(std::string_view name) const;
  /// Converts and copies `value` into the buffer. Throws not_found, invalid_argument (shape, or numbers that an integer
  /// buffer does not hold).
  void write(std::string_view name, const MultiArray& value);
  std::vector<std::string> names() const;
  /// A State with new buffers and the same elements.
  State copy() const;

  struct Impl;
  explicit State(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

struct PredictionOptions {
  State* state = nullptr;  ///< required by stateful models
  /// Computes only these outputs and skips operations that only other outputs need. Empty: every output.
  std::vector<std::string> outputs;
  /// Receives a sentence for each deviation from the plan, such as a lost device. Optional.
  std::vector<std::string>* remarks = nullptr;
  /// Ends the prediction with `cancelled` when a stop is requested, and with `deadline_exceeded` at that time. Both are
  /// looked at between operations on the CPU and before each submission to a GPU, and while the prediction waits for
  /// its turn. States are then as they were before.
  std::stop_token stop;
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

/// Weights that may be replaced.
struct ParameterDescription {
  std::string name;
  DataType type = DataType::float32;  ///< float16 or float32
  std::vector<int64_t> shape;
};

/// Where the time of loading went, in seconds.
struct LoadTimes {
  double open = 0, import = 0, passes = 0, plan = 0, total = 0;
  double pack = 0;          ///< packing weights and generating kernel code, on all threads
  size_t packed_bytes = 0;  ///< size of the weights packed while loading; later predictions pack others
  size_t cached_bytes = 0;  ///< size of the packed weights that came from the cache
  size_t shared_bytes = 0;  ///< size of the packed weights that another model of the same file had packed
};

/// Receives the result of an operation: the operation's name in the source model, the value's name, its elements.
using Intermediate = std::function<void(std::string_view operation, std::string_view value, const MultiArray& array)>;

/// Core ML's MLModel: immutable, safe to use from many threads at once. Every function throws Exception.
class MOKA_EXPORT Model {
 public:
  /// Loads an .mlmodel file, an .mlpackage or an .mlmodelc folder, or one of them encrypted (moka/encryption.h).
  static Model load(const std::filesystem::path& path, const ModelConfiguration& configuration = {});
  /// As load, without an exception.
  static Expected<Model> try_load(const std::filesystem::path& path,
                                  const ModelConfiguration& configuration = {}) noexcept;
  static Model load(ModelAsset asset, const ModelConfiguration& configuration = {});
  static Model load(const ModelAssetView& asset, const ModelConfiguration& configuration = {});
  /// Reads the model into memory that is not in dumps of the process and is overwritten when the model is freed.
  static Model load(const ModelReader& reader, const ModelConfiguration& configuration = {});
  /// Loads a program in the text form of MIL. The program's own types describe its inputs and outputs. `weights`
  /// resolves BLOBFILE paths.
  static Model from_mil(const std::string& text, const ModelConfiguration& configuration = {},
                        std::map<std::string, std::vector<std::byte>> weights = {});

  /// The same model under another configuration. Uses the file as it was first opened. Values of parameters stay,
  /// unless it loads another function.
  Model configured(const ModelConfiguration& configuration) const;

  /// The description in a model's file, without loading the model. Also works for models that Moka refuses to run.
  static ModelDescription describe(const std::filesystem::path& path);
  /// The description with the structure and the sizes of the weights. Takes milliseconds, because it reads no weights.
  /// Throws not_found, io or malformed when there is no model at all.
  static ModelOutline outline(const std::filesystem::path& path);

  // The overloads for temporary models, such as `Model::load(path).description()`, return copies.
  const ModelDescription& description() const&;
  ModelDescription description() &&;
  /// Inputs, outputs and states of the loaded function.
  const FunctionDescription& function() const&;
  FunctionDescription function() &&;
  const ModelConfiguration& configuration() const&;
  ModelConfiguration configuration() &&;
  const LoadTimes& load_times() const&;
  LoadTimes load_times() &&;
  /// The path of the kernel cache in use; empty: none.
  const std::string& kernel_cache_file() const;
  /// The file in the cache that keeps this model's packed weights; empty: none.
  std::string cache_file() const;

  /// Takes every input by name; only optional inputs may be missing. Arrays may have any element type, but those for
  /// integers must hold whole numbers that the described type has. Returns every output of the description. A neural
  /// network of the legacy mapping that describes [C] or [C, H, W] also accepts arrays [sequence, batch, C, H, W].
  Features predict(const Features& inputs, const PredictionOptions& options = {}) const;
  /// Writes into the values that `outputs` already holds (output backings): multi-arrays of the declared element type
  /// and of the resulting shape. Adds outputs that are absent or have no value. When `outputs` is complete, a
  /// prediction for a known shape allocates no memory.
  void predict(const Features& inputs, Features& outputs, const PredictionOptions& options = {}) const;
  /// Predicts each item of `inputs`, several at a time when there are threads. Each result equals that of predict.
  /// `options` apply to all items. Predictions that share a state run one after another. An error names the first item
  /// that fails.
  std::vector<Features> predict_batch(std::span<const Features> inputs, const PredictionOptions& options = {}) const;
  /// Queues a prediction, which threads of the library compute in the order of the calls, as many at once as there are
  /// processors. Predictions with the same state run one after another. What arrays and images borrow, and `remarks`,
  /// must live until the result is there. A stop also ends the waiting. Dropping the future does not wait.
  std::future<Features> predict_async(Features inputs, const PredictionOptions& options = {}) const;
  /// The same with a function that receives the outputs, or an exception and no outputs. It is called once, on a thread
  /// of the library. If the system starts no thread, or the process ends, this call calls it before it returns. It must
  /// not throw.
  void predict_async(Features inputs, const PredictionOptions& options,
                     std::function<void(Features outputs, std::exception_ptr failure)> done) const;
  /// Predicts every row of a table. `columns` has a value for each input: an array whose first axis counts the rows
  /// ([rows] for numbers, [rows, ...] for arrays of the described shape), or a sequence of strings or integers.
  /// Optional inputs may be absent. Returns columns of the same form; a classifier's probabilities are a matrix of
  /// doubles whose columns follow the description's class labels. Each row gives the result of predict. Classic models
  /// compute many rows at once, other models predict the rows as predict_batch does. Throws what predict throws, naming
  /// the row, and invalid_argument when columns differ in their number of rows. `options` apply to all rows; a stop
  /// ends the table. Rows that share a state run one after another.
  Features predict_rows(const Features& columns, const PredictionOptions& options = {}) const;

  /// Like moka::random_inputs, with shapes that this model can run: when the default shapes contradict the model, it
  /// looks for other shapes that the description allows, once for each model. Throws what predict throws for the
  /// default shapes when it finds none; the message says which it tried.
  Features random_inputs(uint64_t seed = 1) const;

  /// The weights that ModelConfiguration::parameters names and the loaded function reads, in its order.
  std::vector<ParameterDescription> parameters() const;
  /// The value of a parameter. Throws not_found.
  MultiArray parameter(std::string_view name) const;
  /// The same model with other values of these parameters; the others stay, and so does this model. Both share the
  /// program and everything that kernels made from weights that stay: only new weights are packed again, when they are
  /// first used. Values are converted to the parameter's type and copied. Throws not_found, invalid_argument (shape, or
  /// numbers that are infinite in the parameter's type).
  Model with_parameters(const std::map<std::string, MultiArray>& values) const;

  /// New buffers, zero-filled.
  State new_state() const;

  /// How a prediction of these inputs runs; empty `inputs`: the default shapes. With `predictions` above 0 it also
  /// measures: one warm-up, that many predictions with every operation timed, and that many without. `outputs`: as in
  /// PredictionOptions. `ranges`: the numbers that array inputs may have, by name; remarks tell which of them a
  /// narrower integer type does not hold.
  ComputePlan compute_plan(const Features& inputs = {}, int predictions = 0,
                           const std::vector<std::string>& outputs = {},
                           const std::map<std::string, std::pair<double, double>>& ranges = {}) const;
  /// The same for measured predictions that can end early: `predictions` is at least 1, and `options` apply to all of
  /// them. Without a state, those of a stateful model share a new one. Throws invalid_argument, and what predict
  /// throws.
  ComputePlan measure_plan(const Features& inputs, int predictions, const PredictionOptions& options = {}) const;
  /// What predictions run, command by command, with times, parameters and buffers. Empty `inputs`: random ones. Without
  /// a state, the predictions of a stateful model share a new one. Throws invalid_argument, and what predict throws.
  Capture capture(const Features& inputs = {}, const CaptureOptions& settings = {},
                  const PredictionOptions& options = {}) const;
  /// The text of one stage of the plan for these inputs (empty: the default shapes), for people and tests. Blocks of
  /// control flow follow. Errors: as compute_plan.
  std::string plan_text(PlanStage stage, const Features& inputs = {}) const;
  /// Predicts once and passes the result of every operation that runs to `observe`.
  Features intermediates(const Features& inputs, const Intermediate& observe,
                         const PredictionOptions& options = {}) const;
  /// The operations of the loaded function, after the passes.
  OperationList operations() const;
  /// The parts of the model as its file has them.
  ModelStructure structure() const;
  /// The program as MIL text: as imported, or after the passes.
  std::string mil(bool optimized = false) const;

  struct Impl;

 private:
  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

/// Queues work of the caller among asynchronous predictions, such as decoding a picture and predicting with it. `work`
/// is called once with these options on a thread of the library, or before this returns if the system starts no thread
/// or the process ends. Work with the same state runs one after another. `refusal`: why it must not predict (cancelled,
/// deadline_exceeded while it waited, out_of_budget); null: it may. It must not throw.
MOKA_EXPORT void queue_prediction(
    const PredictionOptions& options,
    std::function<void(const PredictionOptions& options, std::exception_ptr refusal)> work);

/// Sets the function that receives warnings, for example that a cache cannot be used. Each text is reported once, on
/// the thread that loads or predicts. Without a handler, warnings go to standard error.
MOKA_EXPORT void set_warning_handler(std::function<void(const std::string& text)> handler);

/// Inputs of the description's default shapes with reproducible values: multi-arrays uniform in [0, 1) (integers 0 or
/// 1), images of noise, numbers 1. Follows what the description of a loaded model restricts: categories, index ranges
/// and sequence lengths. Leaves out inputs that have a default value.
MOKA_EXPORT Features random_inputs(const FunctionDescription& function, uint64_t seed = 1);

}  // namespace moka
