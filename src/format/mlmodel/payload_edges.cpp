// SPDX-License-Identifier: Apache-2.0
#include "format/mlmodel/payload_edges.h"

#include <array>
#include <cstddef>

namespace moka::format {
namespace {

// Grouped by `from`. Complete for the .proto files, which tools/check_proto.py verifies.
constexpr PayloadEdge edges[] = {
    {PayloadNode::Model, 200, PayloadNode::PipelineClassifier},
    {PayloadNode::Model, 201, PayloadNode::PipelineRegressor},
    {PayloadNode::Model, 202, PayloadNode::Pipeline},
    {PayloadNode::Model, 303, PayloadNode::NeuralNetworkRegressor},
    {PayloadNode::Model, 403, PayloadNode::NeuralNetworkClassifier},
    {PayloadNode::Model, 404, PayloadNode::KNearestNeighborsClassifier},
    {PayloadNode::Model, 500, PayloadNode::NeuralNetwork},
    {PayloadNode::Model, 502, PayloadNode::Program},
    {PayloadNode::PipelineClassifier, 1, PayloadNode::Pipeline},
    {PayloadNode::PipelineRegressor, 1, PayloadNode::Pipeline},
    {PayloadNode::Pipeline, 1, PayloadNode::Model},
    {PayloadNode::NeuralNetworkRegressor, 1, PayloadNode::NeuralNetworkLayer},
    {PayloadNode::NeuralNetworkClassifier, 1, PayloadNode::NeuralNetworkLayer},
    {PayloadNode::NeuralNetwork, 1, PayloadNode::NeuralNetworkLayer},
    {PayloadNode::Program, 2, PayloadNode::Program_FunctionsEntry},
    {PayloadNode::Program, 4, PayloadNode::Program_AttributesEntry},
    {PayloadNode::KNearestNeighborsClassifier, 1, PayloadNode::NearestNeighborsIndex},
    {PayloadNode::NeuralNetworkLayer, 100, PayloadNode::ConvolutionLayerParams},
    {PayloadNode::NeuralNetworkLayer, 130, PayloadNode::ActivationParams},
    {PayloadNode::NeuralNetworkLayer, 140, PayloadNode::InnerProductLayerParams},
    {PayloadNode::NeuralNetworkLayer, 150, PayloadNode::EmbeddingLayerParams},
    {PayloadNode::NeuralNetworkLayer, 160, PayloadNode::BatchnormLayerParams},
    {PayloadNode::NeuralNetworkLayer, 245, PayloadNode::ScaleLayerParams},
    {PayloadNode::NeuralNetworkLayer, 250, PayloadNode::BiasLayerParams},
    {PayloadNode::NeuralNetworkLayer, 290, PayloadNode::LoadConstantLayerParams},
    {PayloadNode::NeuralNetworkLayer, 400, PayloadNode::SimpleRecurrentLayerParams},
    {PayloadNode::NeuralNetworkLayer, 410, PayloadNode::GRULayerParams},
    {PayloadNode::NeuralNetworkLayer, 420, PayloadNode::UniDirectionalLSTMLayerParams},
    {PayloadNode::NeuralNetworkLayer, 430, PayloadNode::BiDirectionalLSTMLayerParams},
    {PayloadNode::NeuralNetworkLayer, 500, PayloadNode::CustomLayerParams},
    {PayloadNode::NeuralNetworkLayer, 605, PayloadNode::BranchLayerParams},
    {PayloadNode::NeuralNetworkLayer, 615, PayloadNode::LoopLayerParams},
    {PayloadNode::NeuralNetworkLayer, 1040, PayloadNode::EmbeddingNDLayerParams},
    {PayloadNode::NeuralNetworkLayer, 1045, PayloadNode::BatchedMatMulLayerParams},
    {PayloadNode::NeuralNetworkLayer, 1070, PayloadNode::LoadConstantNDLayerParams},
    {PayloadNode::NeuralNetworkLayer, 1350, PayloadNode::LayerNormalizationLayerParams},
    {PayloadNode::NeuralNetworkLayer, 1471, PayloadNode::Convolution3DLayerParams},
    {PayloadNode::Program_FunctionsEntry, 2, PayloadNode::Function},
    {PayloadNode::Program_AttributesEntry, 2, PayloadNode::Value},
    {PayloadNode::ConvolutionLayerParams, 90, PayloadNode::WeightParams},
    {PayloadNode::ConvolutionLayerParams, 91, PayloadNode::WeightParams},
    {PayloadNode::ActivationParams, 25, PayloadNode::ActivationPReLU},
    {PayloadNode::ActivationParams, 71, PayloadNode::ActivationParametricSoftplus},
    {PayloadNode::InnerProductLayerParams, 20, PayloadNode::WeightParams},
    {PayloadNode::InnerProductLayerParams, 21, PayloadNode::WeightParams},
    {PayloadNode::EmbeddingLayerParams, 20, PayloadNode::WeightParams},
    {PayloadNode::EmbeddingLayerParams, 21, PayloadNode::WeightParams},
    {PayloadNode::BatchnormLayerParams, 15, PayloadNode::WeightParams},
    {PayloadNode::BatchnormLayerParams, 16, PayloadNode::WeightParams},
    {PayloadNode::BatchnormLayerParams, 17, PayloadNode::WeightParams},
    {PayloadNode::BatchnormLayerParams, 18, PayloadNode::WeightParams},
    {PayloadNode::ScaleLayerParams, 2, PayloadNode::WeightParams},
    {PayloadNode::ScaleLayerParams, 5, PayloadNode::WeightParams},
    {PayloadNode::BiasLayerParams, 2, PayloadNode::WeightParams},
    {PayloadNode::LoadConstantLayerParams, 2, PayloadNode::WeightParams},
    {PayloadNode::SimpleRecurrentLayerParams, 10, PayloadNode::ActivationParams},
    {PayloadNode::SimpleRecurrentLayerParams, 30, PayloadNode::WeightParams},
    {PayloadNode::SimpleRecurrentLayerParams, 31, PayloadNode::WeightParams},
    {PayloadNode::SimpleRecurrentLayerParams, 32, PayloadNode::WeightParams},
    {PayloadNode::GRULayerParams, 10, PayloadNode::ActivationParams},
    {PayloadNode::GRULayerParams, 30, PayloadNode::WeightParams},
    {PayloadNode::GRULayerParams, 31, PayloadNode::WeightParams},
    {PayloadNode::GRULayerParams, 32, PayloadNode::WeightParams},
    {PayloadNode::GRULayerParams, 50, PayloadNode::WeightParams},
    {PayloadNode::GRULayerParams, 51, PayloadNode::WeightParams},
    {PayloadNode::GRULayerParams, 52, PayloadNode::WeightParams},
    {PayloadNode::GRULayerParams, 70, PayloadNode::WeightParams},
    {PayloadNode::GRULayerParams, 71, PayloadNode::WeightParams},
    {PayloadNode::GRULayerParams, 72, PayloadNode::WeightParams},
    {PayloadNode::UniDirectionalLSTMLayerParams, 10, PayloadNode::ActivationParams},
    {PayloadNode::UniDirectionalLSTMLayerParams, 20, PayloadNode::LSTMWeightParams},
    {PayloadNode::BiDirectionalLSTMLayerParams, 10, PayloadNode::ActivationParams},
    {PayloadNode::BiDirectionalLSTMLayerParams, 11, PayloadNode::ActivationParams},
    {PayloadNode::BiDirectionalLSTMLayerParams, 20, PayloadNode::LSTMWeightParams},
    {PayloadNode::CustomLayerParams, 20, PayloadNode::WeightParams},
    {PayloadNode::BranchLayerParams, 1, PayloadNode::NeuralNetwork},
    {PayloadNode::BranchLayerParams, 2, PayloadNode::NeuralNetwork},
    {PayloadNode::LoopLayerParams, 3, PayloadNode::NeuralNetwork},
    {PayloadNode::LoopLayerParams, 4, PayloadNode::NeuralNetwork},
    {PayloadNode::EmbeddingNDLayerParams, 20, PayloadNode::WeightParams},
    {PayloadNode::EmbeddingNDLayerParams, 21, PayloadNode::WeightParams},
    {PayloadNode::BatchedMatMulLayerParams, 8, PayloadNode::WeightParams},
    {PayloadNode::BatchedMatMulLayerParams, 9, PayloadNode::WeightParams},
    {PayloadNode::LoadConstantNDLayerParams, 2, PayloadNode::WeightParams},
    {PayloadNode::LayerNormalizationLayerParams, 3, PayloadNode::WeightParams},
    {PayloadNode::LayerNormalizationLayerParams, 4, PayloadNode::WeightParams},
    {PayloadNode::Convolution3DLayerParams, 60, PayloadNode::WeightParams},
    {PayloadNode::Convolution3DLayerParams, 61, PayloadNode::WeightParams},
    {PayloadNode::Function, 1, PayloadNode::NamedValueType},
    {PayloadNode::Function, 3, PayloadNode::Function_BlockSpecializationsEntry},
    {PayloadNode::Function, 4, PayloadNode::Function_AttributesEntry},
    {PayloadNode::Value, 2, PayloadNode::ValueType},
    {PayloadNode::Value, 3, PayloadNode::Value_ImmediateValue},
    {PayloadNode::ActivationPReLU, 1, PayloadNode::WeightParams},
    {PayloadNode::ActivationParametricSoftplus, 1, PayloadNode::WeightParams},
    {PayloadNode::ActivationParametricSoftplus, 2, PayloadNode::WeightParams},
    {PayloadNode::LSTMWeightParams, 1, PayloadNode::WeightParams},
    {PayloadNode::LSTMWeightParams, 2, PayloadNode::WeightParams},
    {PayloadNode::LSTMWeightParams, 3, PayloadNode::WeightParams},
    {PayloadNode::LSTMWeightParams, 4, PayloadNode::WeightParams},
    {PayloadNode::LSTMWeightParams, 20, PayloadNode::WeightParams},
    {PayloadNode::LSTMWeightParams, 21, PayloadNode::WeightParams},
    {PayloadNode::LSTMWeightParams, 22, PayloadNode::WeightParams},
    {PayloadNode::LSTMWeightParams, 23, PayloadNode::WeightParams},
    {PayloadNode::LSTMWeightParams, 40, PayloadNode::WeightParams},
    {PayloadNode::LSTMWeightParams, 41, PayloadNode::WeightParams},
    {PayloadNode::LSTMWeightParams, 42, PayloadNode::WeightParams},
    {PayloadNode::LSTMWeightParams, 43, PayloadNode::WeightParams},
    {PayloadNode::LSTMWeightParams, 60, PayloadNode::WeightParams},
    {PayloadNode::LSTMWeightParams, 61, PayloadNode::WeightParams},
    {PayloadNode::LSTMWeightParams, 62, PayloadNode::WeightParams},
    {PayloadNode::NamedValueType, 2, PayloadNode::ValueType},
    {PayloadNode::Function_BlockSpecializationsEntry, 2, PayloadNode::Block},
    {PayloadNode::Function_AttributesEntry, 2, PayloadNode::Value},
    {PayloadNode::ValueType, 1, PayloadNode::TensorType},
    {PayloadNode::ValueType, 2, PayloadNode::ListType},
    {PayloadNode::ValueType, 3, PayloadNode::TupleType},
    {PayloadNode::ValueType, 4, PayloadNode::DictionaryType},
    {PayloadNode::ValueType, 5, PayloadNode::StateType},
    {PayloadNode::Value_ImmediateValue, 1, PayloadNode::TensorValue},
    {PayloadNode::Value_ImmediateValue, 2, PayloadNode::TupleValue},
    {PayloadNode::Value_ImmediateValue, 3, PayloadNode::ListValue},
    {PayloadNode::Value_ImmediateValue, 4, PayloadNode::DictionaryValue},
    {PayloadNode::Block, 1, PayloadNode::NamedValueType},
    {PayloadNode::Block, 3, PayloadNode::Operation},
    {PayloadNode::Block, 4, PayloadNode::Block_AttributesEntry},
    {PayloadNode::TensorType, 4, PayloadNode::TensorType_AttributesEntry},
    {PayloadNode::ListType, 1, PayloadNode::ValueType},
    {PayloadNode::TupleType, 1, PayloadNode::ValueType},
    {PayloadNode::DictionaryType, 1, PayloadNode::ValueType},
    {PayloadNode::DictionaryType, 2, PayloadNode::ValueType},
    {PayloadNode::StateType, 1, PayloadNode::ValueType},
    {PayloadNode::TupleValue, 1, PayloadNode::Value},
    {PayloadNode::ListValue, 1, PayloadNode::Value},
    {PayloadNode::DictionaryValue, 1, PayloadNode::DictionaryValue_KeyValuePair},
    {PayloadNode::Operation, 2, PayloadNode::Operation_InputsEntry},
    {PayloadNode::Operation, 3, PayloadNode::NamedValueType},
    {PayloadNode::Operation, 4, PayloadNode::Block},
    {PayloadNode::Operation, 5, PayloadNode::Operation_AttributesEntry},
    {PayloadNode::Block_AttributesEntry, 2, PayloadNode::Value},
    {PayloadNode::TensorType_AttributesEntry, 2, PayloadNode::Value},
    {PayloadNode::DictionaryValue_KeyValuePair, 1, PayloadNode::Value},
    {PayloadNode::DictionaryValue_KeyValuePair, 2, PayloadNode::Value},
    {PayloadNode::Operation_InputsEntry, 2, PayloadNode::Argument},
    {PayloadNode::Operation_AttributesEntry, 2, PayloadNode::Value},
    {PayloadNode::Argument, 1, PayloadNode::Argument_Binding},
    {PayloadNode::Argument_Binding, 2, PayloadNode::Value},
};

constexpr size_t node_count = static_cast<size_t>(PayloadNode::Argument_Binding) + 1;

struct Range {
  uint16_t begin = 0, end = 0;
};

constexpr std::array<Range, node_count> ranges = [] {
  std::array<Range, node_count> out{};
  for (uint16_t i = 0; i < std::size(edges); ++i) {
    Range& r = out[static_cast<size_t>(edges[i].from)];
    if (r.end == 0) r.begin = i;
    r.end = static_cast<uint16_t>(i + 1);
  }
  return out;
}();

}  // namespace

std::span<const PayloadEdge> payload_edges(PayloadNode node) {
  Range r = ranges[static_cast<size_t>(node)];
  return std::span(edges).subspan(r.begin, r.end - r.begin);
}

}  // namespace moka::format
