// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "import/neuralnetwork/network.h"

/// Shared by recurrent layers.
namespace moka::import::nn {

using Weights = std::vector<const proto::WeightParams*>;

/// MIL's name of a recurrent layer's activation, with its parameters unless they are MIL's defaults. Writers may omit
/// the parameters (both are then 0); this means f(x) = x, tanh(x) and 0.2 x + 0.5.
Result<std::string> activation_name(Layer& l, const proto::ActivationParams& a);
/// Error malformed unless there are `n` activations.
Result<std::vector<std::string>> activation_names(
    Layer& l, const google::protobuf::RepeatedPtrField<proto::ActivationParams>& list, int n);

struct RecurrentSizes {
  int64_t input = 0, hidden = 0;
};
Result<RecurrentSizes> recurrent_sizes(Layer& l, uint64_t input, uint64_t hidden);

/// Stacks the matrices of the gates (vectors when `columns` is 0). `sign` may negate some of them.
Result<Tensor> stack_gates(Layer& l, const Weights& gates, int64_t hidden, int64_t columns, std::string_view what,
                           std::span<const float> sign = {});

/// The input as [steps, batch, size].
Result<Value*> sequence_of(Layer& l, int64_t size);
/// State input i as [batch, hidden]; zeros when the layer has no such input. `x`: the sequence.
Result<Value*> state_of(Layer& l, int i, Value* x, int64_t hidden);
/// Sets output i to [steps, batch, n].
Status set_sequence(Layer& l, int i, Value* y);
/// Sets output i, [1, batch, n, 1, 1], from [batch, n].
Status set_state(Layer& l, int i, Value* h);

}  // namespace moka::import::nn
