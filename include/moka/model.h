#pragma once

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "moka/compute_plan.h"
#include "moka/description.h"
#include "moka/feature.h"
#include "moka/model_structure.h"

namespace moka {

/// Core ML's MLComputeUnits: the devices that may be asked.
enum class ComputeUnits : uint8_t { all, cpu_only, cpu_and_gpu, cpu_and_neural_engine };

/// A program's types are the minimum precision of its arithmetic.
enum class Precision : uint8_t {
  at_least,  ///< float16 values may be computed and kept in float32 (Core ML's own rule)
  exact,     ///< every value is rounded to its declared type
};

/// Which operations' kernels are timed while planning, to choose the fastest.
enum class MeasureKernels : uint8_t {
  no,
  missing,  ///< those of shapes that the kernel cache does not have
  all,      ///< of all shapes, once
};

/// Which device runs some operations, in place of the one that costs least.
struct Pin {
  /// A name in which "*" stands for any text ("conv_*"), a type ("type:softmax"), or what names begin with
  /// ("scope:encoder": "encoder", "encoder/conv", "encoder_conv").
  std::string operations;
  std::string device;  ///< its name ("cpu", "vulkan") or its unit ("gpu", "neuralEngine")
};

/// Pins as text, one a line: "conv_*=cpu". What follows "#" is a comment. Throws invalid_argument, which names the
/// line.
MOKA_EXPORT std::vector<Pin> parse_pins(std::string_view text);

/// Core ML's MLModelConfiguration.
struct ModelConfiguration {
  ComputeUnits compute_units = ComputeUnits::all;
  std::string function_name;  ///< empty: the default function
  Precision precision = Precision::at_least;
  int threads = 0;  ///< of one prediction; 0: one for each core, or of `processors`
  /// Where threads run that help the one that loads or predicts, which stays where its caller has bound it: numbers as
  /// the system counts them. Empty: where the caller's thread may run.
  std::vector<int> processors;
  /// Bytes that a model's own numbers may make Moka allocate, weights in mapped files not counted; 0: no limit.
  size_t memory_budget = 0;
  int64_t loop_limit = 1'000'000;  ///< iterations of one loop before the prediction fails
  size_t cached_shapes = 8;        ///< plans kept for different input shapes
  /// Bytes that arenas no prediction uses may keep, and as many for plans; the last one of each stays.
  size_t idle_memory = size_t{256} << 20;
  bool optimize = true;       ///< run the passes
  bool reuse_buffers = true;  ///< false: no two values share memory, for checking
  std::string device;         ///< only this device and `reference`, e.g. "reference"; empty: by compute_units
  /// The last pin that fits an operation counts. A name that no operation has fails the load.
  std::vector<Pin> pins;
  /// A pinned operation that its device refuses fails the load, and a device that is lost or full while it runs fails
  /// the prediction. Otherwise the operation or the prediction moves to another device, the CPU at last, and remarks
  /// tell.
  bool strict = false;
  /// The file of this machine's rates by which units are chosen (measure_rates): a path, "default" (the user's own, in
  /// the cache folder) or "off": a conservative table. Empty: what the environment variable MOKA_RATES says, else
  /// "default".
  std::string rates;
  /// A file of rules that the Neural Engine's preview obeys beside its own; empty: what the environment variable
  /// MOKA_NEURAL_ENGINE_RULES says, else none.
  std::string neural_engine_rules;
  /// The file of measured times by which kernels are chosen: a path, "default" (the user's own, in the cache folder) or
  /// "off". Empty: what the environment variable MOKA_KERNEL_CACHE says, else off. A file that is damaged or of another
  /// processor or build is not used, which compute_plan's remarks tell; one that does not exist yet is empty.
  std::string kernel_cache;
  /// What is measured is also written to the kernel cache, if there is one; predicting for a new shape measures, too.
  MeasureKernels measure_kernels = MeasureKernels::no;
  /// A kernel, e.g. "cpu.conv.onednn", for an operation's name or a shape as PlannedOperation::shape says it. Loading
  /// fails where it does not exist or cannot run the operation.
  std::map<std::string, std::string> pinned_kernels;
  /// A folder that keeps weights packed for kernels: the first load of a model from a file writes them there, later
  /// ones map them. A path, "default" (the user's own, $XDG_CACHE_HOME/moka/packed) or "off". Empty: what the
  /// environment variable MOKA_CACHE says, else off. What is damaged, or of another model, processor or build, is made
  /// anew; a folder that cannot be written is a remark of compute_plan and a line on standard error.
  std::string cache;
  /// Told the name of each operation before its kernels are timed, on the thread that plans. Optional.
  std::function<void(std::string_view operation)> measuring;
};

/// Core ML's MLModelAsset: a model in memory.
struct ModelAsset {
  std::vector<std::byte> specification;                 ///< the bytes of an .mlmodel
  std::map<std::string, std::vector<std::byte>> blobs;  ///< weight files by name, e.g. "weights/weight.bin"
};

/// A model in memory that somebody else owns, which is not copied: weights are used where they lie.
struct ModelAssetView {
  std::span<const std::byte> specification;
  std::map<std::string, std::span<const std::byte>> blobs;
  /// Keeps all of it alive. Null: it must outlive the model, its copies and their states.
  std::shared_ptr<const void> owner;
};

/// Core ML's MLState: the mutable buffers of a stateful model. Belongs to one prediction at a time.
class MOKA_EXPORT State {
 public:
  /// A copy of the buffer `name`. Throws not_found.
  MultiArray read(std::string_view name) const;
  /// Converts and copies. Throws not_found, invalid_argument (shape).
  void write(std::string_view name, const MultiArray& value);
  std::vector<std::string> names() const;
  /// Other buffers with the same elements.
  State copy() const;

  struct Impl;
  explicit State(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

struct PredictionOptions {
  State* state = nullptr;  ///< required by stateful models
  /// Computes these outputs alone; operations that only others need do not run. Empty: every output.
  std::vector<std::string> outputs;
  /// Gets a sentence for each thing that went otherwise than planned, such as a device that was lost. Optional.
  std::vector<std::string>* remarks = nullptr;
};

/// Where the time of loading went, in seconds.
struct LoadTimes {
  double open = 0, import = 0, passes = 0, plan = 0, total = 0;
  double pack = 0;  ///< weights packed and code made for kernels, on all threads
  size_t packed_bytes = 0;
  size_t cached_bytes = 0;  ///< of weights that were in the cache, packed
};

/// What an operation computed: its name in the source model, the name of the value, its elements.
using Intermediate = std::function<void(std::string_view operation, std::string_view value, const MultiArray& array)>;

/// Core ML's MLModel: immutable, safe to use from many threads at once. Every function throws Exception.
class MOKA_EXPORT Model {
 public:
  /// Loads an .mlmodel file, an .mlpackage or an .mlmodelc folder.
  static Model load(const std::string& path, const ModelConfiguration& configuration = {});
  static Model load(ModelAsset asset, const ModelConfiguration& configuration = {});
  static Model load(const ModelAssetView& asset, const ModelConfiguration& configuration = {});
  /// Loads a program in the text form of MIL. Inputs and outputs are described by the program's own types; `weights`
  /// resolves BLOBFILE paths.
  static Model from_mil(const std::string& text, const ModelConfiguration& configuration = {},
                        std::map<std::string, std::vector<std::byte>> weights = {});

  /// The same model under another configuration, from the file as it was opened.
  Model configured(const ModelConfiguration& configuration) const;

  /// What a model says of itself, without loading it; also of models that Moka refuses to run.
  static ModelDescription describe(const std::string& path);
  /// The same with the structure and the sizes of the weights. Takes milliseconds: weights are not read. Throws where
  /// there is no model at all: not_found, io, malformed.
  static ModelOutline outline(const std::string& path);

  const ModelDescription& description() const;
  /// Inputs, outputs and states of the loaded function.
  const FunctionDescription& function() const;
  const ModelConfiguration& configuration() const;
  const LoadTimes& load_times() const;
  /// The file that the configuration's kernel_cache stands for; empty: none.
  const std::string& kernel_cache_file() const;
  /// The file in the configuration's cache that keeps this model's packed weights; empty: none.
  std::string cache_file() const;

  /// Every input by its name. Missing inputs must be optional. Returns every output of the description. Where a neural
  /// network of the legacy mapping describes [C] or [C, H, W], arrays may also be [sequence, batch, C, H, W].
  Features predict(const Features& inputs, const PredictionOptions& options = {}) const;
  /// Writes into the values that `outputs` holds (output backings): multi-arrays of the declared element type and of
  /// the shape that the prediction gives. Outputs that are absent or without a value are filled in. When all are given,
  /// predicting for a shape seen before allocates no memory.
  void predict(const Features& inputs, Features& outputs, const PredictionOptions& options = {}) const;
  /// Predicts each of `inputs`, several at the same time where there are threads. The results are those of predict for
  /// each item. `options` hold for all. Predictions that share a state run one after the other. Errors name the first
  /// item that fails.
  std::vector<Features> predict_batch(std::span<const Features> inputs, const PredictionOptions& options = {}) const;
  std::future<Features> predict_async(Features inputs) const;
  /// Predicts every row of a table. `columns` has a value for each input: an array whose first axis counts the rows,
  /// which is [rows] for numbers and [rows, ...] for arrays of the described shape, or a sequence of strings or
  /// integers. Optional inputs may be absent. Returns columns likewise: the probabilities of a classifier are a matrix
  /// of doubles, columns in the order of the description's class labels. The results are those of predict for each row.
  /// Classic models take many rows at once; other models predict the rows as predict_batch does. Throws what predict
  /// throws, naming the row, and invalid_argument where columns differ in their number of rows.
  Features predict_rows(const Features& columns) const;

  /// Inputs as random_inputs makes them, of shapes that this model can run: where the default ones contradict it,
  /// others that the description allows are tried.
  Features random_inputs(uint64_t seed = 1) const;

  /// New buffers, zero-filled.
  State new_state() const;

  /// How a prediction of these inputs runs; empty inputs: of the default shapes. Nothing is predicted unless
  /// `predictions` says how many are to be measured: so many with every operation timed, and so many without, after
  /// one that is not counted. `outputs`: as in PredictionOptions.
  ComputePlan compute_plan(const Features& inputs = {}, int predictions = 0,
                           const std::vector<std::string>& outputs = {}) const;
  /// Predicts once and hands over what every operation that runs computed.
  Features intermediates(const Features& inputs, const Intermediate& observe,
                         const PredictionOptions& options = {}) const;
  /// The operations of the loaded function, after the passes.
  OperationList operations() const;
  /// What the model consists of, as its file says it.
  ModelStructure structure() const;
  /// The program as MIL text: as imported, or after the passes.
  std::string mil(bool optimized = false) const;

  struct Impl;

 private:
  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

/// Sets what is called with each warning, such as that a cache cannot be used: once for each text, on the thread that
/// loads or predicts. Without a handler a warning is a line on standard error.
MOKA_EXPORT void set_warning_handler(std::function<void(const std::string& text)> handler);

/// Inputs of the description's default shapes filled with reproducible numbers: multi-arrays uniform in [0, 1)
/// (integers 0 or 1), images of noise, numbers 1. What the description says of a loaded model is kept to: categories,
/// the range of indices, lengths of sequences; inputs with a default value have none.
MOKA_EXPORT Features random_inputs(const FunctionDescription& function, uint64_t seed = 1);

}  // namespace moka
