// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "moka/build.h"
#include "moka/model.h"

/// Updates of models: training on new examples. docs/updatable.md says which models can be updated.
namespace moka {

/// Core ML's MLUpdateProgressEvent.
enum class UpdateEvent : uint8_t { training_begin, mini_batch_end, epoch_end };
MOKA_EXPORT std::string_view to_string(UpdateEvent event);  ///< Core ML's names: "trainingBegin"

/// Values by Core ML's keys: "learningRate", "miniBatchSize", "momentum", "beta1", "beta2", "eps", "epochs", "shuffle",
/// "seed", "numberOfNeighbors".
using UpdateParameters = std::map<std::string, std::variant<int64_t, double, bool>, std::less<>>;

/// Core ML's metrics of an update.
struct UpdateMetrics {
  double loss = 0;           ///< of the mini-batch before its step; at the end of an epoch, the mean over its examples
  int64_t epoch = 0;         ///< from 0
  int64_t mini_batch = 0;    ///< in its epoch, from 0
  int64_t mini_batches = 0;  ///< of the epoch
};

/// Core ML's MLBatchProvider: the examples, each with values for UpdateDescription::training_inputs.
struct MOKA_EXPORT UpdateExamples {
  size_t count = 0;
  /// Returns an example. Called on the thread of UpdateTask::run, again for each epoch unless the example is kept in
  /// memory. May throw.
  std::function<Features(size_t index)> read;
  /// Returns what is in memory of an example, such as its label, without those values that take time to read. If it is
  /// given, UpdateTask::run looks at it for all examples before it changes a weight. May throw.
  std::function<Features(size_t index)> known;
  /// Optional, for nearest-neighbors classifiers, which it makes faster: writes the numbers of an example and its label
  /// as the classifier has it and returns true, or returns false so that `read` is called. May throw.
  std::function<bool(size_t index, std::span<float> numbers, std::variant<std::string, int64_t>& label)> read_sample;

  UpdateExamples() = default;
  UpdateExamples(size_t count, std::function<Features(size_t index)> read) : count(count), read(std::move(read)) {}
  /// All examples, in memory.
  UpdateExamples(std::vector<Features> all);
};

/// Core ML's MLUpdateContext.
class MOKA_EXPORT UpdateContext {
 public:
  UpdateEvent event = UpdateEvent::training_begin;
  UpdateMetrics metrics;
  UpdateParameters parameters;  ///< those of the next mini-batch
  bool is_cancelled = false;    ///< UpdateTask::cancel ended the run

  /// The model with the weights that it has now. The context that a handler gets throws invalid_argument when the
  /// handler has returned; the one that UpdateTask::run returns has weights of its own.
  ModelSource source() const;
  /// The same model, ready to predict. Model::parameter gives its new weights.
  Model model(const ModelConfiguration& configuration = {}) const;
  /// Writes the model: an .mlmodel file, an .mlpackage or an .mlmodelc folder, as the extension of `path` says. Throws
  /// what ModelSource::save and compile_model throw.
  void save(const std::filesystem::path& path, Overwrite overwrite = Overwrite::own_kind) const;

  struct Impl;
  explicit UpdateContext(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

struct UpdateOptions {
  UpdateParameters parameters;  ///< instead of the model's defaults
  /// Called when training begins, after each mini-batch, and after each epoch, on the thread of UpdateTask::run. May
  /// call UpdateTask::resume and UpdateTask::cancel. What it throws ends the run.
  std::function<void(const UpdateContext& context)> progress;
  /// Threads and memory of the training. It runs on the CPU, or on ModelConfiguration::device as far as that can.
  ModelConfiguration configuration;
  /// Bytes that the task may keep of what the layers in front of the updatable ones compute from examples.
  size_t kept_bytes = size_t{1} << 30;
};

/// Core ML's MLUpdateTask: trains an updatable network or classifier, or the last model of a pipeline. It changes no
/// file: UpdateContext::save writes the new model. Every function throws Exception. Used by one thread at a time, but
/// for cancel.
class MOKA_EXPORT UpdateTask {
 public:
  /// Opens a model of any kind of file. Throws what opening a model throws; invalid_argument (the model is not
  /// updatable, a parameter is not allowed, there are no examples); malformed (the model breaks a rule for updates);
  /// unsupported (a layer or an input that Moka cannot train).
  UpdateTask(const std::filesystem::path& path, UpdateExamples examples, UpdateOptions options = {});
  UpdateTask(const ModelSource& model, UpdateExamples examples, UpdateOptions options = {});

  /// Trains, and returns the new model. Looks at UpdateExamples::known of all examples before. After cancel it returns
  /// the model as it is then, and another call goes on. Throws invalid_argument (an example that does not fit, which is
  /// named; the task is running already), data (a number that is not finite, a loss that diverges), and what
  /// predictions throw.
  UpdateContext run();
  /// In a handler, or while the task is not running: changes parameters from the next mini-batch on. Throws
  /// invalid_argument.
  void resume(const UpdateParameters& parameters);
  /// The training stops before the next mini-batch. Called in a handler or on any thread.
  void cancel();

  const UpdateDescription& description() const;
  /// Where each operation of a training step runs, and why: loss, gradients and optimizer behind the layers that learn,
  /// for mini-batches of the size of the last one. Throws invalid_argument before the first mini-batch, and for a
  /// nearest-neighbors classifier.
  ComputePlan compute_plan() const;

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace moka
