// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "editing/features.h"
#include "format/source.h"

/// Makes models updatable, with the messages that coremltools' builders write. A pipeline passes everything to its last
/// model.
namespace moka::editing {

/// The model that learns: the last one of a pipeline.
Result<Message> learner_of(const Message& model);
/// The update parameters of a network, added if they are absent. Error unsupported: the model is not a network.
Result<Message> update_of(const Message& model);

/// Marks layers of a network and their weights, or, without layers, the samples of a nearest-neighbors classifier.
/// Other layers stay marked. Errors: not_found (a layer), unsupported (its type, weights of float16, the kind of
/// model).
Status make_updatable(Message model, const std::vector<std::string>& layers);

struct Loss {
  std::string kind;   ///< "cross-entropy" or "mse"
  std::string input;  ///< a value of the network; empty: the result of the only softmax, or the only output
  std::string name = "loss";
};
/// Replaces the loss and the training inputs: the inputs of the model and the target. Errors: invalid_argument,
/// not_found (the value).
Status set_loss(format::ModelSource& source, const Loss& loss);

/// "sgd" or "adam", with coremltools' defaults: learning rate 0.01, mini batches of 10, momentum 0, beta1 0.9, beta2
/// 0.999, eps 1e-8.
Status set_optimizer(const Message& model, const std::string& optimizer);

/// A parameter by Core ML's name. A real number without a range may be from 0 to 1; an integer without a range or a set
/// may only be the default. Errors: invalid_argument (a name that the optimizer does not have, a default that is not
/// allowed).
struct ParameterValue {
  double value = 0;  ///< a flag: 0 or 1
  std::optional<std::pair<double, double>> range;
  std::vector<int64_t> allowed;
};
Status set_parameter(const Message& model, const std::string& name, const ParameterValue& value);

/// Whether an updatable model keeps the rules. Error malformed.
Status check_update(const format::ModelSource& source);

}  // namespace moka::editing
