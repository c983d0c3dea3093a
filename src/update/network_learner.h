// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "format/model_file.h"
#include "import/update/update.h"
#include "training/trainer.h"

namespace moka::update {

/// An example as a prediction of NetworkLearner::front() takes it, and what the loss compares with.
struct Example {
  std::vector<ir::Type> types;              ///< of the inputs
  std::vector<runtime::InputValue> inputs;  ///< parallel to `types`
  ir::Tensor target;                        ///< cross entropy: int32 [1], the class; mean squared error: the values
  std::shared_ptr<const void> owner;        ///< keeps what `inputs` points to
};

/// An updatable neural network. What does not change, its front, is computed once for each example, as long as the
/// results fit into memory, and examples pass it one by one; only the head behind it sees mini-batches.
class NetworkLearner {
 public:
  struct Options {
    training::Optimizer optimizer = training::Optimizer::sgd;
    bool momentum = false;
    runtime::CompileOptions compile;      ///< devices, threads, budget
    size_t kept_bytes = size_t{1} << 30;  ///< of the front's results
  };
  /// Reads an example. Called on the thread of step().
  using Read = std::function<Status(size_t, Example&)>;

  /// `file`: the network itself. Errors: those of importing; invalid_argument (no weights depend on the loss).
  static Result<std::unique_ptr<NetworkLearner>> make(const format::ModelFile& file,
                                                      const import::UpdateDescription& update, Options options,
                                                      size_t examples, Read read);

  /// Inputs have an axis of examples, of unknown size.
  const runtime::Model& front() const { return *front_; }
  /// One step for a mini-batch. Returns the loss before it. Errors: those of `read` and of predictions, which name the
  /// example; data (examples of different sizes); the weights are as before.
  Result<double> step(std::span<const size_t> examples, const training::Numbers& numbers);
  /// How many numbers the loss reads of the first example, which is read for it: the number of classes for cross
  /// entropy.
  Result<int64_t> target_size();
  /// Whether the loss can compare a target with so many numbers. Error invalid_argument.
  Status check_target(const ir::Tensor& target, int64_t size) const;
  /// The current weights, by the names that UpdatableLayer has. Empty before the first step.
  const std::map<std::string, ir::Tensor>& parameters() const;
  /// What computes mini-batches like the last one; nullptr before the first.
  const runtime::Model* program() const { return trainer_ == nullptr ? nullptr : &trainer_->program(); }

 private:
  using Values = std::vector<ir::Tensor>;
  /// A value of which each example has a part. `count` of its elements along `axis` belong to one example; those of the
  /// examples of a mini-batch alternate.
  struct Stacked {
    ir::Type type;
    int axis = 0;
    int64_t count = 1;
  };
  /// The types of what the head reads, and of what the loss reads, for mini-batches of one size.
  struct Layout {
    std::vector<ir::Type> inputs;  ///< of one example
    size_t rows = 0;
    std::vector<Stacked> between;
    Stacked output;
  };
  NetworkLearner(Options options, Read read) : options_(std::move(options)), read_(std::move(read)) {}
  Result<std::vector<ir::Type>> between_types(const std::vector<ir::Type>& example, int64_t rows) const;
  Status check_positions(const ir::Type& output_of_one) const;
  Result<ir::Type> output_type(const std::vector<ir::Type>& between) const;
  Result<const Layout*> layout(const std::vector<ir::Type>& example, size_t rows);
  struct Computed {
    std::vector<ir::Type> types;
    Values between;
    ir::Tensor target;
  };
  Result<std::shared_ptr<const Computed>> compute(Example example) const;
  Result<std::vector<std::shared_ptr<const Computed>>> gather(std::span<const size_t> examples);
  Result<ir::Tensor> targets(const Layout& layout, std::span<const size_t> examples,
                             std::span<const std::shared_ptr<const Computed>> rows) const;

  Options options_;
  Read read_;
  import::LossLayer loss_;
  import::ImportedModel front_model_, head_;  ///< for inputs of any size
  std::vector<bool> is_rank5_;                ///< inputs [sequence, example, C, H, W]
  std::unique_ptr<runtime::Model> front_;
  std::unique_ptr<training::Trainer> trainer_;
  std::vector<Layout> layouts_;
  std::vector<std::shared_ptr<const Computed>> kept_;  ///< by example; null: not computed, or too large
  size_t kept_bytes_ = 0;
};

}  // namespace moka::update
