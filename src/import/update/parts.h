// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "format/proto/model.pb.h"
#include "import/update/update.h"

namespace moka::import::update {

/// The update parameters of a network of any kind; nullptr for other models.
const proto::NetworkUpdateParameters* parameters_of(const proto::Model& model);

/// A parameter of the optimizer or of the network, as messages. `number` or `integer` is set where it is present,
/// `flag` for shuffle.
struct Parameter {
  const char* name;
  const proto::DoubleParameter* number = nullptr;
  const proto::Int64Parameter* integer = nullptr;
  const proto::BoolParameter* flag = nullptr;
  bool needed = true;    ///< Core ML refuses an update without it
  bool positive = true;  ///< of integers: Core ML refuses others
};
/// Also those that are absent.
std::vector<Parameter> optimizer_parameters(const proto::Optimizer& optimizer);
std::vector<Parameter> network_parameters(const proto::NetworkUpdateParameters& update);
Parameter neighbors_parameter(const proto::KNearestNeighborsClassifier& classifier);

/// "innerProduct" for a layer of that kind.
std::string layer_type(const proto::NeuralNetworkLayer& layer);

/// The values that a loss reads; empty for a loss of no known kind.
struct LossValues {
  std::string input, target;
};
LossValues values_of(const proto::LossLayer& loss);

/// Whether a training input is the same feature as an input.
bool is_same(const proto::FeatureDescription& a, const proto::FeatureDescription& b);

/// Checks of one kind of model.
Status check_network(const proto::Model& model, std::vector<std::string>& remarks);
Status check_neighbors(const proto::Model& model, const format::ModelFile& file);
/// A parameter's default and what is allowed.
Status check_parameter(const Parameter& parameter);

}  // namespace moka::import::update
