// SPDX-License-Identifier: Apache-2.0
#include "format/mlmodelc/layer_names.h"

#include <iterator>
#include <string_view>

#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

using Layer = proto::NeuralNetworkLayer;

struct Name {
  int type;
  std::string_view name;
};
constexpr Name names[] = {
    {100, "Convolution"},
    {120, "Pooling"},
    {130, "Activation"},
    {140, "InnerProduct"},
    {150, "Embedding"},
    {160, "BatchNorm"},
    {165, "MVN"},
    {170, "L2Normalize"},
    {175, "Softmax"},
    {180, "LRN"},
    {190, "Crop"},
    {200, "Padding"},
    {210, "Upsample"},
    {211, "ResizeBilinear"},
    {212, "CropResize"},
    {220, "Unary"},
    {230, "Add"},
    {231, "Multiply"},
    {240, "Average"},
    {245, "Scale"},
    {250, "Bias"},
    {260, "Max"},
    {261, "Min"},
    {270, "Dot"},
    {280, "Reduce"},
    {290, "LoadConstant"},
    {300, "Reshape"},
    {301, "Flatten"},
    {310, "Permute"},
    {320, "Concat"},
    {330, "Split"},
    {340, "SequenceRepeat"},
    {345, "ReorganizeData"},
    {350, "Slice"},
    {400, "SimpleRecurrent"},
    {410, "GRU"},
    {420, "UniDirectionalLSTM"},
    {430, "BiDirectionalLSTM"},
    {500, "Custom"},
    {600, "Copy"},
    {605, "Branch"},
    {615, "Loop"},
    {620, "LoopBreak"},
    {625, "LoopContinue"},
    {635, "RangeStatic"},
    {640, "RangeDynamic"},
    {660, "Clip"},
    {665, "Ceil"},
    {670, "Floor"},
    {680, "Sign"},
    {685, "Round"},
    {700, "Exp2"},
    {710, "Sin"},
    {715, "Cos"},
    {720, "Tan"},
    {730, "Asin"},
    {735, "Acos"},
    {740, "Atan"},
    {750, "Sinh"},
    {755, "Cosh"},
    {760, "Tanh"},
    {770, "Asinh"},
    {775, "Acosh"},
    {780, "Atanh"},
    {790, "Erf"},
    {795, "Gelu"},
    {815, "Equal"},
    {820, "NotEqual"},
    {825, "LessThan"},
    {827, "LessEqual"},
    {830, "GreaterThan"},
    {832, "GreaterEqual"},
    {840, "LogicalOr"},
    {845, "LogicalXor"},
    {850, "LogicalNot"},
    {855, "LogicalAnd"},
    {865, "ModBroadcastable"},
    {870, "MinBroadcastable"},
    {875, "MaxBroadcastable"},
    {880, "AddBroadcastable"},
    {885, "PowBroadcastable"},
    {890, "DivideBroadcastable"},
    {895, "FloorDivBroadcastable"},
    {900, "MultiplyBroadcastable"},
    {905, "SubtractBroadcastable"},
    {920, "Tile"},
    {925, "Stack"},
    {930, "Gather"},
    {935, "Scatter"},
    {940, "GatherND"},
    {945, "ScatterND"},
    {950, "SoftmaxND"},
    {952, "GatherAlongAxis"},
    {954, "ScatterAlongAxis"},
    {960, "Reverse"},
    {965, "ReverseSeq"},
    {975, "SplitND"},
    {980, "ConcatND"},
    {985, "Transpose"},
    {995, "SliceStatic"},
    {1000, "SliceDynamic"},
    {1005, "SlidingWindows"},
    {1015, "TopK"},
    {1020, "ArgMin"},
    {1025, "ArgMax"},
    {1040, "EmbeddingND"},
    {1045, "BatchedMatmul"},
    {1065, "GetShape"},
    {1070, "LoadConstantND"},
    {1080, "FillLike"},
    {1085, "FillStatic"},
    {1090, "FillDynamic"},
    {1100, "BroadcastToLike"},
    {1105, "BroadcastToStatic"},
    {1110, "BroadcastToDynamic"},
    {1120, "Squeeze"},
    {1125, "ExpandDims"},
    {1130, "FlattenTo2D"},
    {1135, "ReshapeLike"},
    {1140, "ReshapeStatic"},
    {1145, "ReshapeDynamic"},
    {1150, "RankPreservingReshape"},
    {1155, "ConstantPad"},
    {1170, "RandomNormalLike"},
    {1175, "RandomNormalStatic"},
    {1180, "RandomNormalDynamic"},
    {1190, "RandomUniformLike"},
    {1195, "RandomUniformStatic"},
    {1200, "RandomUniformDynamic"},
    {1210, "RandomBernoulliLike"},
    {1215, "RandomBernoulliStatic"},
    {1220, "RandomBernoulliDynamic"},
    {1230, "CategoricalDistribution"},
    {1250, "ReduceL1"},
    {1255, "ReduceL2"},
    {1260, "ReduceMax"},
    {1265, "ReduceMin"},
    {1270, "ReduceSum"},
    {1275, "ReduceProd"},
    {1280, "ReduceMean"},
    {1285, "ReduceLogSum"},
    {1290, "ReduceSumSquare"},
    {1295, "ReduceLogSumExp"},
    {1313, "WhereNonZero"},
    {1315, "MatrixBandPart"},
    {1320, "LowerTriangular"},
    {1325, "UpperTriangular"},
    {1330, "WhereBroadcastable"},
    {1350, "LayerNormalization"},
    {1400, "NonMaximumSuppression"},
    {1450, "OneHot"},
    {1455, "CumSum"},
    {1460, "ClampedReLU"},
    {1461, "ArgSort"},
    {1465, "Pooling3d"},
    {1466, "GlobalPooling3d"},
    {1470, "SliceBySize"},
    {1471, "Convolution3d"},
};

std::string_view activation_name(const proto::ActivationParams& p) {
  using A = proto::ActivationParams;
  switch (p.NonlinearityType_case()) {
    case A::kLinear: return "Linear";
    case A::kReLU: return "ReLU";
    case A::kLeakyReLU: return "LeakyReLU";
    case A::kThresholdedReLU: return "ThresholdedReLU";
    case A::kPReLU: return "PReLU";
    case A::kTanh: return "Tanh";
    case A::kScaledTanh: return "ScaledTanh";
    case A::kSigmoid: return "Sigmoid";
    case A::kSigmoidHard: return "SigmoidHard";
    case A::kELU: return "ELU";
    case A::kSoftsign: return "Softsign";
    case A::kSoftplus: return "Softplus";
    case A::kParametricSoftplus: return "ParametricSoftplus";
    case A::NONLINEARITYTYPE_NOT_SET: break;
  }
  return "";
}

template <size_t N>
std::string_view at(const std::string_view (&list)[N], int i) {
  return i >= 0 && static_cast<size_t>(i) < N ? list[i] : std::string_view();
}

/// The suffix for layers that have several kinds; it follows the layer's name.
std::string_view kind(const Layer& layer) {
  static constexpr std::string_view pools[] = {"Max", "Average", "L2"};
  static constexpr std::string_view functions[] = {"Sqrt", "Rsqrt", "Inverse", "Power",
                                                   "Exp",  "Log",   "Abs",     "Threshold"};
  static constexpr std::string_view reductions[] = {"Sum", "Avg", "Prod", "LogSum", "SumSquare",
                                                    "L1",  "L2",  "Max",  "Min",    "ArgMax"};
  switch (layer.layer_case()) {
    case Layer::kActivation: return activation_name(layer.activation());
    case Layer::kPooling: return at(pools, layer.pooling().type());
    case Layer::kUnary: return at(functions, layer.unary().type());
    case Layer::kReduce: return at(reductions, layer.reduce().mode());
    case Layer::kPadding:
      return layer.padding().has_reflection()    ? "Reflection"
             : layer.padding().has_replication() ? "Replication"
                                                 : "Constant";
    default: return "";
  }
}

const proto::WeightParams* weights(const Layer& layer) {
  switch (layer.layer_case()) {
    case Layer::kConvolution: return &layer.convolution().weights();
    case Layer::kInnerProduct: return &layer.innerproduct().weights();
    case Layer::kEmbedding: return &layer.embedding().weights();
    case Layer::kEmbeddingND: return &layer.embeddingnd().weights();
    case Layer::kBatchedMatmul: return &layer.batchedmatmul().weights();
    case Layer::kLoadConstant: return &layer.loadconstant().data();
    case Layer::kLoadConstantND: return &layer.loadconstantnd().data();
    case Layer::kUniDirectionalLSTM: return &layer.unidirectionallstm().weightparams().inputgateweightmatrix();
    default: return nullptr;
  }
}

}  // namespace

const google::protobuf::RepeatedPtrField<Layer>* layers_of(const proto::Model& model) {
  if (model.has_neuralnetwork()) return &model.neuralnetwork().layers();
  if (model.has_neuralnetworkclassifier()) return &model.neuralnetworkclassifier().layers();
  if (model.has_neuralnetworkregressor()) return &model.neuralnetworkregressor().layers();
  return nullptr;
}

std::map<std::string, int64_t> layer_histogram(const proto::Model& model) {
  std::map<std::string, int64_t> out;
  const auto* layers = layers_of(model);
  if (layers == nullptr) return out;
  for (const Layer& layer : *layers)
    for (const Name& n : names)
      if (n.type == static_cast<int>(layer.layer_case())) ++out[cat(n.name, kind(layer))];
  return out;
}

std::set<WeightData::Kind> weight_kinds(const proto::Model& model, const ModelFile& file) {
  std::set<WeightData::Kind> out;
  const auto* layers = layers_of(model);
  if (layers == nullptr) return out;
  for (const Layer& layer : *layers)
    if (const proto::WeightParams* w = weights(layer))
      if (auto data = file.weight_data(*w); data.ok() && data->kind != WeightData::Kind::none) out.insert(data->kind);
  return out;
}

}  // namespace moka::format
