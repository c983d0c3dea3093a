// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

/// Which messages of a specification can hold large payloads, and which fields lead to them.
namespace moka::format {

/// Every message between Model and WeightParams, TensorValue or NearestNeighborsIndex. Nested messages are joined by
/// '_'.
enum class PayloadNode : uint8_t {
  Model,
  PipelineClassifier,
  PipelineRegressor,
  Pipeline,
  NeuralNetworkRegressor,
  NeuralNetworkClassifier,
  NeuralNetwork,
  Program,
  KNearestNeighborsClassifier,
  NeuralNetworkLayer,
  Program_FunctionsEntry,
  Program_AttributesEntry,
  ConvolutionLayerParams,
  ActivationParams,
  InnerProductLayerParams,
  EmbeddingLayerParams,
  BatchnormLayerParams,
  ScaleLayerParams,
  BiasLayerParams,
  LoadConstantLayerParams,
  SimpleRecurrentLayerParams,
  GRULayerParams,
  UniDirectionalLSTMLayerParams,
  BiDirectionalLSTMLayerParams,
  CustomLayerParams,
  BranchLayerParams,
  LoopLayerParams,
  EmbeddingNDLayerParams,
  BatchedMatMulLayerParams,
  LoadConstantNDLayerParams,
  LayerNormalizationLayerParams,
  Convolution3DLayerParams,
  Function,
  Value,
  NearestNeighborsIndex,
  WeightParams,
  ActivationPReLU,
  ActivationParametricSoftplus,
  LSTMWeightParams,
  NamedValueType,
  Function_BlockSpecializationsEntry,
  Function_AttributesEntry,
  ValueType,
  Value_ImmediateValue,
  Block,
  TensorType,
  ListType,
  TupleType,
  DictionaryType,
  StateType,
  TensorValue,
  TupleValue,
  ListValue,
  DictionaryValue,
  Operation,
  Block_AttributesEntry,
  TensorType_AttributesEntry,
  DictionaryValue_KeyValuePair,
  Operation_InputsEntry,
  Operation_AttributesEntry,
  Argument,
  Argument_Binding,
};

struct PayloadEdge {
  PayloadNode from;
  uint32_t field;
  PayloadNode to;
};

/// The fields of `node` that lead to payloads; empty for those that hold payloads.
std::span<const PayloadEdge> payload_edges(PayloadNode node);

}  // namespace moka::format
