// SPDX-License-Identifier: Apache-2.0
#include "update/weights.h"

#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "editing/features.h"
#include "editing/fields.h"
#include "editing/updatable.h"

namespace moka::update {

namespace {

using editing::Message;
using format::Scalar;
using Numbers = std::span<const float>;

Status set_numbers(Message holder, const std::string& field, Numbers numbers) {
  Message weight = MOKA_TRY(holder.edit(field));
  for (const char* other : {"float16Value", "rawValue", "quantization"}) MOKA_TRY(weight.clear(other));
  return weight.set_packed(
      "floatValue", Bytes::from(std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes())));
}

Result<Numbers> finite_numbers(const std::string& name, const ir::Tensor& tensor) {
  const Numbers all = tensor.as<float>();
  for (const float v : all)
    if (!std::isfinite(v)) return fail(ErrorCode::data, "weights '", name, "': expected finite numbers, got ", v);
  return all;
}

/// How the gates of a recurrent layer are stacked, in the order of MIL, and where Core ML keeps them.
struct Gates {
  const char* suffix;  ///< of the weights' name
  std::array<const char*, 4> fields;
};
constexpr Gates kGates[] = {
    {"_weight_ih",
     {"inputGateWeightMatrix", "forgetGateWeightMatrix", "outputGateWeightMatrix", "blockInputWeightMatrix"}},
    {"_weight_hh",
     {"inputGateRecursionMatrix", "forgetGateRecursionMatrix", "outputGateRecursionMatrix",
      "blockInputRecursionMatrix"}},
    {"_bias", {"inputGateBiasVector", "forgetGateBiasVector", "outputGateBiasVector", "blockInputBiasVector"}},
    {"_peephole", {"inputGatePeepholeVector", "forgetGatePeepholeVector", "outputGatePeepholeVector", nullptr}},
};

Status set_gates(Message lstm, const std::string& layer, const std::string& name, Numbers numbers) {
  Message params = MOKA_TRY(lstm.edit("params"));
  const auto flag = [&](const char* field) -> Result<bool> {
    const auto values = MOKA_TRY(params.values(field));
    return !values.empty() && std::get<bool>(values[0]);
  };
  if (MOKA_TRY(flag("coupledInputAndForgetGate")))
    return fail(ErrorCode::unsupported, "layer '", layer,
                "' (uniDirectionalLSTM): the input gate and the forget gate are "
                "coupled, so their weights cannot be updated one by one");
  for (const Gates& gates : kGates) {
    if (!name.ends_with(gates.suffix)) continue;
    const size_t count = gates.fields[3] == nullptr ? 3 : 4, each = numbers.size() / count;
    const bool bias = gates.suffix == std::string_view("_bias");
    if (bias) MOKA_TRY(params.set("hasBiasVectors", Scalar(true)));
    Message weights = MOKA_TRY(lstm.edit("weightParams"));
    for (size_t i = 0; i < count; i++) {
      std::vector<float> gate(numbers.begin() + static_cast<std::ptrdiff_t>(i * each),
                              numbers.begin() + static_cast<std::ptrdiff_t>((i + 1) * each));
      // A reader adds 1 to the bias of the forget gate.
      if (bias && i == 1 && MOKA_TRY(flag("forgetBias")))
        for (float& v : gate) v -= 1;
      MOKA_TRY(set_numbers(weights, gates.fields[i], gate));
    }
    return {};
  }
  return fail(ErrorCode::internal, "layer '", layer, "' has no weights '", name, "'");
}

Status set_layer(const Message& message, const import::UpdatableLayer& layer,
                 const std::map<std::string, ir::Tensor>& values) {
  const std::string type = MOKA_TRY(message.which("layer"));
  const Message holder = MOKA_TRY(message.child(type));
  for (size_t i = 0; i < layer.parameters.size(); i++) {
    const auto it = values.find(layer.parameters[i]);
    if (it == values.end()) continue;
    const Numbers numbers = MOKA_TRY(finite_numbers(it->first, it->second));
    if (type == "uniDirectionalLSTM")
      MOKA_TRY(set_gates(holder, layer.name, it->first, numbers));
    else
      MOKA_TRY(set_numbers(holder, i == 0 ? "weights" : "bias", numbers));
  }
  return {};
}

}  // namespace

Status set_weights(format::ModelSource& source, const std::vector<import::UpdatableLayer>& layers,
                   const std::map<std::string, ir::Tensor>& values) {
  const Message changed = source.specification.copy();
  const Message learner = MOKA_TRY(editing::learner_of(changed));
  const Message network = MOKA_TRY(learner.child(MOKA_TRY(editing::kind_of(learner))));
  for (const Message& message : MOKA_TRY(network.children("layers"))) {
    const std::string name = MOKA_TRY(editing::text_of(message, "name"));
    for (const import::UpdatableLayer& layer : layers)
      if (layer.name == name) MOKA_TRY(set_layer(message, layer, values));
  }
  source.specification = changed;
  return {};
}

}  // namespace moka::update
