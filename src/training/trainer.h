// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/model.h"
#include "training/program.h"

namespace moka::training {

struct TrainerOptions {
  ProgramOptions program;           ///< `inputs` is ignored
  runtime::CompileOptions compile;  ///< devices and threads
};

/// The numbers of an optimizer, by the names of optimizer_inputs(), without "step".
using Numbers = std::map<std::string, double>;

/// Improves the parameters of a model, one mini-batch after the other. It makes a plan for each size of a mini-batch.
/// Used by one thread at a time.
class Trainer {
 public:
  /// `import` gives the model afresh, whenever inputs have new types. `inputs`: their types for a first mini-batch.
  static Result<std::unique_ptr<Trainer>> make(std::function<Result<import::ImportedModel>()> import,
                                               std::vector<ir::Type> inputs, TrainerOptions options);

  /// One step. `arrays` holds the inputs of the function and the targets, by name. Returns the loss before it. Errors:
  /// not_found (an input is missing), and those of plans and predictions. Errors of what is given come before the first
  /// weight changes.
  Result<double> step(const std::map<std::string, ir::Tensor>& arrays, const Numbers& numbers);

  /// The current values, which later steps change in place.
  const std::map<std::string, ir::Tensor>& parameters() const { return parameters_; }
  int64_t steps() const { return steps_; }
  /// What computes mini-batches like the last one.
  const runtime::Model& program() const { return *last_; }

 private:
  struct Planned {
    std::unique_ptr<runtime::Model> model;
    int64_t version = 0;  ///< of the parameters
    std::vector<runtime::OutputMemory> outputs;
  };
  Trainer(std::function<Result<import::ImportedModel>()> import, TrainerOptions options)
      : import_(std::move(import)), options_(std::move(options)) {}
  /// Lets new values of parameters take the place of the old ones where the plan allows it.
  Status place_outputs(Planned& planned, const std::vector<ir::Type>& types);
  Result<Planned*> planned(const std::vector<ir::Type>& inputs);

  std::function<Result<import::ImportedModel>()> import_;
  TrainerOptions options_;
  std::vector<std::string> input_names_;  ///< of the model
  std::map<std::string, ir::Tensor> parameters_;
  std::map<std::string, runtime::StateValue> states_;
  std::vector<std::pair<std::vector<ir::Type>, Planned>> plans_;
  int64_t steps_ = 0;
  const runtime::Model* last_ = nullptr;
};

}  // namespace moka::training
