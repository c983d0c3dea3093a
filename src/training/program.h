// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "import/importer.h"

namespace moka::training {

/// What training makes small.
struct Loss {
  enum class Kind : uint8_t {
    cross_entropy,       ///< -log of the probability of the right class; `input` comes from a softmax
    mean_squared_error,  ///< mean of (input - target)^2
  };
  Kind kind = Kind::cross_entropy;
  std::string input;  ///< a value of the function, by name, or one of its outputs
  /// An input of the training program: for cross_entropy the class of each row, int32 [rows]; for mean_squared_error a
  /// tensor like `input`.
  std::string target;
};

enum class Optimizer : uint8_t { sgd, adam };

struct ProgramOptions {
  std::vector<std::string> parameters;  ///< patterns of the weights that change
  std::vector<Loss> losses;             ///< the loss is their sum
  Optimizer optimizer = Optimizer::sgd;
  bool momentum = false;  ///< sgd keeps velocities
  /// Batch norms use the mean and variance of the mini-batch. Those in the model become parameters, running ones that
  /// move by this share in each step: PyTorch's momentum, 0.1 by default there. nullopt: they stay, and batch norms use
  /// them.
  std::optional<double> batch_statistics;
  /// Cheap operations compute their results again for the backward pass, which keeps fewer values and takes longer.
  bool recompute = false;
  std::vector<ir::Type> inputs;  ///< concrete, of the function's inputs, with all rows of a mini-batch
};

/// The loss among the outputs of a training program. The others are the new values of the parameters, by name.
inline constexpr const char* kLoss = "loss";

/// What the names of inputs begin with that are numbers of the optimizer.
inline const std::string kNumbers = "optimizer/";
/// Their names behind that: learning_rate; momentum for sgd with momentum; beta_1, beta_2,
/// epsilon and step (from 1) for adam.
std::vector<std::string> optimizer_inputs(const ProgramOptions& options);
/// Names of what the optimizer keeps for each parameter, as states "parameter/name".
std::vector<std::string> optimizer_states(const ProgramOptions& options);

/// Makes of a model's default function one that computes the loss, its gradients and one step of the optimizer. Its
/// inputs are those of the function, the targets and optimizer_inputs(). Errors: not_found (loss, weights), unsupported
/// (an operation without a gradient; a type), malformed.
Result<import::ImportedModel> make_training_program(import::ImportedModel model, const ProgramOptions& options);

}  // namespace moka::training
