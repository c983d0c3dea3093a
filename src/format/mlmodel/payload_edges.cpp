#include "format/mlmodel/payload_edges.h"

#include <array>
#include <cstddef>

namespace moka::format {
namespace {

// Grouped by `from`. Complete for the .proto files, which tools/check_proto.py verifies.
constexpr PayloadEdge edges[] = {
    {Node::Model, 200, Node::PipelineClassifier},
    {Node::Model, 201, Node::PipelineRegressor},
    {Node::Model, 202, Node::Pipeline},
    {Node::Model, 303, Node::NeuralNetworkRegressor},
    {Node::Model, 403, Node::NeuralNetworkClassifier},
    {Node::Model, 500, Node::NeuralNetwork},
    {Node::Model, 502, Node::Program},
    {Node::PipelineClassifier, 1, Node::Pipeline},
    {Node::PipelineRegressor, 1, Node::Pipeline},
    {Node::Pipeline, 1, Node::Model},
    {Node::NeuralNetworkRegressor, 1, Node::NeuralNetworkLayer},
    {Node::NeuralNetworkClassifier, 1, Node::NeuralNetworkLayer},
    {Node::NeuralNetwork, 1, Node::NeuralNetworkLayer},
    {Node::Program, 2, Node::Program_FunctionsEntry},
    {Node::Program, 4, Node::Program_AttributesEntry},
    {Node::NeuralNetworkLayer, 100, Node::ConvolutionLayerParams},
    {Node::NeuralNetworkLayer, 130, Node::ActivationParams},
    {Node::NeuralNetworkLayer, 140, Node::InnerProductLayerParams},
    {Node::NeuralNetworkLayer, 150, Node::EmbeddingLayerParams},
    {Node::NeuralNetworkLayer, 160, Node::BatchnormLayerParams},
    {Node::NeuralNetworkLayer, 245, Node::ScaleLayerParams},
    {Node::NeuralNetworkLayer, 250, Node::BiasLayerParams},
    {Node::NeuralNetworkLayer, 290, Node::LoadConstantLayerParams},
    {Node::NeuralNetworkLayer, 400, Node::SimpleRecurrentLayerParams},
    {Node::NeuralNetworkLayer, 410, Node::GRULayerParams},
    {Node::NeuralNetworkLayer, 420, Node::UniDirectionalLSTMLayerParams},
    {Node::NeuralNetworkLayer, 430, Node::BiDirectionalLSTMLayerParams},
    {Node::NeuralNetworkLayer, 500, Node::CustomLayerParams},
    {Node::NeuralNetworkLayer, 605, Node::BranchLayerParams},
    {Node::NeuralNetworkLayer, 615, Node::LoopLayerParams},
    {Node::NeuralNetworkLayer, 1040, Node::EmbeddingNDLayerParams},
    {Node::NeuralNetworkLayer, 1045, Node::BatchedMatMulLayerParams},
    {Node::NeuralNetworkLayer, 1070, Node::LoadConstantNDLayerParams},
    {Node::NeuralNetworkLayer, 1350, Node::LayerNormalizationLayerParams},
    {Node::NeuralNetworkLayer, 1471, Node::Convolution3DLayerParams},
    {Node::Program_FunctionsEntry, 2, Node::Function},
    {Node::Program_AttributesEntry, 2, Node::Value},
    {Node::ConvolutionLayerParams, 90, Node::WeightParams},
    {Node::ConvolutionLayerParams, 91, Node::WeightParams},
    {Node::ActivationParams, 25, Node::ActivationPReLU},
    {Node::ActivationParams, 71, Node::ActivationParametricSoftplus},
    {Node::InnerProductLayerParams, 20, Node::WeightParams},
    {Node::InnerProductLayerParams, 21, Node::WeightParams},
    {Node::EmbeddingLayerParams, 20, Node::WeightParams},
    {Node::EmbeddingLayerParams, 21, Node::WeightParams},
    {Node::BatchnormLayerParams, 15, Node::WeightParams},
    {Node::BatchnormLayerParams, 16, Node::WeightParams},
    {Node::BatchnormLayerParams, 17, Node::WeightParams},
    {Node::BatchnormLayerParams, 18, Node::WeightParams},
    {Node::ScaleLayerParams, 2, Node::WeightParams},
    {Node::ScaleLayerParams, 5, Node::WeightParams},
    {Node::BiasLayerParams, 2, Node::WeightParams},
    {Node::LoadConstantLayerParams, 2, Node::WeightParams},
    {Node::SimpleRecurrentLayerParams, 10, Node::ActivationParams},
    {Node::SimpleRecurrentLayerParams, 30, Node::WeightParams},
    {Node::SimpleRecurrentLayerParams, 31, Node::WeightParams},
    {Node::SimpleRecurrentLayerParams, 32, Node::WeightParams},
    {Node::GRULayerParams, 10, Node::ActivationParams},
    {Node::GRULayerParams, 30, Node::WeightParams},
    {Node::GRULayerParams, 31, Node::WeightParams},
    {Node::GRULayerParams, 32, Node::WeightParams},
    {Node::GRULayerParams, 50, Node::WeightParams},
    {Node::GRULayerParams, 51, Node::WeightParams},
    {Node::GRULayerParams, 52, Node::WeightParams},
    {Node::GRULayerParams, 70, Node::WeightParams},
    {Node::GRULayerParams, 71, Node::WeightParams},
    {Node::GRULayerParams, 72, Node::WeightParams},
    {Node::UniDirectionalLSTMLayerParams, 10, Node::ActivationParams},
    {Node::UniDirectionalLSTMLayerParams, 20, Node::LSTMWeightParams},
    {Node::BiDirectionalLSTMLayerParams, 10, Node::ActivationParams},
    {Node::BiDirectionalLSTMLayerParams, 11, Node::ActivationParams},
    {Node::BiDirectionalLSTMLayerParams, 20, Node::LSTMWeightParams},
    {Node::CustomLayerParams, 20, Node::WeightParams},
    {Node::BranchLayerParams, 1, Node::NeuralNetwork},
    {Node::BranchLayerParams, 2, Node::NeuralNetwork},
    {Node::LoopLayerParams, 3, Node::NeuralNetwork},
    {Node::LoopLayerParams, 4, Node::NeuralNetwork},
    {Node::EmbeddingNDLayerParams, 20, Node::WeightParams},
    {Node::EmbeddingNDLayerParams, 21, Node::WeightParams},
    {Node::BatchedMatMulLayerParams, 8, Node::WeightParams},
    {Node::BatchedMatMulLayerParams, 9, Node::WeightParams},
    {Node::LoadConstantNDLayerParams, 2, Node::WeightParams},
    {Node::LayerNormalizationLayerParams, 3, Node::WeightParams},
    {Node::LayerNormalizationLayerParams, 4, Node::WeightParams},
    {Node::Convolution3DLayerParams, 60, Node::WeightParams},
    {Node::Convolution3DLayerParams, 61, Node::WeightParams},
    {Node::Function, 1, Node::NamedValueType},
    {Node::Function, 3, Node::Function_BlockSpecializationsEntry},
    {Node::Function, 4, Node::Function_AttributesEntry},
    {Node::Value, 2, Node::ValueType},
    {Node::Value, 3, Node::Value_ImmediateValue},
    {Node::ActivationPReLU, 1, Node::WeightParams},
    {Node::ActivationParametricSoftplus, 1, Node::WeightParams},
    {Node::ActivationParametricSoftplus, 2, Node::WeightParams},
    {Node::LSTMWeightParams, 1, Node::WeightParams},
    {Node::LSTMWeightParams, 2, Node::WeightParams},
    {Node::LSTMWeightParams, 3, Node::WeightParams},
    {Node::LSTMWeightParams, 4, Node::WeightParams},
    {Node::LSTMWeightParams, 20, Node::WeightParams},
    {Node::LSTMWeightParams, 21, Node::WeightParams},
    {Node::LSTMWeightParams, 22, Node::WeightParams},
    {Node::LSTMWeightParams, 23, Node::WeightParams},
    {Node::LSTMWeightParams, 40, Node::WeightParams},
    {Node::LSTMWeightParams, 41, Node::WeightParams},
    {Node::LSTMWeightParams, 42, Node::WeightParams},
    {Node::LSTMWeightParams, 43, Node::WeightParams},
    {Node::LSTMWeightParams, 60, Node::WeightParams},
    {Node::LSTMWeightParams, 61, Node::WeightParams},
    {Node::LSTMWeightParams, 62, Node::WeightParams},
    {Node::NamedValueType, 2, Node::ValueType},
    {Node::Function_BlockSpecializationsEntry, 2, Node::Block},
    {Node::Function_AttributesEntry, 2, Node::Value},
    {Node::ValueType, 1, Node::TensorType},
    {Node::ValueType, 2, Node::ListType},
    {Node::ValueType, 3, Node::TupleType},
    {Node::ValueType, 4, Node::DictionaryType},
    {Node::ValueType, 5, Node::StateType},
    {Node::Value_ImmediateValue, 1, Node::TensorValue},
    {Node::Value_ImmediateValue, 2, Node::TupleValue},
    {Node::Value_ImmediateValue, 3, Node::ListValue},
    {Node::Value_ImmediateValue, 4, Node::DictionaryValue},
    {Node::Block, 1, Node::NamedValueType},
    {Node::Block, 3, Node::Operation},
    {Node::Block, 4, Node::Block_AttributesEntry},
    {Node::TensorType, 4, Node::TensorType_AttributesEntry},
    {Node::ListType, 1, Node::ValueType},
    {Node::TupleType, 1, Node::ValueType},
    {Node::DictionaryType, 1, Node::ValueType},
    {Node::DictionaryType, 2, Node::ValueType},
    {Node::StateType, 1, Node::ValueType},
    {Node::TupleValue, 1, Node::Value},
    {Node::ListValue, 1, Node::Value},
    {Node::DictionaryValue, 1, Node::DictionaryValue_KeyValuePair},
    {Node::Operation, 2, Node::Operation_InputsEntry},
    {Node::Operation, 3, Node::NamedValueType},
    {Node::Operation, 4, Node::Block},
    {Node::Operation, 5, Node::Operation_AttributesEntry},
    {Node::Block_AttributesEntry, 2, Node::Value},
    {Node::TensorType_AttributesEntry, 2, Node::Value},
    {Node::DictionaryValue_KeyValuePair, 1, Node::Value},
    {Node::DictionaryValue_KeyValuePair, 2, Node::Value},
    {Node::Operation_InputsEntry, 2, Node::Argument},
    {Node::Operation_AttributesEntry, 2, Node::Value},
    {Node::Argument, 1, Node::Argument_Binding},
    {Node::Argument_Binding, 2, Node::Value},
};

constexpr size_t node_count = static_cast<size_t>(Node::Argument_Binding) + 1;

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

std::span<const PayloadEdge> payload_edges(Node node) {
  Range r = ranges[static_cast<size_t>(node)];
  return std::span(edges).subspan(r.begin, r.end - r.begin);
}

}  // namespace moka::format
